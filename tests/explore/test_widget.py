"""Widgets in a notebook: a real kernel, and the widget's module in a real browser (see `tests/support/notebook.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from plait import check, explorer
from plait.kernel.errors import UsageError
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from tests.support.browser import PHONE, browser, violations
from tests.support.further import further

notebook = pytest.importorskip("tests.support.notebook")
pytestmark = pytest.mark.slow
__all__ = ["browser"]

MODEL = """
from plait import Process, System, action, always

class Counter(Process):
    n: int = 0

    @action(when=lambda self: self.n < {limit})
    def up(self):
        self.n += 1

class Spinner(Process):
    @action
    def spin(self):
        while True:
            pass

@always
def small(s):
    return s[Counter][0].n < 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def kernel(folder: Path) -> Iterator[Any]:
    started = notebook.Kernel(str(folder))
    started.run("from plait import check, explorer; from plait.protocols.paxos import paxos")
    started.run(MODEL.format(limit=9))
    yield started
    started.close()


def widget_of(kernel: Any, cell: str) -> str:
    return str(kernel.run(cell)[notebook.WIDGET]["model_id"])


def answer(kernel: Any, widget: str, method: str, path: str, body: Any = None) -> Any:
    found = kernel.ask(widget, method, path, body)
    assert found["status"] == 200, found
    return json.loads(found["body"])


# -- the Python side


def test_a_bundle_has_the_widget_and_plain_html(kernel: Any) -> None:
    """Notebooks that are not trusted, GitHub and nbconvert show the HTML."""
    kernel.run("verdict = check(paxos(faulty='acceptor'), workers=1)")
    assert notebook.WIDGET not in kernel.run("verdict"), "a verdict alone needs no script"
    for cell, plain in (("verdict.widget()", "verdict"), ("verdict.trace.widget()", "verdict.trace")):
        shown = kernel.run(cell)
        assert {notebook.WIDGET, "text/html", "text/plain"} <= shown.keys()
        assert shown["text/html"] == kernel.run(plain)["text/html"]
        state = kernel.states[shown[notebook.WIDGET]["model_id"]]
        assert "<noscript>" not in state["content"]
        assert 'class="data"' in state["content"]


def test_what_a_notebook_saves(kernel: Any) -> None:
    """The script of the viewer, and the runs. The layout of graphs (1.6 MB) is not among it."""
    shown = kernel.run("explorer_ = __import__('plait').explorer('ping_pong'); explorer_")
    state = kernel.states[shown[notebook.WIDGET]["model_id"]]
    assert len(json.dumps(state)) < 200_000
    assert len(shown["text/html"]) < 2_000
    assert "run this cell" in shown["text/html"]


def test_a_target_is_explored_in_a_process_of_its_own(kernel: Any) -> None:
    widget = widget_of(kernel, "explorer('paxos', faulty='acceptor')")
    model = answer(kernel, widget, "GET", "/api/model")
    assert (model["name"], model["parameters"]["faulty"], model["error"]) == ("paxos", "acceptor", None)
    walked = answer(kernel, widget, "POST", "/api/walk", {"run": {"initial": 0, "steps": ["start@Proposer0"]}})
    assert (walked["valid"], walked["gone"]) == (1, None)
    children = "len([p for p in __import__('psutil').Process().children() if 'plait.explore.worker' in p.cmdline()])"
    assert int(kernel.run(children)["text/plain"]) >= 1


def test_a_model_of_a_cell_answers_in_the_kernel(kernel: Any) -> None:
    widget = widget_of(kernel, "explorer(System([Counter()], properties=[small]))")
    run = {"initial": 0, "steps": ["up@Counter0"] * 3}
    walked = answer(kernel, widget, "POST", "/api/walk", {"run": run, "watches": ["s[Counter][0].n * 2"]})
    assert walked["state"]["fields"] == {"Counter0": {"n": 3}}
    assert [p["status"] for p in walked["properties"]] == ["violated"]
    assert walked["watches"][0]["value"] == 6
    number = answer(kernel, widget, "POST", "/api/search", {"kind": "check"})["id"]
    assert kernel.ask(widget, "GET", f"/api/search/{number}/events")["status"] == 200
    done = next(json.loads(m["body"]) for m in kernel.messages if m.get("event") == "done")
    assert (done["status"], len(done["run"]["steps"])) == ("violated", 3)


def test_user_code_that_does_not_end(kernel: Any) -> None:
    """The question ends with an error that names the limit, and the kernel runs cells meanwhile."""
    kernel.run("import plait.explore.explorer as limits; limits.WALK = 1.0")
    try:
        widget = widget_of(kernel, "explorer(System([Spinner()]))")
        body = {"run": {"initial": 0, "steps": []}}
        kernel.send(widget, {"id": "spin", "method": "POST", "path": "/api/walk", "body": body})
        assert kernel.run("1 + 1")["text/plain"] == "2"
        while not any(m["id"] == "spin" for m in kernel.messages):
            kernel.listen()
        (found,) = [m for m in kernel.messages if m["id"] == "spin"]
        assert found["status"] == 422
        assert "longer than 1 s" in found["body"]
        assert kernel.ask(widget, "GET", "/api/model")["status"] == 200
    finally:
        kernel.run("limits.WALK = 20.0")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/nothing", None, 404),
        ("GET", "/etc/passwd", None, 404),
        ("POST", "/api/walk", {"run": 1}, 400),
        ("POST", "/api/walk", None, 400),
        ("POST", "/api/search", {"kind": "dance"}, 400),
        ("DELETE", "/api/search/99", None, 404),
        ("POST", "/api/export", {"run": {"initial": 0, "steps": []}, "format": "pytest"}, 400),
    ],
)
def test_bad_questions_are_refused(kernel: Any, method: str, path: str, body: Any, status: int) -> None:
    widget = widget_of(kernel, "explorer(System([Counter()]))")
    found = kernel.ask(widget, method, path, body)
    assert found["status"] == status
    assert json.loads(found["body"])["error"]["message"]


