"""Find, and see the whole, in a real browser: searches, lassos, state graphs, coverage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from plait import check
from plait.model.loading.loader import load
from tests.explore.pages import address, at, closed, ended, found, last_step, origin, page, paxos, take
from tests.explore.server import explored
from tests.oracle.explorer import explore
from tests.support.browser import browser, tab, violations

pytestmark = pytest.mark.slow
__all__ = ["browser", "page", "paxos"]


def test_find_a_violation_and_fork_it(page: Page) -> None:
    finding = found(page)
    ended(finding, "agreement")
    finding.get_by_role("button", name="Open the run").click()
    expect(page.locator(".now")).not_to_contain_text("step 0 of 0")
    last = last_step(page)
    at(page, last, last)
    page.keyboard.press("p")
    expect(page.locator(".evaluated td.violated")).to_contain_text("violated")
    page.keyboard.press("Home")
    at(page, 0, last)
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    at(page, last - 1, last)
    page.get_by_role("tab", name="Next").click()
    page.locator("button.take:not(:has-text('walked before'))").first.click()
    at(page, last, last)
    page.keyboard.press("t")
    expect(page.locator(".branches li")).to_have_count(last + 2)


def test_check_from_here(page: Page) -> None:
    """The violation that it finds begins with the steps that were walked."""
    take(page, "Proposer1", "start")
    at(page, 1, 1)
    finding = found(page, here=True)
    ended(finding, "agreement is violated")
    expect(finding).to_contain_text("from step 1")
    finding.get_by_role("button", name="Open the run").click()
    expect(page.locator(".now")).not_to_contain_text("of 1:")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".now")).to_contain_text("Proposer1 start")


def test_find_a_state_where(page: Page) -> None:
    ended(found(page, kind="Find a state where", A_Python_expression="1 == 2"), "is true in no state")
    finding = found(page, kind="Find a state where", A_Python_expression="any(l.learned for l in s[Learner])")
    ended(finding, "is true after")
    finding.get_by_role("button", name="Open the run").click()
    expect(page.locator(".now")).to_contain_text("learn")
    page.keyboard.press("w")
    page.keyboard.type("[l.learned for l in s[Learner]]")
    page.keyboard.press("Enter")
    expect(page.locator(".evaluated code.value")).not_to_have_text(re.compile(r"^\[(None(, )?)*\]$"))
    wrong = found(page, kind="Find a state where", A_Python_expression="open('x')")
    expect(wrong).to_contain_text("the virtual machine cannot run open")


def test_can_this_process_still(page: Page) -> None:
    finding = found(page, kind="Can a process still", Process="Learner0", Handler="learn")
    ended(finding, "Learner0 can run learn after")
    finding.get_by_role("button", name="Open the run").click()
    expect(page.locator(".now")).to_contain_text("Learner0 learn")
    page.keyboard.press("Home")
    take(page, "Proposer0", "start")
    expect(page.locator(".now")).to_contain_text("Proposer0 start")
    ended(found(page, kind="Can a process still", here=True, Process="Proposer0", Handler="start"), "can never run")


def test_how_many_ways_lead_here(browser: Browser) -> None:
    """Three counters up to 2: the ways to (2, 2, 2) are 6! / (2! 2! 2!)."""
    with explored(str(Path(__file__).parent / "counters.py")) as served:
        own = address(served)
        with tab(browser, allowed=(origin(own),)) as page:
            page.goto(own)
            at(page, 0, 0)
            for step in range(6):
                page.keyboard.press("1")
                at(page, step + 1, step + 1)
            expect(page.locator(".terminal")).to_contain_text("No step is possible")
            ended(found(page, kind="How many different ways"), "90 runs lead here")


def test_stop_a_search(browser: Browser) -> None:
    with explored("raft", "-p", "servers=5") as served:
        own = address(served)
        with tab(browser, allowed=(origin(own),)) as page:
            page.goto(own)
            at(page, 0, 0)
            finding = found(page, kind="Find a state where", A_Python_expression="False")
            expect(finding).to_contain_text("states")  # live progress
            expect(page.get_by_role("tab", name="Find (1 …)")).to_be_visible()
            page.keyboard.press("1")  # walking goes on meanwhile
            at(page, 1, 1)
            finding.get_by_role("button", name="Stop").click()
            ended(finding, "stopped")
            finding.get_by_role("button", name="remove").click()
            expect(page.locator(".findings li")).to_have_count(0)


@pytest.fixture(scope="module")
def ring() -> Iterator[str]:
    """The address of a leader election whose claims go round for ever."""
    with explored("chang_roberts", "-p", "faulty=greedy", "-p", "specification=live") as served:
        yield address(served)


@pytest.fixture
def ring_page(browser: Browser, ring: str) -> Iterator[Page]:
    with tab(browser, allowed=(origin(ring),)) as opened:
        opened.goto(ring)
        at(opened, 0, 0)
        yield opened


def test_a_lasso_opens_with_its_loop_once(ring_page: Page, browser: Browser, ring: str) -> None:
    """The loop is the one that a check finds, in the steps and in the diagram, and a link restores it."""
    page = ring_page
    system = load("chang_roberts", {"faulty": "greedy", "specification": "live"})
    trace = check(system, properties=["termination"]).trace
    assert trace is not None
    assert trace.loop is not None
    steps, before = len(trace), trace.loop
    finding = found(page, Property="termination")
    ended(finding, "termination")
    opens = finding.get_by_role("button", name="Open the run")
    expect(opens).to_have_text(f"Open the run ({steps} steps, of which {steps - before} repeat)")
    opens.click()
    at(page, steps, steps)
    expect(page.locator(".drawn .loop title")).to_have_text(f"Steps {before + 1} to {steps} repeat for ever")
    page.get_by_role("tab", name="Steps").click()
    expect(page.locator("p.loop")).to_contain_text(f"back to step {before + 1}")
    expect(page.locator(f".steplist li[data-step='{before + 1}'] .loop")).to_have_text("the loop starts here")
    page.keyboard.press("x")
    link = page.get_by_role("dialog").get_by_role("textbox").input_value()
    with tab(browser, allowed=(origin(ring),)) as other:
        other.goto(link)
        at(other, steps, steps)
        expect(other.locator(".drawn .loop title")).to_have_text(f"Steps {before + 1} to {steps} repeat for ever")
    # A step that leads on is no part of the lasso.
    closed(page)
    page.keyboard.press("k")
    at(page, steps - 1, steps)
    page.get_by_role("tab", name="Next").click()
    page.locator("button.take:not(:has-text('back to a state'))").first.click()
    at(page, steps, steps)
    expect(page.locator(".drawn .loop")).to_have_count(0)


def test_a_cycle_of_the_graph_is_folded_and_unfolded(ring_page: Page) -> None:
    page = ring_page
    page.keyboard.press("v")
    nodes = page.locator(".plait-graph .node")
    page.get_by_label("A node is").select_option("expression")
    page.get_by_label("a Python expression over the view s").fill("sorted((m.identity for m in s.messages))")
    page.get_by_role("button", name="Draw").click()
    expect(page.locator(".graph-page")).to_contain_text("nodes and")
    whole = nodes.count()
    page.get_by_label(re.compile("Fold .* cycle")).check()
    folded = page.locator(".plait-graph .node.folded").first
    expect(folded).to_contain_text("cycle of")
    expect(folded).to_contain_text("states")
    assert nodes.count() < whole
    assert violations(page) == []
    while (left := page.locator(".plait-graph .node.folded").count()) > 0:
        page.locator(".plait-graph .node.folded").first.click()
        expect(page.locator(".plait-graph .node.folded")).to_have_count(left - 1)
    expect(nodes).to_have_count(whole)
    page.get_by_label(re.compile("Fold .* cycle")).uncheck()
    expect(nodes).to_have_count(whole)


def drawn(page: Page) -> None:
    page.get_by_role("button", name="Draw").click()
    expect(page.locator(".plait-graph")).to_be_visible()
    expect(page.locator(".graph-page [role=status]")).to_contain_text("edges for")


@pytest.mark.parametrize("by", ["fields", "lanes", "expression"])
def test_a_collapsed_graph_leads_to_its_states(page: Page, by: str) -> None:
    """The nodes have all states of the model, and a click walks to a state of the node."""
    page.keyboard.press("v")
    page.get_by_label("A node is").select_option(by)
    watch = "[p.phase for p in s[Proposer]]"
    if by == "fields":
        page.locator(".projection").get_by_label("Proposer.phase").check()
    elif by == "lanes":
        page.locator(".projection").get_by_label("Learner0").check()
        watch = "s[Learner][0].learned"
    else:
        page.get_by_label("a Python expression over the view s").fill(watch)
    drawn(page)
    graph = page.locator(".plait-graph")
    states = check(load("paxos", {"faulty": "acceptor"}), keep_going=True).statistics.states
    expect(page.locator(".graph-page [role=status]")).to_contain_text(f"for {states:,} states")
    lines = graph.locator(".node").evaluate_all(
        "nodes => nodes.map((node) => [...node.querySelectorAll('text')].map((line) => line.textContent))"
    )
    counts = [re.fullmatch(r"([\d,]+) states", of[-1]) for of in lines]
    assert sum(int(count[1].replace(",", "")) if count else 1 for count in counts) == states
    expect(graph.locator(".node.initial")).to_have_count(1)
    expect(graph.locator(".node.violating").first).to_be_visible()
    expect(graph.locator(".node.terminal").first).to_be_visible()
    assert violations(page) == []
    last = graph.locator(".node").last
    value = lines[-1][0].rpartition(" = ")[2]
    last.click()
    expect(page.locator(".drawn .event").first).to_be_visible()
    page.keyboard.press("w")
    page.keyboard.type(watch)
    page.keyboard.press("Enter")
    expect(page.locator(".evaluated code.value")).to_contain_text(value.rstrip("…"))


def test_the_whole_graph_of_a_small_space(browser: Browser) -> None:
    with explored("ping_pong", "-p", "maximum=3") as served:
        own = address(served)
        with tab(browser, allowed=(origin(own),)) as page:
            page.goto(own)
            at(page, 0, 0)
            page.keyboard.press("v")
            drawn(page)
            assert page.locator(".plait-graph .node").count() == explore(load("ping_pong", {"maximum": "3"})).states


def test_coverage_on_the_source(page: Page) -> None:
    page.get_by_role("tab", name="Coverage").click()
    expect(page.locator(".source tr.covered").first).to_be_visible()
    expect(page.locator(".panel-coverage")).to_contain_text("handlers")
    assert violations(page) == []
