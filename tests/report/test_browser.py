"""The HTML report in a real browser, as a person uses it: keys, slider, clicks, search, notes, links, exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from plait.check.explain.graph import state_graph
from plait.kernel.trace import Mark, Trace
from plait.model.loading.loader import load
from plait.report.html import report
from plait.report.space_time.svg import space_time
from plait.report.state_graph.svg import graph_svg
from tests.report import samples
from tests.support.browser import LOOKS, PHONE, tab, violations

pytestmark = pytest.mark.slow
Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the report of a trace, at its initial state."""
    opened = []

    def open_report(trace: Trace, **context: object) -> Page:
        file = tmp_path / "report.html"
        file.write_text(report(samples.verdict(trace)), encoding="utf-8")
        opened.append(tab(browser, **context))
        page = opened[-1].__enter__()
        page.goto(file.as_uri())
        assert shown(page) == len(trace.events), "it opens at the violation"
        page.keyboard.press("Home")
        return page

    yield open_report
    for each in opened:
        each.__exit__(None, None, None)


def shown(page: Page) -> int:
    """The step that all parts of the page agree on."""
    step = page.locator(".viewer").get_attribute("data-current")
    assert step is not None
    assert (page.locator(".now").text_content() or "").startswith(f"step {step} of ")
    assert page.locator("input[type=range]").input_value() == step
    for part in (".steplist li.current", ".plait-diagram .row.current"):
        assert [e.get_attribute("data-step") for e in page.locator(part).all()] == [step]
    return int(step)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def changed(page: Page) -> dict[str, list[str]]:
    """Per card, the fields that are highlighted."""
    cards = {}
    for card in page.locator(".card").all():
        if fields := card.locator(".changed th").all_text_contents():
            cards[card.locator("h4").text_content() or ""] = fields
    return cards


def visible(page: Page, selector: str, pane: str) -> bool:
    """Is the element inside its pane's window?"""
    script = """([selector, pane]) => {
      const inside = document.querySelector(selector).getBoundingClientRect();
      const frame = document.querySelector(pane).getBoundingClientRect();
      return inside.top >= frame.top - 1 && inside.bottom <= frame.bottom + 1;
    }"""
    return bool(page.evaluate(script, [selector, pane]))


def test_arrow_keys_walk(opened: Open) -> None:
    page = opened(samples.paxos())
    assert shown(page) == 0
    assert changed(page) == {}
    for keys, step in (
        (["ArrowLeft"], 0),
        (["ArrowRight", "ArrowRight"], 2),
        (["ArrowLeft"], 1),
        (["End"], 17),
        (["ArrowRight"], 17),
        (["PageUp"], 7),
        (["j", "k", "k"], 6),
        (["Home"], 0),
    ):
        press(page, *keys)
        assert shown(page) == step


def test_changed_fields_and_pending_messages(opened: Open) -> None:
    page = opened(samples.paxos())
    press(page, "ArrowRight")
    assert changed(page) == {"Proposer0": ["ballot", "value", "phase"]}
    assert page.locator(".inbox .new").all_text_contents() == [f"#{i} Read(ballot=1) from Proposer0" for i in (1, 2, 3)]
    assert page.locator(".card.acting h4").text_content() == "Proposer0"
    press(page, "ArrowRight")
    assert changed(page) == {"Acceptor0": ["promised"]}
    row = page.locator(".card .changed")
    assert (row.locator("del").text_content(), row.locator(".value").text_content()) == ("0", "1")


def test_differences_to_a_chosen_state(opened: Open) -> None:
    page = opened(samples.paxos())
    press(page, "=", "ArrowRight", "ArrowRight")
    assert changed(page) == {"Proposer0": ["ballot", "value", "phase"], "Acceptor0": ["promised"]}
    page.get_by_label("Differences to").select_option("the state before")
    assert changed(page) == {"Acceptor0": ["promised"]}


def test_slider(opened: Open) -> None:
    page = opened(samples.paxos())
    slider = page.locator("input[type=range]")
    slider.focus()
    press(page, "ArrowRight")
    assert shown(page) == 1
    slider.click()
    assert shown(page) in (8, 9)  # the middle of 0..17


def test_buttons(opened: Open) -> None:
    page = opened(samples.lasso())
    for go, step in (("on", 1), ("last", 4), ("back", 3), ("first", 0)):
        page.locator(f"[data-go={go}]").click()
        assert shown(page) == step


def test_play(opened: Open) -> None:
    page = opened(samples.lasso())
    press(page, " ")
    expect(page.locator(".now")).to_contain_text("step 4 of 4")
    expect(page.get_by_label("play", exact=True)).to_be_visible()


