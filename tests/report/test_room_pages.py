"""The pages of bmc, rounds and epa in a real browser: the same viewer, with what each of them has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from plait.bmc import check, load
from plait.bmc.program.definition import Program
from plait.epa.campaign import Header, Result, summarize
from plait.epa.comparison import Comparison, Deviation, Line, Link, Spot
from plait.epa.faults import Fault
from plait.epa.output.html import campaign_html, comparison_html, reversibility_html
from plait.epa.reversibility import Reversibility, Witness
from plait.kernel.trace import Event, Lane, Mark, Snapshot, Trace
from plait.kernel.verdict import Statistics, Verdict
from plait.report.html import report, trace_page
from plait.report.space_time.text import draw
from plait.report.viewer import POLICY
from plait.report.wording import access_lines
from tests.report import samples
from tests.support.browser import LOOKS, tab, violations
from tests.support.threaded_programs import counter, embrace, guess, traced

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def philosophers() -> Verdict:
    """Two neighbours eat together: they test the forks before they lock the table."""
    return check(load("philosophers", {"n": 3}), depth=10)


@contextmanager
def shown(browser: Browser, tmp_path: Path, html: str, **look: object) -> Iterator[Page]:
    file = tmp_path / "page.html"
    file.write_text(html, encoding="utf-8")
    with tab(browser, **look) as page:
        page.goto(file.as_uri())
        yield page


@LOOKS
def test_bmc_shows_the_accesses_to_shared_memory(
    browser: Browser, tmp_path: Path, philosophers: Verdict, look: dict[str, object]
) -> None:
    trace = philosophers.trace
    assert trace is not None
    with shown(browser, tmp_path, report(philosophers), **look) as page:
        page.keyboard.press("Home")
        for step, event in enumerate(trace.events, 1):
            page.keyboard.press("ArrowRight")
            expect(page.locator(".now")).to_contain_text(f"step {step} of {len(trace)}: {event.lane} ")
        page.emulate_media(media="print")  # then all rows are drawn
        expect(page.locator(".drawn .row")).to_have_count(len(trace) + 1)
        kinds = {"lock": "writes", "unlock": "writes", "assume": "reads", "eating": None, "atomic": "writes"}
        for step, event in enumerate(trace.events, 1):
            found = page.locator(f'.access[data-step="{step}"]')
            how = kinds[re.match(r"\w+", event.label)[0]]  # type: ignore[index]
            assert found.count() == (how is not None), event.label
            if how is not None:
                assert found.get_attribute("class") == f"access {how}"
        page.emulate_media(media="screen")
        assert violations(page) == []
        page.keyboard.press("?")
        assert "message" not in page.locator("body").inner_text().lower(), "a program with shared memory has none"
        assert "message:" not in (page.locator("input[type=search]").get_attribute("title") or "")


@LOOKS
@pytest.mark.parametrize(("make", "name"), [(counter, "assertions"), (embrace, "deadlock"), (guess, "assertions")])
def test_bmc_shows_places_and_values(
    browser: Browser, tmp_path: Path, make: Callable[[], Program], name: str, look: dict[str, object]
) -> None:
    trace = traced(make(), name)
    with shown(browser, tmp_path, trace_page(trace), **look) as page:
        page.emulate_media(media="print")  # then all rows are drawn
        for step, event in enumerate(trace.events, 1):
            values = page.locator(f'.drawn .access[data-step="{step}"] text.value')
            assert values.all_text_contents() == access_lines(trace, event, "shared")
            item = page.locator(f'.steplist li[data-step="{step}"]').inner_text()
            assert event.label in item
            assert not event.place or f"{event.place.file.rpartition('/')[2]}:{event.place.line}" in item
        # No text of the drawing covers another one.
        boxes = page.eval_on_selector_all(
            ".drawn .access text, .drawn .event text",
            "all => all.map(t => [t.getBBox().x, t.getBBox().y, t.getBBox().width, t.getBBox().height])",
        )
        for i, (x, y, wide, high) in enumerate(boxes):
            for x2, y2, wide2, high2 in boxes[i + 1 :]:
                apart = x + wide <= x2 or x2 + wide2 <= x or y + high <= y2 + 3 or y2 + high2 <= y + 3
                assert apart, "lines of a label may touch, with the room for letters below the line"
        page.emulate_media(media="screen")
        assert violations(page) == []
        page.keyboard.press("?")
        said = page.locator("body").inner_text().lower()
        assert not re.findall("message|inbox|handler|pending|lost|sends", said)


def test_bmc_in_a_terminal_has_no_messages(philosophers: Verdict) -> None:
    assert philosophers.trace is not None
    said = "\n".join(draw(philosophers.trace, 200))
    assert "message" not in said
    assert "◇ reads" in said


@LOOKS
def test_rounds_are_boundaries(browser: Browser, tmp_path: Path, look: dict[str, object]) -> None:
    trace = samples.paxos()
    trace = msgspec.structs.replace(trace, marks=[Mark(0, "phase 1, round Prepare"), Mark(6, "phase 1, round Propose")])
    with shown(browser, tmp_path, report(samples.verdict(trace)), **look) as page:
        page.emulate_media(media="print")
        expect(page.locator(".drawn .boundary text")).to_have_text([mark.label for mark in trace.marks])
        steps = page.locator(".steplist li:has(.boundary)")
        assert [e.get_attribute("data-step") for e in steps.all()] == ["1", "7"]


def threads() -> Trace:
    """A recorded run: threads have no fields."""
    empty = Snapshot(fields={"T_0": {}, "T_0_0": {}})
    events = [Event("T_0", "step", "create T_0_0", empty), Event("T_0_0", "step", "lock m", empty)]
    lanes = [Lane("T_0", "thread"), Lane("T_0_0", "thread")]
    return Trace("run.trace", {}, "equal traces", lanes, [], empty, events)


def test_a_recorded_run_has_no_empty_states(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, trace_page(threads(), "Synchronisation")) as page:
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".now")).to_have_text("step 1 of 2: T_0 create T_0_0")
        assert page.locator(".card").count() == 0


def compared() -> Comparison:
    line = Line("add <4>", "add <5>", "a.c:8", True)
    spots = [Spot("T_0", n, f"load {n}", f"a.c:{n}", 20 - n, n == 0) for n in range(16)]
    links = [Link(n, n + 1, "memory" if n % 2 else "register", f"x{n}", (n * 7) % 16, False) for n in range(15)]
    verdict = Verdict("violated", Statistics(0, 0, 0, 0, 0.0, 0, "comparison", 1), [], trace=threads())
    deviation = Deviation("T_0", line, 3, False, 1, 0, 0, [line])
    equal = [Deviation(name, None, None, False, 0, 0, 0, []) for name in ("T_0_0", "T_0_1")]
    new = Line(None, "enter <f>", "a.c:1", True)
    extra = Deviation("T_0_2", new, 0, False, 0, 0, 9, [new])
    every = [deviation, *equal, extra]
    runs = "g.trace", "f.trace", None, "exit code 0"
    return Comparison(
        verdict, False, True, [], checked("holds"), *runs, True, ["stdout"], every, spots, links, ["printf"]
    )


@LOOKS
def test_a_comparison_of_epa(browser: Browser, tmp_path: Path, look: dict[str, object]) -> None:
    html = comparison_html(compared())
    assert POLICY in html
    with shown(browser, tmp_path, html, **look) as page:
        assert page.locator("tr.differs:visible td").all_text_contents() == ["add <4>", "add <5>", "a.c:8"]
        # Threads that are equal, or that only one run has, are folded.
        for title, content in (
            ("2 of 4 threads are equal", "T_0_0, T_0_1"),
            ("T_0_2: only the faulty run", "enter <f>"),
        ):
            assert not page.get_by_text(content).is_visible()
            page.get_by_text(title).click()
            expect(page.get_by_text(content)).to_be_visible()
        page.get_by_text("All 15 links").click()
        times = page.locator(".sortable tbody tr td:nth-child(4)")
        page.get_by_role("button", name="times").click()
        assert [int(t) for t in times.all_text_contents()] == sorted((n * 7) % 16 for n in range(15))
        page.get_by_role("button", name="times").click()
        assert [int(t) for t in times.all_text_contents()] == sorted(((n * 7) % 16 for n in range(15)), reverse=True)
        assert violations(page) == []
        page.get_by_label("Filter the rows").fill("register")
        assert page.locator(".sortable tbody tr:visible").count() == 8
        page.locator(".viewer .diagram").focus()
        page.keyboard.press("Home")
        expect(page.locator(".now")).to_have_text("step 0 of 2: initial state")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def checked(status: Literal["holds", "violated", "inconclusive"]) -> Reversibility:
    trace = threads() if status == "violated" else None
    bound = "the trace was <cut> off" if status == "inconclusive" else None
    statistics = Statistics(7, 0, 0, 0, 0.0, 0, "vector clocks", 1)
    verdict = Verdict(status, statistics, [], model="run.trace", trace=trace, bound=bound)
    places = "T_0 writes <1> at a.c:3", "T_0_0 reads 1 at a.c:4", "a.c:3", "a.c:4"
    witnesses = [Witness("next", *places, ["lock"], ["T_0 start"], "join T_0")] if trace else []
    return Reversibility(verdict, witnesses, ["rand at <a.c:5>"], ["strange"], ["same <files>"], 3, 2, 9, 0, [])


@LOOKS
@pytest.mark.parametrize("status", ["holds", "violated", "inconclusive"])
def test_a_check_of_epa(
    browser: Browser, tmp_path: Path, status: Literal["holds", "violated", "inconclusive"], look: dict[str, object]
) -> None:
    html = reversibility_html(checked(status))
    assert POLICY in html
    with shown(browser, tmp_path, html, **look) as page:
        expect(page.locator(".badge")).to_have_text(status.upper())
        expect(page.get_by_text("rand at <a.c:5>")).to_be_visible()
        expect(page.get_by_text("strange")).to_be_visible()
        expect(page.get_by_text("same <files>")).to_be_visible()
        assert page.get_by_text("T_0 writes <1> at a.c:3").count() == (status == "violated")
        assert page.get_by_text("the trace was <cut> off").count() == (status == "inconclusive")
        assert page.locator(".viewer").count() == (status == "violated")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@LOOKS
def test_a_campaign_of_epa(browser: Browser, tmp_path: Path, look: dict[str, object]) -> None:
    outcomes: list[Literal["crash", "hang", "sdc", "masked", "none"]] = ["crash", "sdc", "masked", "none"]
    results = [
        Result(n, Fault("bitflip", 4, f"T_<{n}>", 2, 8), outcomes[n % 4], True, n % 4 < 3, True, n / 8, "a.c:8")
        for n in range(20)
    ]
    header = Header("a.epa", "", ["<2>"], ["bitflip"], 20, 7)
    html = campaign_html(summarize(header, results), results)
    assert POLICY in html
    with shown(browser, tmp_path, html, **look) as page:
        expect(page.locator("h1")).to_contain_text("Campaign of a.epa <2>")
        first, runs = page.locator(".panel").all()
        assert first.locator("tbody td").all_text_contents()[:7] == ["bitflip", "20", "5", "0", "5", "5", "5"]
        # The heights of the bars are the shares of the outcomes.
        heights = [float(r.get_attribute("height") or 0) for r in first.locator("rect[width='64']").all()]
        assert heights == [65, 0, 65, 65]
        page.get_by_label("Filter the rows").fill("sdc")
        assert runs.locator("tbody tr:visible").count() == 5
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_comparison_without_a_script(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, tmp_path, comparison_html(compared()), java_script_enabled=False) as page:
        page.get_by_text("All 15 links").click()
        assert page.locator(".sortable tbody tr:visible").count() == 15
        assert page.locator(".plait-diagram .event").count() == 2
