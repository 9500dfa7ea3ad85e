"""The HTML report in a real browser: keys, slider, clicks, highlights, and an empty console."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from plait.check.explain.graph import state_graph
from plait.kernel.trace import Mark, Trace
from plait.model.loading.loader import load
from plait.report.html import report
from plait.report.space_time.svg import space_time
from plait.report.state_graph.svg import graph_svg
from tests.report import samples

pytestmark = pytest.mark.slow
Open = Callable[[Trace], WebDriver]


@pytest.fixture
def opened(browser: WebDriver, tmp_path: Path) -> Iterator[Open]:
    def open_report(trace: Trace) -> WebDriver:
        page = tmp_path / "report.html"
        page.write_text(report(samples.verdict(trace)), encoding="utf-8")
        browser.get(page.as_uri())
        assert shown(browser) == len(trace.events), "it opens at the violation"
        press(browser, Keys.HOME)
        return browser

    yield open_report
    assert browser.get_log("browser") == [], "the console stays empty"  # type: ignore[no-untyped-call]


def shown(browser: WebDriver) -> int:
    """The step that all parts of the page agree on."""
    step = browser.find_element(By.CSS_SELECTOR, ".viewer").get_attribute("data-current")
    assert step is not None
    assert browser.find_element(By.CSS_SELECTOR, ".now").text.startswith(f"step {step} of ")
    assert browser.find_element(By.CSS_SELECTOR, "input[type=range]").get_property("value") == step
    for part in (".steplist li.current", ".plait-diagram .row.current"):
        assert [e.get_attribute("data-step") for e in browser.find_elements(By.CSS_SELECTOR, part)] == [step]
    return int(step)


def press(browser: WebDriver, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def changed(browser: WebDriver) -> dict[str, list[str]]:
    """Per card, the fields that are highlighted."""
    cards = {}
    for card in browser.find_elements(By.CSS_SELECTOR, ".card"):
        fields = [e.text for e in card.find_elements(By.CSS_SELECTOR, ".changed th")]
        if fields:
            cards[card.find_element(By.TAG_NAME, "h4").text] = fields
    return cards


def visible(browser: WebDriver, selector: str, pane: str) -> bool:
    """Is the element inside its pane's window?"""
    script = """
      const inside = document.querySelector(arguments[0]).getBoundingClientRect();
      const frame = document.querySelector(arguments[1]).getBoundingClientRect();
      return inside.top >= frame.top - 1 && inside.bottom <= frame.bottom + 1;
    """
    return bool(browser.execute_script(script, selector, pane))  # type: ignore[no-untyped-call]


def test_arrow_keys_walk(opened: Open) -> None:
    browser = opened(samples.paxos())
    assert shown(browser) == 0
    assert changed(browser) == {}
    press(browser, Keys.ARROW_LEFT)
    assert shown(browser) == 0
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert shown(browser) == 2
    press(browser, Keys.ARROW_LEFT)
    assert shown(browser) == 1
    press(browser, Keys.END)
    assert shown(browser) == 17
    press(browser, Keys.ARROW_RIGHT)
    assert shown(browser) == 17
    press(browser, Keys.HOME)
    assert shown(browser) == 0


def test_changed_fields_and_pending_messages(opened: Open) -> None:
    browser = opened(samples.paxos())
    press(browser, Keys.ARROW_RIGHT)
    assert changed(browser) == {"Proposer0": ["ballot", "value", "phase"]}
    assert [e.text for e in browser.find_elements(By.CSS_SELECTOR, ".inbox .new")] == [
        "#1 Read(ballot=1) from Proposer0"
    ] + [f"#{i} Read(ballot=1) from Proposer0" for i in (2, 3)]
    assert browser.find_element(By.CSS_SELECTOR, ".card.acting h4").text == "Proposer0"
    press(browser, Keys.ARROW_RIGHT)
    assert changed(browser) == {"Acceptor0": ["promised"]}
    row = browser.find_element(By.CSS_SELECTOR, ".card .changed")
    assert (row.find_element(By.TAG_NAME, "del").text, row.find_element(By.CSS_SELECTOR, ".value").text) == ("0", "1")


def test_slider_with_its_own_keys_moves_by_one(opened: Open) -> None:
    browser = opened(samples.paxos())
    slider = browser.find_element(By.CSS_SELECTOR, "input[type=range]")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert shown(browser) == 1


def test_slider_can_be_dragged(opened: Open) -> None:
    browser = opened(samples.paxos())
    slider = browser.find_element(By.CSS_SELECTOR, "input[type=range]")
    ActionChains(browser).move_to_element(slider).click().perform()
    assert shown(browser) in (8, 9)  # the middle of 0..17


def test_buttons(opened: Open) -> None:
    browser = opened(samples.lasso())
    for go, step in (("on", 1), ("last", 4), ("back", 3), ("first", 0)):
        browser.find_element(By.CSS_SELECTOR, f"[data-go={go}]").click()
        assert shown(browser) == step


