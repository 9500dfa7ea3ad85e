"""The page of `plait explore` in a real browser: each thing that it promises, done as a person does it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import PHONE, browser, tab, violations

server = pytest.importorskip("tests.explore.server")
pytestmark = pytest.mark.slow
__all__ = ["browser"]

LOOKS = pytest.mark.parametrize("look", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])


@pytest.fixture(scope="module")
def paxos() -> Iterator[str]:
    """The address of a faulty Paxos."""
    with server.explored("paxos", "-p", "faulty=acceptor") as served:
        yield f"http://127.0.0.1:{served.port}/?secret={served.secret}"


@pytest.fixture
def page(browser: Browser, paxos: str) -> Iterator[Page]:
    origin = paxos.split("?")[0]
    with tab(browser, allowed=(origin,)) as opened:
        opened.goto(paxos)
        at(opened, 0, 0)
        yield opened


def at(page: Page, step: int, last: int) -> None:
    """Waits until the page shows this step of a run of this length, with the enabled steps there."""
    expect(page.locator(".now")).to_contain_text(f"step {step} of {last}:")
    expect(page.get_by_role("tab", name="Next (")).to_be_visible()


def take(page: Page, lane: str, handler: str, text: str = "") -> None:
    page.get_by_role("tab", name="Next").click()
    steps = page.locator(".next").get_by_role("region", name=lane, exact=True).locator("button.take")
    steps.filter(has_text=handler).filter(has_text=text).first.click()


def test_walk(page: Page) -> None:
    """Take steps, undo, redo, jump, and keep branches."""
    take(page, "Proposer0", "start")
    at(page, 1, 1)
    assert page.locator(".drawn .event").count() == 1, "the diagram grows"
    expect(page.locator(".card.acting h4")).to_have_text("Proposer0")
    expect(page.locator(".card.acting .changed th")).to_have_text("phase")
    take(page, "Acceptor0", "promise")
    at(page, 2, 2)
    page.keyboard.press("u")
    at(page, 1, 1)
    page.keyboard.press("r")
    at(page, 2, 2)
    page.keyboard.press("ArrowLeft")
    at(page, 1, 2)
    take(page, "Acceptor1", "promise")
    at(page, 2, 2)
    page.keyboard.press("t")
    expect(page.locator(".branches li")).to_have_count(4)
    page.locator(".branches").get_by_role("button", name="Acceptor0 promise").first.click()
    at(page, 2, 2)
    expect(page.locator(".now")).to_contain_text("Acceptor0 promise")
    page.keyboard.press("Home")
    at(page, 0, 2)
    page.keyboard.press("2")
    at(page, 1, 1)
    expect(page.locator(".now")).to_contain_text("Proposer1 start")


def test_why_a_step_is_not_possible(page: Page) -> None:
    lane = page.locator(".next").get_by_role("region", name="Proposer0", exact=True)
    lane.locator("summary").click()
    expect(lane.locator(".disabled dt")).to_have_text(["read"])
    expect(lane.locator(".disabled dd").first).not_to_be_empty()


def test_source_properties_and_watches(page: Page) -> None:
    take(page, "Proposer0", "start")
    at(page, 1, 1)
    page.keyboard.press("s")
    expect(page.locator(".source tr.executed").first).to_be_visible()
    page.keyboard.press("p")
    expect(page.locator(".evaluated tbody th").first).to_contain_text("agreement")
    page.keyboard.press("w")
    page.keyboard.type("1 + 1")
    page.keyboard.press("Enter")
    expect(page.locator(".evaluated code.value")).to_have_text("2")
    page.keyboard.press("w")
    page.locator(".watch-input").fill("__import__('os')")
    page.keyboard.press("Enter")
    expect(page.locator(".evaluated .bad")).not_to_be_empty()


def test_find_a_violation_and_fork_it(page: Page) -> None:
    page.keyboard.press("c")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("tab", name="Find").click()
    found = page.locator(".findings li").first
    expect(found).to_contain_text("agreement", timeout=60_000)
    found.get_by_role("button", name="Open the run").click()
    expect(page.locator(".now")).not_to_contain_text("step 0 of 0")
    last = int(page.locator("input[type=range]").get_attribute("max") or 0)
    at(page, last, last)
    page.keyboard.press("p")
    expect(page.locator(".evaluated td.violated")).to_contain_text("violated")
    page.keyboard.press("Home")
    at(page, 0, last)
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    at(page, last - 1, last)
    page.get_by_role("tab", name="Next").click()
    steps = page.locator("button.take:not(:has-text('walked before'))")
    steps.first.click()
    at(page, last, last)
    page.keyboard.press("t")
    expect(page.locator(".branches li")).to_have_count(last + 2)


def test_find_a_state_and_count_ways(page: Page) -> None:
    page.keyboard.press("c")
    page.get_by_label("Find a state where").check()
    page.get_by_label("A Python expression").fill("1 == 2")
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="Find").click()
    expect(page.locator(".findings li.done")).to_contain_text("A state where 1 == 2", timeout=60_000)
    take(page, "Proposer0", "start")
    at(page, 1, 1)
    page.keyboard.press("c")
    page.get_by_label("How many different ways").check()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator(".findings li.done")).to_have_count(2, timeout=60_000)
    expect(page.locator(".findings li").first).to_contain_text("1")


def test_the_graph_of_a_projection(page: Page) -> None:
    page.keyboard.press("v")
    page.get_by_label("A node is").select_option("fields")
    page.get_by_label("Proposer.phase").check()
    page.get_by_role("button", name="Draw").click()
    graph = page.locator(".plait-graph")
    expect(graph).to_be_visible(timeout=60_000)
    assert graph.locator(".node.initial").count() == 1
    assert violations(page) == []
    graph.get_by_role("button").last.click()
    expect(page.locator(".drawn .event").first).to_be_visible()


def test_coverage_on_the_source(page: Page) -> None:
    page.get_by_role("tab", name="Coverage").click()
    expect(page.locator(".source tr.covered").first).to_be_visible(timeout=60_000)


def test_a_link_restores_the_run_and_its_notes(page: Page, browser: Browser, paxos: str) -> None:
    take(page, "Proposer0", "start")
    at(page, 1, 1)
    take(page, "Acceptor0", "promise")
    at(page, 2, 2)
    page.keyboard.press("m")
    page.keyboard.type("the first promise")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("x")
    address = page.get_by_role("dialog").get_by_role("textbox").input_value()
    with tab(browser, allowed=(paxos.split("?")[0],)) as other:
        other.goto(address)
        at(other, 2, 2)
        other.get_by_role("tab", name="Steps").click()
        expect(other.locator(".own-note")).to_have_text("the first promise")


def test_exports_of_the_server(page: Page) -> None:
    take(page, "Proposer0", "start")
    at(page, 1, 1)
    page.keyboard.press("x")
    saved = {}
    for name in ("ITF", "pytest test", "Trace (JSON)"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        saved[name] = Path(download.value.path()).read_text(encoding="utf-8")
    assert '"#meta"' in saved["ITF"]
    ast.parse(saved["pytest test"])
    assert "start" in saved["Trace (JSON)"]


@LOOKS
def test_every_look_and_nothing_serious_for_assistive_technology(
    browser: Browser, paxos: str, look: dict[str, object]
) -> None:
    with tab(browser, allowed=(paxos.split("?")[0],), **look) as page:
        page.goto(paxos)
        at(page, 0, 0)
        page.keyboard.press("1")
        at(page, 1, 1)
        wide = (page.viewport_size or {})["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= wide
        for name in ("Next", "Steps", "Tree", "Source", "State", "Properties", "Find"):
            page.get_by_role("tab", name=name).click()
            assert violations(page) == [], name
        for key in ("?", "c", "i", "x", "l", "m"):
            page.keyboard.press(key)
            expect(page.get_by_role("dialog")).to_be_visible()
            assert violations(page) == [], key
            page.keyboard.press("Escape")


MODEL = """
from plait import Process, System, action

