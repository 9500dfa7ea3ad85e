"""Takes the pictures of `plait explore` for the documentation: `python docs/_site/screens.py`.

It starts servers on a faulty Paxos, on Raft for its views, on a leader election that does not end and on the model of the
tutorial, drives Debian's Chromium as a reader would, and writes `docs/images/explore*.png` and `tutorial_explore.png`. Look
at the pictures before you commit them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "images"
sys.path.insert(0, str(IMAGES.parents[1]))
from tests.support.session import Drawing, Listing, Session, parts  # noqa: E402

LAPTOP = {"viewport": {"width": 1360, "height": 800}}
FLAT = {"viewport": {"width": 1360, "height": 620}}
HIGH = {"viewport": {"width": 1360, "height": 920}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}


@contextmanager
def served(*arguments: str, folder: Path | None = None) -> Iterator[str]:
    """The address of a server."""
    command = [sys.executable, "-m", "plait.cli.main", "explore", *arguments, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        assert server.stdout is not None
        found = re.search(r"http\S+", server.stdout.readline())
        assert found, "plait explore prints its address"
        try:
            yield found[0]
        finally:
            server.terminate()


def opened(browser: Browser, address: str, prop: str = "", **context: object) -> Page:
    """The page, with a violation that a search found."""
    page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_selector(".take")
    page.keyboard.press("c")
    page.get_by_role("combobox", name="Property").select_option(prop)
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


def of_paxos(browser: Browser, address: str) -> None:
    """The main screens: a walk, a projected graph in the dark, a phone."""
    page = opened(browser, address, **LAPTOP)
    page.keyboard.press("ArrowLeft")
    page.get_by_role("tab", name="Next").click()
    page.keyboard.press("d")
    saved(page, "explore.png")
    page = opened(browser, address, color_scheme="dark", **HIGH)
    page.keyboard.press("v")
    page.get_by_label("A node is").select_option("fields")
    page.get_by_label("Proposer.phase").check()
    page.get_by_role("button", name="Draw").click()
    page.wait_for_selector(".plait-graph")
    saved(page, "explore_graph.png")
    saved(opened(browser, address, **PHONE), "explore_phone.png")


def of_raft(browser: Browser, address: str) -> None:
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


def of_election(browser: Browser, address: str) -> None:
    """A run that repeats for ever."""
    page = opened(browser, address, "termination", **FLAT)
    page.get_by_role("tab", name="Steps").click()
    saved(page, "explore_lasso.png")


def of_tutorial(browser: Browser, address: str) -> None:
    """The counterexample of the tutorial, when the old copy has arrived."""
    page = opened(browser, address, **FLAT)
    page.keyboard.press("ArrowLeft")
    page.get_by_role("tab", name="Next").click()
    page.keyboard.press("d")
    saved(page, "tutorial_explore.png")


def main() -> None:
    """Start servers, take the pictures, end the servers."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        for part in parts(IMAGES.parent / "tutorial" / "first-protocol.md"):
            if isinstance(part, Drawing):  # of the counterexample: the model has its bug by now
                break
            if isinstance(part, Listing):
                session.write(part)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with served("paxos", "-p", "faulty=acceptor") as address:
            of_paxos(browser, address)
        with served("raft", "-p", "entries=2") as address:
            of_raft(browser, address)
        with served("chang_roberts", "-p", "faulty=greedy", "-p", "specification=live") as address:
            of_election(browser, address)
        with served("cache.py", folder=session.folder) as address:
            of_tutorial(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
