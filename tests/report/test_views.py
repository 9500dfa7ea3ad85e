"""Pictures of views in the HTML report, in a real browser: they follow the step, and attacks do nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from plait import check
from plait.kernel.trace import Picture, Trace
from plait.model.loading.loader import load
from plait.report.html import report, trace_page
from plait.report.picture import address, safe
from tests.report import samples
from tests.report.attacks import REFUSED, REMOVED
from tests.support.browser import LOOKS, tab, violations

pytestmark = pytest.mark.slow
Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a page that contains this text."""
    pages = []

    def open_page(content: str, **context: object) -> Page:
        file = tmp_path / "report.html"
        file.write_text(content, encoding="utf-8")
        pages.append(tab(browser, **context))
        page = pages[-1].__enter__()
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        page.add_init_script("window.called = 0; window.hacked = () => { window.called += 1 }")
        page.goto(file.as_uri())
        return page

    yield open_page
    for each in pages:
        each.__exit__(None, None, None)


@pytest.fixture(scope="module")
def election() -> str:
    """The report of an election in which two candidates win."""
    verdict = check(load("examples/election.py", {}, parse=False))
    assert len(verdict.trace or ()) == 8
    return report(verdict)


def drawn(page: Page) -> str:
    """The SVG of the first picture that is shown."""
    source = page.locator(".views img").first.get_attribute("src") or ""
    return str(page.evaluate("source => decodeURIComponent(source.slice(source.indexOf(',') + 1))", source))


def lines(page: Page) -> int:
    """How many voters have voted, in the picture that is shown."""
    return drawn(page).count("<path")


def illustrated(trace: Trace, views: dict[str, Picture]) -> Trace:
    replace = msgspec.structs.replace
    events = [replace(event, state=replace(event.state, views=views)) for event in trace.events]
    return replace(trace, initial=replace(trace.initial, views=views), events=events)


def colour(page: Page, element: Locator, x: float, y: float) -> list[int]:
    """What one sees at a place of an element, as red, green and blue."""
    picture = base64.b64encode(element.screenshot()).decode()
    found: list[int] = page.evaluate(
        """async ([picture, x, y]) => {
            const image = new Image();
            image.src = `data:image/png;base64,${picture}`;
            await image.decode();
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [image.width, image.height];
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            return [...context.getImageData(x * image.width, y * image.height, 1, 1).data].slice(0, 3);
        }""",
        [picture, x, y],
    )
    return found


def test_pictures_follow_the_step(opened: Open, election: str) -> None:
    page = opened(election)
    first = page.locator(".viewer").first
    expect(first.get_by_role("tab", name="Views")).to_have_attribute("aria-selected", "true")
    image = first.get_by_role("img", name="votes", exact=True)
    expect(image).to_be_visible()
    assert image.evaluate("e => e.naturalWidth") == 360
    assert lines(page) == 3
    assert drawn(page).count("tint bad") == 2, "two leaders"
    page.keyboard.press("Home")
    assert lines(page) == 0
    counts = []
    for _ in range(8):
        page.keyboard.press("ArrowRight")
        counts.append(lines(page))
    assert counts == [1, 0, 0, 1, 2, 2, 3, 3], "a crash forgets a vote"
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    expect(page.locator(".now").first).to_contain_text("step 5 of 8", timeout=20_000)
    page.keyboard.press("Space")
    assert lines(page) == 2


def test_views_by_keys_and_tabs(opened: Open, election: str) -> None:
    page = opened(election)
    page.keyboard.press("Shift+V")
    expect(page.locator(".card").first).to_be_visible()
    expect(page.locator(".viewer").first.locator(".views")).to_have_count(0)
    page.keyboard.press("Shift+V")
    expect(page.locator(".viewer").first.locator(".views img")).to_be_visible()
    page.get_by_role("tab", name="State").first.click()
    expect(page.locator(".card").first).to_be_visible()


def test_a_report_without_views_has_no_such_tab(opened: Open) -> None:
    page = opened(report(samples.verdict(samples.paxos())))
    expect(page.get_by_role("tab", name="Views")).to_have_count(0)
    page.keyboard.press("Shift+V")
    expect(page.locator(".card").first).to_be_visible()


def test_without_scripts_the_last_state_is_drawn(opened: Open, election: str) -> None:
    page = opened(election, java_script_enabled=False)
    image = page.locator(".views img").first
    expect(image).to_be_visible()
    expect(image).to_have_attribute("alt", "votes")


def test_in_print(opened: Open, election: str) -> None:
    page = opened(election)
    page.emulate_media(media="print")
    first = page.locator(".viewer").first
    expect(first.locator(".views img")).to_be_visible()
    expect(first.locator(".card").first).to_be_visible()


