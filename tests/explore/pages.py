"""What the tests of the page have in common: servers, an open page, and how a person takes a step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.explore.server import Served, explored
from tests.support.browser import tab


def address(served: Served) -> str:
    """The address of the page."""
    return f"http://127.0.0.1:{served.port}/?secret={served.secret}"


def origin(of: str) -> str:
    """The address without the secret."""
    return of.split("?")[0]


@pytest.fixture(scope="module")
def paxos() -> Iterator[str]:
    """The address of a faulty Paxos."""
    with explored("paxos", "-p", "faulty=acceptor") as served:
        yield address(served)


@pytest.fixture
def page(browser: Browser, paxos: str) -> Iterator[Page]:
    """The page of the faulty Paxos."""
    with tab(browser, allowed=(origin(paxos),), accept_downloads=True) as opened:
        opened.goto(paxos)
        at(opened, 0, 0)
        yield opened


def at(page: Page, step: int, last: int) -> None:
    """Wait until the page shows this step of a run of this length, with the enabled steps there."""
    expect(page.locator(".now")).to_contain_text(f"step {step} of {last}:")
    expect(page.get_by_role("tab", name="Next (")).to_be_visible()


def last_step(page: Page) -> int:
    """The length of the run that is shown."""
    return int(page.locator("input[type=range]").get_attribute("max") or 0)


def take(page: Page, lane: str, handler: str, text: str = "") -> None:
    """Take the first step of a handler."""
    page.get_by_role("tab", name="Next").click()
    steps = page.locator(".next").get_by_role("region", name=lane, exact=True).locator("button.take")
    steps.filter(has_text=handler).filter(has_text=text).first.click()


def found(page: Page, *, kind: str = "Check properties", here: bool = False, **chosen: str) -> Locator:
    """Begin a search with the dialog, and go to its result. `chosen`: fields of the dialog by label."""
    page.get_by_role("button", name="Find", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(kind).check()
    if here:
        dialog.get_by_label("this state").check()
    for label, value in chosen.items():
        name = label.replace("_", " ")
        if name == "A Python expression":
            dialog.get_by_role("textbox", name=name).fill(value)
        else:
            dialog.get_by_role("combobox", name=name).select_option(value)
    dialog.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("tab", name="Find").click()
    return page.locator(".findings li").first


def ended(finding: Locator, text: str) -> None:
    """Wait for the end of a search, with this text."""
    expect(finding).to_have_class(re.compile("done"))
    expect(finding).to_contain_text(text)


def closed(page: Page) -> None:
    """Close the dialog."""
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