def test_click_on_a_step_or_in_the_diagram(opened: Open) -> None:
    browser = opened(samples.paxos())
    browser.find_element(By.CSS_SELECTOR, '.steplist li[data-step="2"]').click()
    assert shown(browser) == 2
    browser.find_element(By.CSS_SELECTOR, '.plait-diagram .event[data-step="3"] .mark').click()
    assert shown(browser) == 3
    touched = browser.find_elements(By.CSS_SELECTOR, ".message.touched")
    assert {e.get_attribute("data-message") for e in touched} == {"2", "5"}
    browser.find_element(By.CSS_SELECTOR, '.plait-diagram .row[data-step="1"] text').click()
    assert shown(browser) == 1


def test_current_step_is_scrolled_into_view(opened: Open) -> None:
    browser = opened(samples.long())
    for key, step in ((Keys.END, 60), (Keys.HOME, 0)):
        press(browser, key)
        assert shown(browser) == step
        assert visible(browser, ".plait-diagram .row.current rect", ".diagram")
        assert visible(browser, ".steplist li.current", ".steps")
    press(browser, *[Keys.ARROW_RIGHT] * 25)
    assert visible(browser, ".plait-diagram .row.current rect", ".diagram")
    assert visible(browser, ".card.acting", ".state")


def test_page_fits_a_laptop(opened: Open) -> None:
    browser = opened(samples.long())
    wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")  # type: ignore[no-untyped-call]
    assert wide <= 0


@pytest.fixture
def phone(browser: WebDriver) -> Iterator[WebDriver]:
    """A window of 390 pixels."""
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)  # type: ignore[no-untyped-call]
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})  # type: ignore[no-untyped-call]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paxos", "long"])
def test_a_phone_shows_the_step_and_readable_labels(phone: WebDriver, opened: Open, name: str) -> None:
    browser = opened(samples.SAMPLES[name]())
    press(browser, Keys.END)
    script = """
      const now = document.querySelector(".now"), label = document.querySelector(".plait-diagram .event .does");
      return [document.documentElement.scrollWidth - innerWidth, now.scrollWidth - now.clientWidth,
              now.clientWidth, parseFloat(getComputedStyle(now).fontSize), label.getBoundingClientRect().height];
    """
    page, hidden, wide, size, label = browser.execute_script(script)  # type: ignore[no-untyped-call]
    assert page <= 0
    assert hidden <= 0
    assert wide > 300
    assert size >= 13
    assert label >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_texts_of_a_diagram_do_not_collide(browser: WebDriver, tmp_path: Path, name: str) -> None:
    """The layout guesses how wide text is; here are the real letters."""
    page = tmp_path / "trace.svg"
    trace = msgspec.structs.replace(samples.SAMPLES[name](), marks=[Mark(0, "phase 1, round Estimate")])
    page.write_text(space_time(trace), encoding="utf-8")
    browser.get(page.as_uri())
    script = """
      const turned = e => e.hasAttribute("transform");
      const texts = [...document.querySelectorAll("text")].map(e => [e.textContent, e.getBBox(), turned(e)]);
      const bad = [], wide = document.documentElement.viewBox.baseVal.width;
      texts.filter(t => !t[2]).forEach(([one, a], i, all) => {
        if (a.x < 0 || a.x + a.width > wide) bad.push(one);
        for (const [other, b] of all.slice(i + 1))
          if (a.x < b.x + b.width - 1 && b.x < a.x + a.width - 1 && a.y < b.y + b.height - 4 && b.y < a.y + a.height - 4)
            bad.push(one + " / " + other);
      });
      return bad;
    """
    assert browser.execute_script(script) == []  # type: ignore[no-untyped-call]


@pytest.mark.slow
def test_hostile_model_runs_nothing(opened: Open) -> None:
    browser = opened(samples.hostile())
    press(browser, Keys.END)
    assert shown(browser) == 2
    assert browser.find_element(By.CSS_SELECTOR, ".card h4").text == samples.HOSTILE
    assert not browser.find_elements(By.TAG_NAME, "img")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "parameters"), [("examples/two_messages.py", {}), ("examples/lease.py", {}),
                                                    ("two_phase_commit", {"resource_managers": 2})])  # fmt: skip
def test_texts_of_a_state_graph_fit(
    browser: WebDriver, tmp_path: Path, target: str, parameters: dict[str, object]
) -> None:
    """The layout guesses how wide text is; here are the real letters."""
    root = Path(__file__).parents[2]
    system = load(str(root / target) if "/" in target else target, parameters, parse=False)
    page = tmp_path / "graph.svg"
    page.write_text(graph_svg(state_graph(system)), encoding="utf-8")
    browser.get(page.as_uri())
    script = """
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
    """
    assert browser.execute_script(script) == []  # type: ignore[no-untyped-call]
