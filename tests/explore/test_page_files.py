"""Links, notes, exports, and edit and see, in a real browser. Each file that is saved is used."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page, expect

from plait.report.itf import load_trace
from tests.explore.pages import address, at, closed, origin, page, paxos, take
from tests.explore.server import explored
from tests.support.browser import browser, tab
from tests.support.patience import PATIENCE, until

pytestmark = pytest.mark.slow
__all__ = ["browser", "page", "paxos"]

MODEL = """
from plait import Process, System, action

class Counter(Process):
    n: int = 0

    @action(when=lambda self: self.n < {limit})
    def up(self):
        self.n += 1

model = System([Counter()])
"""


def walked(page: Page) -> None:
    take(page, "Proposer0", "start")
    at(page, 1, 1)
    take(page, "Acceptor0", "promise")
    at(page, 2, 2)


def noted(page: Page, text: str) -> None:
    page.keyboard.press("m")
    page.keyboard.type(text)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_restores_the_run_and_its_notes(page: Page, browser: Browser, paxos: str) -> None:
    walked(page)
    noted(page, "the first promise")
    page.keyboard.press("/")
    page.keyboard.type("process:Acceptor0")
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    page.get_by_role("dialog").get_by_label("Learner0").uncheck()
    closed(page)
    page.keyboard.press("x")
    link = page.get_by_role("dialog").get_by_role("textbox").input_value()
    with tab(browser, allowed=(origin(paxos),)) as other:
        other.goto(link)
        at(other, 2, 2)
        other.get_by_role("tab", name="Steps").click()
        expect(other.locator(".own-note")).to_have_text("the first promise")
        expect(other.get_by_role("searchbox")).to_have_value("process:Acceptor0")
        expect(other.locator(".head[data-lane='Learner0']")).to_have_count(0)


def test_the_address_is_the_link(page: Page, browser: Browser, paxos: str) -> None:
    """It has the run, and never the secret: it is shown in the browser's history."""
    walked(page)
    run = lambda: base64.urlsafe_b64decode(page.evaluate("location.hash").partition("=")[2] + "===")  # noqa: E731
    until(lambda: b"promise@" in run(), "the address has the run")
    assert "secret" not in page.evaluate("location.href")
    page.reload()
    at(page, 2, 2)


def test_a_link_of_another_model_says_so(page: Page, browser: Browser) -> None:
    walked(page)
    page.keyboard.press("x")
    link = page.get_by_role("dialog").get_by_role("textbox").input_value()
    with explored("paxos", "-p", "acceptors=2") as served:
        own = address(served)
        with tab(browser, allowed=(origin(own),)) as other:
            other.goto(own + link[link.index("#") :])
            expect(other.locator(".banner")).to_contain_text("This link is for paxos")
            expect(other.locator(".banner")).to_contain_text("acceptors=2")


def test_a_link_with_an_initial_state_that_does_not_exist(page: Page, browser: Browser, paxos: str) -> None:
    link = json.dumps({"target": "paxos", "parameters": {}, "step": 5, "run": {"initial": 99, "steps": ["x"]}})
    with tab(browser, allowed=(origin(paxos),)) as other:
        other.goto(f"{paxos}#run={base64.urlsafe_b64encode(link.encode()).decode().rstrip('=')}")
        expect(other.locator(".banner")).to_be_visible()
        at(other, 0, 0)
        other.keyboard.press("1")
        at(other, 1, 1)


def test_notes(page: Page) -> None:
    walked(page)
    noted(page, "a < b & 'c'")
    page.get_by_role("tab", name="Steps").click()
    expect(page.locator(".own-note")).to_have_text("a < b & 'c'")
    expect(page.locator(".drawn .row path.note")).to_have_count(1)
    page.keyboard.press("u")
    page.keyboard.press("r")
    expect(page.locator(".own-note")).to_have_text("a < b & 'c'")
    page.keyboard.press("m")
    page.get_by_role("dialog").get_by_role("textbox").fill("")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".own-note")).to_have_count(0)


def saved(page: Page, name: str) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
    return Path(download.value.path()).read_bytes()


def test_exports(page: Page, tmp_path: Path) -> None:
    walked(page)
    noted(page, "looks right")
    page.keyboard.press("x")
    picture = ElementTree.fromstring(saved(page, "SVG"))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    labels = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"start", "promise", "Proposer0"} <= labels
    wide, high = (float(picture.attrib[side]) for side in ("width", "height"))

    png = saved(page, "PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (pytest.approx(2 * wide, abs=1), pytest.approx(2 * high, abs=1))

    mermaid = saved(page, "Mermaid").decode().splitlines()
    assert mermaid[0] == "sequenceDiagram"
    assert "  participant p0 as Proposer0" in mermaid
    assert any("p0->>" in line and "Read" in line for line in mermaid), mermaid

    text = saved(page, "Text").decode()
    assert text.startswith("paxos (")
    assert "1  Proposer0 start" in text
    assert "note      looks right" in text

    (tmp_path / "run.itf.json").write_bytes(saved(page, "ITF"))
    trace = load_trace(tmp_path / "run.itf.json")
    assert [(event.lane, event.label) for event in trace.events] == [("Proposer0", "start"), ("Acceptor0", "promise")]
    assert b'"promise"' in saved(page, "Trace (JSON)")

    (tmp_path / "test_run.py").write_bytes(saved(page, "pytest test"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_run.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_edit_and_see(browser: Browser, tmp_path: Path) -> None:
    """The page reloads, keeps the run, says where it ends, and shows the error of the command line."""
    file = tmp_path / "model.py"
    file.write_text(MODEL.format(limit=5))
    with explored("model.py", folder=tmp_path) as served:
        own = address(served)
        with tab(browser, allowed=(origin(own),)) as page:
            page.goto(own)
            at(page, 0, 0)
            for step in range(1, 5):
                page.keyboard.press("1")
                at(page, step, step)
            file.write_text(MODEL.format(limit=2))
            expect(page.locator(".banner")).to_contain_text(
                "The run ends at step 2: up of Counter0 is not possible here"
            )
            at(page, 2, 2)
            file.write_text(MODEL.format(limit=2) + "syntax error\n")
            expect(page.locator(".banner.error")).to_contain_text("SyntaxError")
            command = [sys.executable, "-m", "plait.cli.main", "check", "model.py"]
            said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE).stderr
            shown = page.locator(".banner.error").inner_text()
            assert " ".join(shown.split()) == " ".join(said.split()), "the page says what the command line says"
            file.write_text(MODEL.format(limit=3))
            expect(page.locator(".banner.error")).to_have_count(0)
            page.keyboard.press("1")
            at(page, 3, 3)
