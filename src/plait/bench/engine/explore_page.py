"""How fast the page of `plait explore` is, in headless Chromium: opening a long run, keys, a step of Raft.

Times are those of the page's own clock. A key counts until the next frame is drawn, opening from the start of the
navigation until the enabled steps of the last state are shown. So both contain the answers of the server.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plait.bench.errors import MissingError

HOW = "pip install playwright, and apt-get install chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
KEYS = {
    "→": "ArrowRight",
    "←": "ArrowLeft",
    "Home": "Home",
    "End": "End",
    "Page Down": "PageDown",
    "+ (larger)": "+",
    "- (smaller)": "-",
    "0 (fit)": "0",
    "o (overview)": "o",
    "n (next match)": "n",
}
_BEFORE = {
    "ArrowRight": "Home",
    "ArrowLeft": "End",
    "Home": "End",
    "End": "Home",
    "PageDown": "Home",
    "0": "o",
    "o": "0",
}
"""A key that must have been pressed before, so that a key has something to do."""

_OPENED = """(step) => new Promise((done) => {
  const look = () => {
    const shown = document.querySelector(".now")?.textContent.startsWith(`step ${step} of`);
    if (shown && document.querySelector("button.take, .terminal")) done(performance.now() / 1000);
    else requestAnimationFrame(look);
  };
  look();
})"""
_PRESS = """([key, shown]) => new Promise((done) => {
  const start = performance.now();
  document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const drawn = () => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => done((performance.now() - start) / 1000);
    channel.port2.postMessage(0);
  };
  const there = () =>
    document.querySelector(".now").textContent.startsWith(shown) && document.querySelector("button.take, .terminal");
  const look = () => requestAnimationFrame(() => (!shown || there() ? drawn() : look()));
  look();
})"""


class Page:
    """A page of `plait explore` in a browser."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, key: str, shown: str = "") -> float:
        """Press a key. Returns the seconds until the next frame; with `shown`, until this text is the step."""
        found: float = self.page.evaluate(_PRESS, [key, shown])
        return found


class Browser:
    """A headless Chromium."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    @contextmanager
    def opened(self, address: str, step: int) -> Iterator[tuple[Page, float]]:
        """A page in a fresh profile, and the seconds until it showed a step."""
        profile = self.browser.new_context(viewport={"width": 1360, "height": 800})
        try:
            page = profile.new_page()
            page.goto(address, wait_until="commit")
            yield Page(page), page.evaluate(_OPENED, step)
        finally:
            profile.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser. A MissingError says how to install one."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise MissingError("playwright", HOW) from None
    if program is None:
        raise MissingError("chromium", HOW)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield Browser(browser)
        finally:
            browser.close()


def linked(address: str, run: list[str], target: str) -> str:
    """The address with a run at its end."""
    link = {"target": target, "parameters": {}, "step": len(run), "run": {"initial": 0, "steps": run}}
    raw = base64.urlsafe_b64encode(json.dumps(link).encode()).decode().rstrip("=")
    return f"{address}#run={raw}"


def keys(page: Page, times: int) -> dict[str, list[float]]:
    """The seconds of each key, on the run that the page shows."""
    page.page.get_by_role("searchbox").fill("process:Node7")
    page.page.keyboard.press("Escape")
    found: dict[str, list[float]] = {}
    for name, key in KEYS.items():
        found[name] = []
        for _ in range(times):
            if key in _BEFORE:
                page.press(_BEFORE[key])
            page.page.wait_for_timeout(100)  # answers of the server to the key before
            found[name].append(page.press(key))
    return found


def walked(page: Page, most: int) -> list[float]:
    """The seconds of steps that are taken with the key 1, each until the steps that are possible then are shown."""
    found = []
    for step in range(1, most + 1):
        if page.page.locator("button.take").count() == 0:
            break
        page.page.wait_for_timeout(100)
        found.append(page.press("1", f"step {step} of {step}:"))
    return found
