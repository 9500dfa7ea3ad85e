"""Views in `plait explore`: the server draws the state that is shown, within limits, and the page follows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.explore.server import Served, explored
from tests.support.browser import LOOKS, browser, tab, violations

__all__ = ["browser"]

MODEL = """
from plait import Process, System, action, view

class Counter(Process):
    n: int = 0

    @action(when=lambda self: self.n < 4)
    def up(self):
        self.n += 1

@view
def bar(s):
    n = s[Counter][0].n
    while n == 3:
        pass
    return f'<svg viewBox="0 0 80 20"><rect class="good" width="{20 * n}" height="20"/></svg>'

@view
def odd(s):
    return '<svg viewBox="0 0 9 9"><title>nothing</title></svg>' if s[Counter][0].n != 2 else 1 / 0

model = System([Counter()], views=[bar, odd])
"""
RAISED = r"odd raised ZeroDivisionError: division by zero \(.*model\.py:20\)"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("views")
    (folder / "model.py").write_text(MODEL)
    with explored("model.py", folder=folder) as server:
        yield server


def up(times: int) -> list[str]:
    return ["up@Counter0"] * times


def test_the_server_draws_the_last_state(served: Served) -> None:
    assert served.get("/api/model")["views"] is True
    for times in (0, 1, 2):
        assert f'width="{20 * times}"' in served.walk(*up(times))["views"]["bar"]["svg"]
    walked = served.walk(*up(2))
    assert re.fullmatch(RAISED, walked["views"]["odd"]["error"])
    assert "svg" not in walked["views"]["odd"]
    assert "views" not in walked["trace"]["events"][0]["state"], "each state is drawn when it is shown"


def test_a_view_that_does_not_end(served: Served) -> None:
    walked = served.walk(*up(3))
    late = {"error": "not drawn: the pictures of this run took longer than 2 s"}
    assert walked["views"] == {"bar": late, "odd": late}
    assert walked["state"]["fields"]["Counter0"] == {"n": 3}, "the rest of the answer is there"
    assert "svg" in served.walk(*up(4))["views"]["bar"], "and the server goes on"


def test_files_have_pictures(served: Served) -> None:
    run = {"initial": 0, "steps": up(2)}
    itf = json.loads(served.ask("POST", "/api/export", {"run": run, "format": "itf"}).body)
    assert [state["#meta"]["views"]["bar"]["svg"].count("rect") for state in itf["states"]] == [1, 1, 1]
    assert b"<svg" not in served.ask("POST", "/api/export", {"run": run, "format": "pytest"}).body


def test_a_model_without_views(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(MODEL.replace(", views=[bar, odd]", ""))
    with explored("plain.py", folder=tmp_path) as server:
        assert server.get("/api/model")["views"] is False
        assert server.walk()["views"] == {}


# -- the page ---------------------------------------------------------------------------------------------------------


def opened(page: Page, served: Served) -> None:
    page.goto(f"http://127.0.0.1:{served.port}/?secret={served.secret}")
    expect(page.get_by_role("tab", name="Next (1)")).to_be_visible()


def shown(page: Page, width: int) -> None:
    """Waits until the bar has this width."""
    source = page.get_by_role("img", name="bar", exact=True)
    expect(source).to_have_attribute("src", re.compile(f"width%3D%22{width}%22%20height%3D%2220%22%2F"))


@pytest.mark.slow
@LOOKS
def test_pictures_follow_the_walk(browser: Browser, served: Served, look: dict[str, object]) -> None:
    with tab(browser, allowed=(f"http://127.0.0.1:{served.port}/",), **look) as page:
        opened(page, served)
        shown(page, 0)
        page.keyboard.press("1")
        shown(page, 20)
        expect(page.get_by_role("img", name="odd: nothing", exact=True)).to_be_attached()
        page.keyboard.press("1")
        shown(page, 40)
        expect(page.locator(".views .bad")).to_have_text(re.compile(RAISED))
        page.keyboard.press("u")
        shown(page, 20)
        page.keyboard.press("r")
        shown(page, 40)
        page.keyboard.press("Home")
        shown(page, 0)
        page.keyboard.press("Space")
        shown(page, 40)
        expect(page.locator(".now")).to_contain_text("step 2 of 2")
        assert violations(page) == []
        page.keyboard.press("Shift+V")
        expect(page.locator(".card")).to_be_visible()