@LOOKS
def test_nothing_is_in_the_way_of_a_screen_reader(opened: Open, election: str, look: dict[str, Any]) -> None:
    page = opened(election, **look)
    expect(page.locator(".views img").first).to_be_visible()
    assert violations(page) == []


def test_pictures_have_the_colours_of_the_page(opened: Open) -> None:
    """The middle of a box is paper, the middle of a filled circle is ink: both change in the dark."""
    box, circle = '<rect class="box" x="2" y="2" width="36" height="36"/>', '<circle cx="60" cy="20" r="15"/>'
    svg = f'<svg viewBox="0 0 80 40">{box}{circle}</svg>'
    content = trace_page(illustrated(samples.paxos(), {"v": safe(svg)}))
    for look, dark in (("light", False), ("dark", True)):
        page = opened(content, color_scheme=look)
        page.keyboard.press("Shift+V")
        page.keyboard.press("Shift+V")
        image = page.locator(".views img")
        paper, ink = colour(page, image, 0.25, 0.5), colour(page, image, 0.75, 0.5)
        assert (sum(paper) < 150, sum(ink) < 150) == (dark, not dark), (look, paper, ink)


def test_a_screen_reader_hears_the_title(opened: Open) -> None:
    svg = safe('<svg viewBox="0 0 9 9"><title>node 3 &lt;won&gt;</title></svg>')
    page = opened(trace_page(illustrated(samples.paxos(), {"ring": svg})))
    expect(page.get_by_role("img", name="ring: node 3 <won>", exact=True)).to_be_attached()


def test_errors_and_notes_are_text(opened: Open) -> None:
    views = {
        "a": Picture(error="a raised <b>X</b> (model.py:3)"),
        "b": Picture(safe(REMOVED["script"]).svg, note="removed: <i>"),
    }
    page = opened(trace_page(illustrated(samples.paxos(), views)))
    expect(page.locator(".views .bad")).to_have_text("a raised <b>X</b> (model.py:3)")
    expect(page.locator(".views .note")).to_have_text("removed: <i>")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_attacks_in_a_trace_do_nothing(opened: Open, scripts: bool) -> None:
    """The pictures of a file are not made safe when the file is loaded, but when they are shown."""
    given = {**REMOVED, **{name: raw for name, raw in REFUSED.items() if "surrogate" not in name}}
    views = {name: Picture(raw) for name, raw in given.items()}
    views["name <script>hacked()</script>"] = Picture(
        error="</script><script>hacked()</script>", note="<img src=x onerror=hacked()>"
    )
    content = report(samples.verdict(illustrated(samples.paxos(), views)))
    assert "evil.test" not in content
    page = opened(content, java_script_enabled=scripts)
    images = page.locator(".views img")
    expect(images).to_have_count(len(REMOVED))
    page.wait_for_timeout(300)
    if scripts:
        for key in ("Home", "ArrowRight", "End"):
            page.keyboard.press(key)
        assert images.evaluate_all("all => all.every((image) => image.complete && image.naturalWidth > 0)")
        assert page.evaluate("window.called") == 0


def test_an_image_is_harmless_even_without_the_sanitizer(opened: Open) -> None:
    """The second measure alone: images with the attacks themselves run nothing, and load nothing."""
    page = opened(report(samples.verdict(samples.paxos())))
    sources = [f"data:image/svg+xml,{re.sub('#', '%23', raw)}" for raw in REMOVED.values()]
    page.evaluate(
        """sources => Promise.all(sources.map((source) => new Promise((done) => {
            const image = new Image();
            image.onload = image.onerror = done;
            image.src = source;
            document.body.append(image);
        })))""",
        sources,
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.called") == 0


def test_the_report_has_a_picture_once_while_it_stays_the_same() -> None:
    trace = illustrated(samples.paxos(), {"v": safe('<svg viewBox="0 0 9 9"><text>only once</text></svg>')})
    content = trace_page(trace)
    assert content.count("only once") == 1
    assert content.count(address(str((trace.initial.views or {})["v"].svg))) == 1, "and once without scripts"


def test_the_attacks_are_real(browser: Browser) -> None:
    """In a page that trusts them, the same texts run scripts and ask another host."""
    asked: list[str] = []
    context = browser.new_context()
    context.route("http://evil.test/**", lambda route: (asked.append(route.request.url), route.abort()))
    page = context.new_page()
    page.evaluate("window.called = 0; window.hacked = () => { window.called += 1 }")
    page.set_content("".join(raw for name, raw in REMOVED.items() if name != "refresh"))
    page.wait_for_timeout(500)
    assert page.evaluate("window.called") >= 10
    assert len(asked) >= 3
    context.close()