def test_click_on_a_step_or_in_the_diagram(opened: Open) -> None:
    page = opened(samples.paxos())
    page.locator('.steplist li[data-step="2"]').click()
    assert shown(page) == 2
    page.locator('.plait-diagram .event[data-step="3"] .mark').click()
    assert shown(page) == 3
    assert {e.get_attribute("data-message") for e in page.locator(".message.touched").all()} == {"2", "5"}
    page.locator('.plait-diagram .row[data-step="1"] text').click()
    assert shown(page) == 1


def test_current_step_is_scrolled_into_view(opened: Open) -> None:
    page = opened(samples.long())
    for key, step in (("End", 60), ("Home", 0)):
        press(page, key)
        assert shown(page) == step
        assert visible(page, ".plait-diagram .row.current rect", ".diagram")
        assert visible(page, ".steplist li.current", ".panel-steps")
    press(page, *["ArrowRight"] * 25)
    assert visible(page, ".plait-diagram .row.current rect", ".diagram")
    assert visible(page, ".card.acting", ".panel-state")


def test_search_filter_and_hidden_lanes(opened: Open) -> None:
    trace = samples.paxos()
    page = opened(trace)
    promised = [i for i, e in enumerate(trace.events, 1) if e.lane == "Acceptor0" and "promised" in e.changed]
    press(page, "/")
    page.keyboard.type("process:acceptor0 field:promised")
    press(page, "Enter")
    assert shown(page) == promised[0]
    press(page, "Escape", "f")
    rows = [int(e.get_attribute("data-step") or -1) for e in page.locator(".drawn .row").all()]
    assert rows == promised
    press(page, "f", "l")
    page.get_by_role("dialog").get_by_label("Proposer1").uncheck()
    page.get_by_role("dialog").get_by_label("promised").uncheck()
    press(page, "Escape")
    assert "Proposer1" not in page.locator(".sticky .head text").all_text_contents()
    left = {int(e.get_attribute("data-step") or -1) for e in page.locator(".steplist li").all()}
    assert left == {0} | {i for i, e in enumerate(trace.events, 1) if e.lane != "Proposer1"}
    assert "promised" not in page.locator(".card th").all_text_contents()


def test_notes_and_the_link_that_restores_them(opened: Open) -> None:
    page = opened(samples.paxos())
    press(page, "g")
    page.get_by_role("spinbutton").fill("4")
    press(page, "Enter")
    assert shown(page) == 4
    press(page, "m")
    page.keyboard.type("this <b>message</b> is lost")
    press(page, "Control+Enter")
    expect(page.locator(".own-note")).to_have_text("this <b>message</b> is lost")
    press(page, "x")
    address = page.get_by_role("dialog").get_by_role("textbox").input_value()
    press(page, "Escape")
    page.goto("about:blank")
    page.goto(address)
    assert shown(page) == 4
    expect(page.locator(".own-note")).to_have_text("this <b>message</b> is lost")


