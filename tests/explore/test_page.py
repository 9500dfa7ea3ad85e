"""The page of `plait explore` in a real browser: each thing that it promises, done as a person does it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.explore.pages import at, page, paxos, take
from tests.support.browser import browser

pytestmark = pytest.mark.slow
__all__ = ["browser", "page", "paxos"]


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


def test_without_the_secret(browser: Browser, paxos: str) -> None:
    profile = browser.new_context()
    page = profile.new_page()
    page.goto(paxos.split("?")[0])
    expect(page.get_by_role("alert")).to_contain_text("needs the address that `plait explore` printed")
    profile.close()