def test_wrong_arguments() -> None:
    with pytest.raises(UsageError, match="needs a System or the name of a model, not int"):
        explorer(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no parameter 'n'"):
        explorer(ping_pong(), n=3)


# -- in a browser


@pytest.mark.parametrize("look", ["light", *further("dark", "phone")])
def test_step_through_a_run(browser: Browser, kernel: Any, look: str) -> None:
    trace = check(paxos(faulty="acceptor"), workers=1).trace
    assert trace is not None
    bundle = kernel.run("check(paxos(faulty='acceptor'), workers=1).trace.widget()")
    with notebook.shown(browser, kernel, bundle, dark=look == "dark", **(PHONE if look == "phone" else {})) as view:
        page = view.page
        view.says(".now", f"step {len(trace)} of {len(trace)}:")
        page.locator(".diagram").click(position={"x": 4, "y": 4})
        page.keyboard.press("Home")
        for step, event in enumerate(trace.events, 1):
            page.keyboard.press("ArrowRight")
            view.says(".now", f"step {step} of {len(trace)}: {event.lane} {event.label}")
        page.keyboard.press("/")
        page.keyboard.type("handler:promise")
        assert page.locator(".search .count").text_content() == str(sum(e.label == "promise" for e in trace.events))
        page.keyboard.press("Escape")
        button = page.locator(".controls button").first
        assert button.evaluate("e => getComputedStyle(e).borderTopWidth") == "1px", "styles of the notebook stay out"
        paper = page.locator(".viewer").evaluate("e => getComputedStyle(e).backgroundColor")
        assert paper == ("rgb(20, 24, 29)" if look == "dark" else "rgb(255, 255, 255)")
        assert page.locator("main > h1").evaluate("e => getComputedStyle(e).borderTopWidth") == "3px"
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert violations(page) == []


@pytest.mark.parametrize("cell", ["explorer('paxos', faulty='acceptor')", "explorer(paxos(faulty='acceptor'))"])
def test_step_inside_the_notebook(browser: Browser, kernel: Any, cell: str) -> None:
    with notebook.shown(browser, kernel, kernel.run(cell)) as view:
        page = view.page
        view.says(".now", "step 0 of 0:")
        view.until(lambda: page.locator("button.take").count() > 0)
        page.get_by_role("tab", name="Next").click()
        page.locator("button.take").first.click()
        view.says(".now", "step 1 of 1: Proposer0 start")
        page.locator(".diagram").click(position={"x": 4, "y": 4})
        page.keyboard.press("1")
        view.says(".now", "step 2 of 2:")
        page.keyboard.press("u")
        view.says(".now", "step 1 of 1:")
        page.keyboard.press("p")
        view.says(".evaluated", "agreement")
        page.keyboard.press("w")
        page.keyboard.type("6 * 7")
        page.keyboard.press("Enter")
        view.says(".evaluated code.value", "42")
        page.locator(".diagram").click(position={"x": 4, "y": 4})
        page.keyboard.press("s")
        view.says(".source", "def start")
        page.keyboard.press("c")
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_role("tab", name="Find").click()
        view.says(".findings", "agreement is violated")
        page.get_by_role("button", name="Open the run").click()
        view.says(".now", "of 14:")
        page.keyboard.press("x")
        assert page.get_by_role("dialog").get_by_role("textbox").count() == 0, "a notebook has no link to a run"
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.evaluate("window.endView()")
        assert page.locator(".app > *").count() == 0


def test_the_graph_needs_no_other_file(browser: Browser, kernel: Any) -> None:
    with notebook.shown(browser, kernel, kernel.run("explorer('ping_pong')")) as view:
        page = view.page
        view.says(".now", "step 0 of 0:")
        page.locator(".diagram").click(position={"x": 4, "y": 4})
        page.keyboard.press("v")
        page.get_by_role("button", name="Draw").click()
        view.until(lambda: page.locator(".plait-graph .node").count() == check(ping_pong()).statistics.states)


def test_keys_do_not_reach_the_notebook(browser: Browser, kernel: Any) -> None:
    with notebook.shown(browser, kernel, kernel.run("check(paxos(faulty='acceptor')).trace.widget()")) as view:
        page = view.page
        page.evaluate("window.keys = []; document.addEventListener('keydown', (e) => window.keys.push(e.key))")
        page.locator(".diagram").click(position={"x": 4, "y": 4})
        for key in ("j", "d", "d", "x", "Escape"):
            page.keyboard.press(key)
        page.keyboard.press("Control+s")
        assert [k for k in page.evaluate("window.keys") if k != "Control"] == ["s"], "Ctrl+S still saves"
        assert page.locator("[data-lm-suppress-shortcuts=true] .viewer").count() == 1


def test_saving_a_model_reloads_it(browser: Browser, kernel: Any, folder: Path) -> None:
    source = MODEL + "\nmodel = System([Counter()])\n"
    (folder / "model.py").write_text(source.format(limit=5))
    with notebook.shown(browser, kernel, kernel.run("explorer('model.py')")) as view:
        page = view.page
        view.until(lambda: page.locator("button.take").count() > 0)
        page.locator(".diagram").click(position={"x": 4, "y": 4})
        for step in (1, 2):
            page.keyboard.press("1")
            view.says(".now", f"step {step} of {step}:")
        (folder / "model.py").write_text(source.format(limit=1))
        view.says(".banner", "The run ends at step 1")
        (folder / "model.py").write_text("nonsense(")
        view.says(".banner.error", "SyntaxError")