def test_exports(opened: Open) -> None:
    page = opened(samples.paxos())
    press(page, "x")
    saved = {}
    for name in ("SVG", "PNG", "Mermaid", "Text"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        saved[name] = Path(download.value.path()).read_bytes()
    drawing = ET.fromstring(saved["SVG"])
    assert len([e for e in drawing.iter() if (e.get("class") or "").startswith("event ")]) == 17
    assert saved["PNG"].startswith(b"\x89PNG")
    assert len(saved["PNG"]) > 20_000
    assert saved["Mermaid"].startswith(b"sequenceDiagram\n")
    assert b"promised: 0 \xe2\x86\x92 1" in saved["Text"]


def test_help_shows_the_keys_and_escape_closes_it(opened: Open) -> None:
    page = opened(samples.paxos())
    press(page, "?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Next match")
    assert "Take the enabled step" not in (dialog.text_content() or ""), "a report has no enabled steps"
    press(page, "ArrowRight")
    assert page.locator(".viewer").get_attribute("data-current") == "0", "keys are for the dialog"
    press(page, "Escape")
    expect(dialog).to_have_count(0)
    press(page, "ArrowRight")
    assert shown(page) == 1


@LOOKS
@pytest.mark.parametrize("name", ["paxos", "faults", "lasso"])
def test_nothing_serious_for_assistive_technology(opened: Open, name: str, look: dict[str, object]) -> None:
    page = opened(samples.SAMPLES[name](), **look)
    press(page, "End")
    assert violations(page) == []
    for key in ("?", "l", "m", "x"):
        press(page, key)
        assert violations(page) == []
        press(page, "Escape")


def test_print_has_every_step(opened: Open) -> None:
    page = opened(samples.long())
    page.emulate_media(media="print")
    expect(page.locator(".drawn .row")).to_have_count(61)
    assert page.locator(".steplist li").count() == 61
    assert not page.locator(".controls").is_visible()


def test_without_a_script_every_step_is_there(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(samples.verdict(samples.paxos())), encoding="utf-8")
    with tab(browser, java_script_enabled=False) as page:
        page.goto(file.as_uri())
        assert page.locator(".steplist li").count() == 18
        assert page.locator(".plait-diagram .event").count() == 17


def test_page_fits_a_laptop(opened: Open) -> None:
    page = opened(samples.long())
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("name", ["paxos", "long"])
def test_a_phone_shows_the_step_and_readable_labels(opened: Open, name: str) -> None:
    page = opened(samples.SAMPLES[name](), **PHONE)
    press(page, "End")
    script = """() => {
      const now = document.querySelector(".now"), label = document.querySelector(".plait-diagram .event .does");
      return [document.documentElement.scrollWidth - 390, now.scrollWidth - now.clientWidth,
              now.clientWidth, parseFloat(getComputedStyle(now).fontSize), label.getBoundingClientRect().height];
    }"""
    wide, hidden, room, size, label = page.evaluate(script)
    assert wide <= 0
    assert hidden <= 0
    assert room > 300
    assert size >= 13
    assert label >= 10


COLLISIONS = """(root) => {
  const turned = e => e.hasAttribute("transform");
  const svg = document.querySelector(root);
  const texts = [...svg.querySelectorAll("text")].map(e => [e.textContent, e.getBBox(), turned(e)]);
  const bad = [], wide = svg.viewBox.baseVal.width;
  texts.filter(t => !t[2]).forEach(([one, a], i, all) => {
    if (a.x < 0 || a.x + a.width > wide) bad.push(one);
    for (const [other, b] of all.slice(i + 1))
      if (a.x < b.x + b.width - 1 && b.x < a.x + a.width - 1 && a.y < b.y + b.height - 4 && b.y < a.y + a.height - 4)
        bad.push(one + " / " + other);
  });
  return bad;
}"""


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_texts_of_a_diagram_do_not_collide(page: Page, tmp_path: Path, name: str) -> None:
    """The layouts of file and viewer guess how wide text is; here are the real letters."""
    trace = msgspec.structs.replace(samples.SAMPLES[name](), marks=[Mark(0, "phase 1, round Estimate")])
    file = tmp_path / "trace.svg"
    file.write_text(space_time(trace), encoding="utf-8")
    page.goto(file.as_uri())
    assert page.evaluate(COLLISIONS, "svg") == []
    file = tmp_path / "report.html"
    file.write_text(report(samples.verdict(trace)), encoding="utf-8")
    page.goto(file.as_uri())
    page.emulate_media(media="print")  # then all rows are drawn
    expect(page.locator(".drawn .row")).to_have_count(len(trace.events) + 1)
    assert page.evaluate(COLLISIONS, "svg.drawn") == []


def test_hostile_model_runs_nothing(opened: Open) -> None:
    page = opened(samples.hostile())
    press(page, "End")
    assert shown(page) == 2
    assert page.locator(".card h4").first.text_content() == samples.HOSTILE
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(("target", "parameters"), [("examples/two_messages.py", {}), ("examples/lease.py", {}),
                                                    ("two_phase_commit", {"resource_managers": 2})])  # fmt: skip
def test_texts_of_a_state_graph_fit(page: Page, tmp_path: Path, target: str, parameters: dict[str, object]) -> None:
    """The layout guesses how wide text is; here are the real letters."""
    root = Path(__file__).parents[2]
    system = load(str(root / target) if "/" in target else target, parameters, parse=False)
    file = tmp_path / "graph.svg"
    file.write_text(graph_svg(state_graph(system)), encoding="utf-8")
    page.goto(file.as_uri())
    script = """() => {
      const inside = (a, b) => a.left >= b.left - 1 &&
        a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 2;
      const bad = [], at = e => e.getBoundingClientRect();
      for (const state of document.querySelectorAll(".state"))
        for (const text of state.querySelectorAll(".name, .detail"))
          if (!inside(at(text), at(state.querySelector(".box")))) bad.push(text.textContent);
      for (const label of document.querySelectorAll(".label"))
        for (const text of label.querySelectorAll("text"))
          if (!inside(at(text), at(label.querySelector("rect")))) bad.push(text.textContent);
      for (const text of document.querySelectorAll("text"))
        if (!inside(at(text), at(document.documentElement))) bad.push(text.textContent);
      return bad;
    }"""
    assert page.evaluate(script) == []