class Counter(Process):
    n: int = 0

    @action(when=lambda self: self.n < {limit})
    def up(self):
        self.n += 1

model = System([Counter()])
"""


def test_edit_and_see(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL.format(limit=5))
    with server.explored("model.py", folder=tmp_path) as served:
        origin = f"http://127.0.0.1:{served.port}/"
        with tab(browser, allowed=(origin,)) as page:
            page.goto(f"{origin}?secret={served.secret}")
            at(page, 0, 0)
            for step in range(1, 5):
                page.keyboard.press("1")
                at(page, step, step)
            file.write_text(MODEL.format(limit=2))
            expect(page.locator(".banner")).to_contain_text("The run ends at step 2")
            at(page, 2, 2)
            file.write_text("syntax error")
            expect(page.locator(".banner.error")).to_contain_text("SyntaxError")
            file.write_text(MODEL.format(limit=3))
            expect(page.locator(".banner.error")).to_have_count(0)
            page.keyboard.press("1")
            at(page, 3, 3)


def test_without_the_secret(browser: Browser, paxos: str) -> None:
    profile = browser.new_context()
    page = profile.new_page()
    page.goto(paxos.split("?")[0])
    expect(page.get_by_role("alert")).to_contain_text("needs the address that `plait explore` printed")
    profile.close()
