"""Odd models in a real browser: values and names that look like HTML, long values, processes that crash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.explore.pages import address, at, origin, take
from tests.explore.server import explored
from tests.support.browser import browser, tab

pytestmark = pytest.mark.slow
__all__ = ["browser"]

MODEL = '''
"""A model with odd values."""

from dataclasses import dataclass
from enum import Enum

from plait import Message, Process, System, action, always, crash_stop, field, init, on, unordered, view

HTML = """<img src=x onerror="window.ran=1"></script><script>window.ran=2</script><b>bold</b>"""
ODD = "日本語 \\u202eRTL é & ' ${x} ]]> --> \\x00 \\u2028 \\n"


class Kind(Enum):
    GOOD = "<b>good</b>"


@dataclass(frozen=True)
class Inner:
    name: str = ODD
    parts: tuple = ((1, (2, frozenset({3, 4}))),)


class Évil(Message):
    text: str
    inner: Inner


class Nœud(Process):
    größe: int = 0
    text: str = ""
    names: frozenset[str] = frozenset()
    table: dict[str, str] = field(default_factory=dict)
    inner: Inner = Inner()
    kind: Kind = Kind.GOOD
    numbers: list[int] = field(default_factory=list)

    @init
    def begin(self):
        self.send(self.id, Évil(HTML, Inner()))

    @on(Évil)
    def take(self, m):
        self.text = m.text
        self.names = self.names | {m.text, ODD}
        self.table[HTML] = ODD
        self.größe += 1
        self.numbers = list(range(1000))

    @action(when=lambda self: self.größe == 1)
    def fail(self):
        raise ValueError(HTML)


@always
def small(s):
    """<script>window.ran=3</script>"""
    return all(n.text != HTML for n in s[Nœud])


@view
def picture(s):
    return f"""<svg viewBox="0 0 9 9" onload="window.ran=4"><script>window.ran=5</script><title>odd</title></svg>"""


model = System([Nœud(), Nœud()], properties=[small], views=[picture], network=unordered(losses=1),
               faults=[crash_stop(Nœud)])
'''
HTML = """<img src=x onerror="window.ran=1"></script><script>window.ran=2</script><b>bold</b>"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the model."""
    folder: Path = tmp_path_factory.mktemp("odd")
    (folder / "odd.py").write_text(MODEL, encoding="utf-8")
    with explored("odd.py", folder=folder) as served:
        yield address(served)


@pytest.fixture
def page(browser: Browser, odd: str) -> Iterator[Page]:
    """The page of the model. Nothing of the model is ever executed in it."""
    with tab(browser, allowed=(origin(odd),)) as opened:
        opened.goto(odd)
        at(opened, 0, 0)
        yield opened
        assert opened.evaluate("window.ran") is None
        assert opened.locator("img:not(.views img), b:has-text('bold')").count() == 0


def test_html_and_unicode_are_shown_as_text(page: Page) -> None:
    take(page, "Nœud0", "take")
    at(page, 1, 1)
    page.keyboard.press("d")
    card = page.locator(".state").get_by_role("region", name="Nœud0")
    expect(card.locator("tr", has_text="größe").locator(".value")).to_have_text("1")
    expect(card.locator("tr", has_text="kind").locator(".value")).to_have_text("Kind.GOOD")
    expect(card.locator("tr", has_text="names").locator(".value")).to_contain_text(HTML)
    inner = card.locator("tr", has_text="inner").locator(".value")
    expect(inner).to_have_text(
        r"""Inner(name="日本語 \u202eRTL é & ' ${x} ]]> --> \x00 \u2028 \n", parts=((1, (2, {3, 4})),))"""
    )
    page.keyboard.press("w")
    page.keyboard.type("s[Nœud][0].text")
    page.keyboard.press("Enter")
    expect(page.locator(".evaluated code.value")).to_have_text(f"'{HTML}'")
    expect(page.locator(".evaluated tr", has_text="small")).to_contain_text("violated")
    for name in ("Steps", "Tree", "Source"):
        page.get_by_role("tab", name=name).click()
        expect(page.locator(".upper, .side").first).to_contain_text("<script>window.ran=2</script>")
    page.get_by_role("tab", name="Views").click()
    expect(page.locator(".views")).to_contain_text("removed: onload, <script>")
    take(page, "Nœud0", "fail")
    at(page, 2, 2)
    expect(page.locator(".terminal")).to_have_text("The step raised an exception: the run ends here.")
    page.keyboard.press("p")
    expect(page.locator(".evaluated tr", has_text="no_exceptions")).to_contain_text(f"ValueError: {HTML}")
    page.keyboard.press("v")
    page.get_by_label("A node is").select_option("fields")
    page.get_by_label("Nœud.text").check()
    page.get_by_role("button", name="Draw").click()
    expect(page.locator(".plait-graph")).to_contain_text("<img src=x")


def test_a_crash(page: Page) -> None:
    """The page goes on, and says why the process can do nothing."""
    take(page, "Nœud0", "crash")
    at(page, 1, 1)
    page.keyboard.press("d")
    expect(page.locator(".state").get_by_role("region", name="Nœud0").locator(".status")).to_have_text("crashed")
    lane = page.locator(".next").get_by_role("region", name="Nœud0", exact=True)
    lane.locator("summary").click()
    expect(lane.locator(".disabled")).to_contain_text("it is crashed")
    page.keyboard.press("u")
    at(page, 0, 0)


def test_long_values_leave_room_for_the_other_steps(page: Page) -> None:
    taken = page.locator("button.take", has_text="numbers").first
    expect(taken).to_be_visible()
    tall = taken.bounding_box()
    assert tall is not None
    assert tall["height"] < 600


def test_a_watch_that_is_refused_is_not_kept(browser: Browser, odd: str) -> None:
    """Each step sends all watches: one that is too long would keep the page from going on."""
    profile = browser.new_context()  # the browser logs that a request was refused
    page = profile.new_page()
    page.goto(odd)
    at(page, 0, 0)
    page.keyboard.press("w")
    page.locator(".watch-input").fill("1 + " * 1000 + "1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("the request does not fit")
    expect(page.locator(".evaluated th code")).to_have_count(0)
    page.locator(".watch-input").fill("1 + 1")
    page.keyboard.press("Enter")
    expect(page.locator(".evaluated code.value")).to_have_text("2")
    page.reload()
    at(page, 0, 0)
    profile.close()


def test_coverage_names_files_as_people_do(page: Page) -> None:
    page.get_by_role("tab", name="Coverage").click()
    expect(page.locator(".source").first).to_contain_text("Nœud.begin")
    expect(page.get_by_text("odd.py:").first).to_have_text("odd.py:37")
