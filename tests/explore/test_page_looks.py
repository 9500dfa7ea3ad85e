"""Every screen in light, in dark and on a phone: nothing overflows, and axe-core finds nothing serious."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.explore.pages import at, closed, origin, paxos
from tests.support.browser import LOOKS, browser, tab, violations

pytestmark = pytest.mark.slow
__all__ = ["browser", "paxos"]


def fits(page: Page) -> None:
    wide = (page.viewport_size or {})["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= wide


@LOOKS
def test_every_panel_and_dialog(browser: Browser, paxos: str, look: dict[str, object]) -> None:
    with tab(browser, allowed=(origin(paxos),), **look) as page:
        page.goto(paxos)
        at(page, 0, 0)
        page.keyboard.press("1")
        at(page, 1, 1)
        fits(page)
        for name in ("Next", "Steps", "Tree", "Source", "Coverage", "State", "Properties", "Find"):
            page.get_by_role("tab", name=name).click()
            if name == "Coverage":
                expect(page.locator(".source tr.covered").first).to_be_visible()
            assert violations(page) == [], name
            fits(page)
        for key in ("?", "c", "i", "x", "l", "m", "g"):
            page.keyboard.press(key)
            expect(page.get_by_role("dialog")).to_be_visible()
            assert violations(page) == [], key
            fits(page)
            closed(page)
        page.keyboard.press("v")
        page.get_by_label("A node is").select_option("fields")
        page.get_by_label("Proposer.phase").check()
        page.get_by_role("button", name="Draw").click()
        expect(page.locator(".plait-graph")).to_be_visible()
        assert violations(page) == []
        fits(page)
