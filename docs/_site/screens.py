"""Takes the pictures of `plait explore` for the documentation: `python docs/_site/screens.py`.

It starts the server on a faulty Paxos (for views, on Raft), drives Debian's Chromium as a reader would, and writes
`docs/images/explore*.png`.
Look at the pictures before you commit them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "images"
LAPTOP = {"viewport": {"width": 1360, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}


def opened(browser: Browser, address: str, **context: object) -> Page:
    """The page, with a violation of agreement that a search found."""
    page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_selector(".take")
    page.keyboard.press("c")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("tab", name="Find").click()
    page.get_by_role("button", name="Open the run").click(timeout=120_000)
    page.wait_for_selector(".drawn .event")
    return page


def saved(page: Page, name: str) -> None:
    """One picture, after what the last key did is drawn."""
    page.wait_for_timeout(800)
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=IMAGES / name)


def pictures(browser: Browser, address: str) -> None:
    """The main screens: a walk, a projected graph in the dark, a phone, a lasso."""
    page = opened(browser, address, **LAPTOP)
    page.keyboard.press("ArrowLeft")
    page.get_by_role("tab", name="Next").click()
    page.keyboard.press("d")
    saved(page, "explore.png")
    page = opened(browser, address, color_scheme="dark", **LAPTOP)
    page.keyboard.press("v")
    page.get_by_label("A node is").select_option("fields")
    page.get_by_label("Proposer.phase").check()
    page.get_by_role("button", name="Draw").click()
    page.wait_for_selector(".plait-graph")
    saved(page, "explore_graph.png")
    saved(opened(browser, address, **PHONE), "explore_phone.png")


def views(browser: Browser, address: str) -> None:
    """A run of Raft to a committed entry, with its logs."""
    page = browser.new_context(**LAPTOP).new_page()  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_selector(".take")
    page.keyboard.press("c")
    page.get_by_label("Find a state where").check()
    page.get_by_label("A Python expression").fill("any(p.commit == 2 for p in s[AnyServer])")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("tab", name="Find").click()
    page.get_by_role("button", name="Open the run").click(timeout=120_000)
    page.get_by_role("tab", name="Views").click()
    page.wait_for_selector(".views img")
    saved(page, "explore_views.png")


def served(browser: Browser, act: Callable[[Browser, str], None], *model: str) -> None:
    """Start the server, take pictures, end the server."""
    command = [sys.executable, "-m", "plait.cli.main", "explore", *model, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http\S+", server.stdout.readline())
        assert found, "plait explore prints its address"
        try:
            act(browser, found[0])
        finally:
            for context in browser.contexts:
                context.close()
            server.terminate()


def main() -> None:
    """Take all pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        served(browser, pictures, "paxos", "-p", "faulty=acceptor")
        served(browser, views, "raft", "-p", "entries=2")
        browser.close()


if __name__ == "__main__":
    main()
