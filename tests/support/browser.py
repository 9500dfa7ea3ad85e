"""Debian's Chromium for the tests of pages, driven by Playwright. Nothing is downloaded."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.patience import PATIENCE

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
AXE = Path(__file__).parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
expect.set_options(timeout=PATIENCE * 1000)
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
LOOKS = pytest.mark.parametrize(
    "look",
    [
        pytest.param({}, id="light"),
        pytest.param({"color_scheme": "dark"}, id="dark", marks=pytest.mark.long),
        pytest.param(PHONE, id="phone", marks=pytest.mark.long),
    ],
)


def program() -> str:
    """The browser on PATH."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found:
        return found
    message = "chromium not found on PATH: install with `apt-get install chromium` to test pages"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@contextlib.contextmanager
def started() -> Iterator[Browser]:
    """A browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a file."""
    with started() as running:
        yield running


@contextlib.contextmanager
def tab(browser: Browser, *, allowed: tuple[str, ...] = (), **context: Any) -> Iterator[Page]:
    """A page in a fresh profile. It fails the test if the page logs an error, or asks any host but the allowed ones."""
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, **context}
    profile = browser.new_context(**options)
    profile.set_default_timeout(PATIENCE * 1000)
    page, noise = profile.new_page(), []
    page.on("console", lambda message: noise.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on(
        "request", lambda r: None if r.url.startswith(("file:", "data:", "blob:", *allowed)) else noise.append(r.url)
    )
    try:
        yield page
        assert noise == [], "the console stays empty, and no other host is asked"
    finally:
        profile.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page with the size of a laptop."""
    with tab(browser) as opened:
        yield opened


def violations(page: Page) -> list[str]:
    """What axe-core finds, if it is serious: for each rule, the elements."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run `make setup`")
    found = page.evaluate(f"{AXE.read_text(encoding='utf-8')}; axe.run(document, {{resultTypes: ['violations']}})")
    return [
        f"{rule['id']}: {', '.join(' '.join(map(str, node['target'])) for node in rule['nodes'][:4])}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
