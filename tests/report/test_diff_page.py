"""The page of `plait diff --html` in a real browser: a faulty Raft and its fix, side by side, as a person reads them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Browser, Page, expect

from plait import Trace, check
from plait.check.explain.execute import retraced
from plait.kernel.alignment import Alignment, align
from plait.kernel.renaming import by_position, renamed
from plait.protocols.raft import raft
from plait.report.diff_html import diff_page
from tests.support.browser import LOOKS, tab, violations

pytestmark = pytest.mark.slow


@cache
def runs() -> tuple[Trace, Trace, Alignment]:
    """A run of a Raft whose servers forget their votes, and the steps that a correct Raft takes of it."""
    faulty = check(raft(faulty="vote")).trace
    assert faulty is not None
    fixed = retraced(raft(), faulty)
    fixed = renamed(fixed, by_position([lane.name for lane in fixed.lanes], [lane.name for lane in faulty.lanes]))
    return faulty, fixed, align(faulty, fixed)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    faulty, fixed, found = runs()
    made = tmp_path / "diff.html"
    made.write_text(diff_page(faulty, fixed, found, ("a.itf.json", "raft"), {}), encoding="utf-8")
    return made


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    with tab(browser) as opened:
        opened.goto(file.as_uri())
        yield opened


def numbers(page: Page, side: str) -> list[str]:
    """The numbers of the marked row: of one run, or nothing if it has a gap there."""
    return page.get_by_role("figure", name=f"run {side}").locator(".drawn .row.current text").all_text_contents()


def test_stepping_moves_both_runs_to_the_aligned_rows(page: Page) -> None:
    _, _, found = runs()
    assert page.locator(".viewer").get_attribute("data-current") == str(found.common + 1), "it opens at the difference"
    page.keyboard.press("Home")
    for row in found.rows:
        page.keyboard.press("ArrowRight")
        shown = ["" if i is None else str(i + 1) for i in (row.first, row.second)]
        assert [*numbers(page, "A"), *numbers(page, "B")] == shown
    tops = [
        figure.locator(".drawn .row").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().top)")
        for figure in page.get_by_role("figure").all()
    ]
    assert tops[0] == tops[1], "rows are side by side"
    assert len(tops[0]) == len(found.rows) + 1


def test_steps_are_marked_as_the_alignment_says(page: Page) -> None:
    _, _, found = runs()
    alone = [row.first + 1 for row in found.rows if row.relation == "one" and row.first is not None]
    drawn = page.get_by_role("figure", name="run A").locator(".event.alone title").all_text_contents()
    assert [int(text.split()[1].rstrip(":")) for text in drawn] == alone
    assert page.get_by_role("figure", name="run B").locator(".event.alone").count() == 0
    assert page.locator(".steplist li.alone").count() == len(alone)


def test_keys_for_differences(page: Page) -> None:
    _, _, found = runs()
    page.keyboard.press("Home")
    page.keyboard.press("]")
    expect(page.locator(".now")).to_contain_text(f"A step {found.common + 1} of 6, only in A")
    page.keyboard.press("End")
    page.keyboard.press("]")
    expect(page.locator(".said")).to_have_text("no difference after this step")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next difference")


def test_the_states_of_both_runs(page: Page) -> None:
    """At the end, exactly the fields that the alignment names differ."""
    _, _, found = runs()
    page.keyboard.press("End")
    shown = {
        f"{card.locator('thead th').first.text_content()}.{name}"
        for card in page.locator(".pair-card").all()
        for name in card.locator("tr.differs th").all_text_contents()
    }
    assert shown == {f"{d.lane}.{d.field}" for d in found.end}
    page.get_by_label("only what differs").check()
    assert len(page.locator(".pair-card tbody tr").all()) == len(found.end)
    page.keyboard.press("Home")
    expect(page.locator(".panel-state")).to_contain_text("The states are the same.")


def test_search_filter_notes_and_links(page: Page) -> None:
    faulty, _, _ = runs()
    votes = [i for i, event in enumerate(faulty.events, 1) if event.label == "vote"]
    page.keyboard.press("/")
    page.keyboard.type("handler:vote")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    assert page.locator(".steplist li").count() == len(votes)
    for figure in page.get_by_role("figure").all():
        assert figure.locator(".drawn .row").count() == len(votes)
    page.keyboard.press("m")
    page.keyboard.type("here")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("x")
    address = page.get_by_role("dialog").get_by_role("textbox").input_value()
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator(".own-note")).to_have_text("here")
    assert page.locator(".steplist li").count() == len(votes)


def test_scrolling_moves_both_diagrams(browser: Browser, file: Path) -> None:
    with tab(browser, viewport={"width": 1000, "height": 520}) as page:
        page.goto(file.as_uri())
        page.keyboard.press("Home")
        for _ in range(9):
            page.keyboard.press("+")
        page.locator(".diagram").first.evaluate("pane => { pane.scrollTop = 120 }")
        page.wait_for_function("[...document.querySelectorAll('.diagram')].every(pane => pane.scrollTop === 120)")


def test_exports_have_both_runs(page: Page) -> None:
    faulty, fixed, _ = runs()
    page.keyboard.press("x")
    saved = {}
    for name in ("SVG", "Mermaid (B)", "Text"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        saved[name] = Path(download.value.path()).read_text(encoding="utf-8")
    drawing = ET.fromstring(saved["SVG"])
    events = [e for e in drawing.iter() if (e.get("class") or "").startswith("event ")]
    assert len(events) == len(faulty) + len(fixed)
    assert saved["Mermaid (B)"].count("Note over") == len(fixed)
    assert "4 –  ForgetfulServer2 vote" in saved["Text"]


@LOOKS
def test_every_look(browser: Browser, file: Path, look: dict[str, object]) -> None:
    with tab(browser, **look) as page:
        page.goto(file.as_uri())
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        boxes = [e.bounding_box() for e in page.locator(".pair figure, .tabs").all()]
        for one, other in itertools.pairwise(boxes):
            assert one is not None
            assert other is not None
            right, below = other["x"] >= one["x"] + one["width"] - 1, other["y"] >= one["y"] + one["height"] - 1
            assert right or below, "panes do not cover each other"


def test_print_and_no_script_have_every_step(browser: Browser, page: Page, file: Path) -> None:
    faulty, fixed, found = runs()
    page.emulate_media(media="print")
    expect(page.locator(".drawn .row")).to_have_count(2 * (len(found.rows) + 1))
    assert page.locator(".steplist li").count() == len(found.rows) + 1
    assert not page.locator(".controls").is_visible()
    with tab(browser, java_script_enabled=False) as plain:
        plain.goto(file.as_uri())
        assert plain.locator(".plait-diagram .event").count() == len(faulty) + len(fixed)
        assert plain.locator(".steps2 tr").count() == len(found.rows) + 1
