"""Verdicts in notebooks: an untrusted notebook shows them in full, and the styles of a notebook do not break them."""

from __future__ import annotations

import base64
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Page

from plait.report.notebook import trace_fragment, verdict_fragment
from tests.report import samples

# What JupyterLab keeps of an untrusted output (packages/apputils/src/sanitizer.ts). Other elements go, their text stays;
# of scripts and style sheets, nothing stays.
TAGS = re.findall(
    r"\w+",
    """a abbr b blockquote br button caption center cite code col colgroup dd del details dfn div dl dt em figcaption figure
    font footer h1 h2 h3 h4 h5 h6 header hr i img input ins kbd label li mark nav ol option output p pre q s samp section
    select small span strike strong sub summary sup table tbody td textarea tfoot th thead tr tt u ul var""",
)
ATTRIBUTES = {
    "img": {"align", "alt", "border", "height", "hspace", "ismap", "name", "src", "usemap", "vspace", "width"},
    "details": {"open"},
}
EVERYWHERE = {"class", "dir", "hidden", "id", "lang", "style", "title", "translate"}
COLOR = r"#[0-9a-f]+"
LENGTH = r"(0|[0-9.]+(px|em|rem|%))"
STYLES = {
    "color": COLOR,
    "background-color": COLOR,
    "border": rf"({LENGTH}|solid|{COLOR}|\s)+",
    "border-radius": LENGTH,
    "border-collapse": "collapse|separate",
    "padding": rf"({LENGTH}\s*){{1,4}}",
    "margin": rf"({LENGTH}\s*){{1,4}}",
    "max-width": f"{LENGTH}|none|auto",
    "max-height": f"{LENGTH}|none|auto",
    "font-family": "[a-z-]+",
    "font-size": LENGTH,
    "font-weight": "normal|bold",
    "line-height": "[0-9.]+",
    "text-align": "left|right|center|justify",
    "vertical-align": "baseline|top|middle|bottom",
    "white-space": "normal|pre|nowrap|pre-wrap|pre-line",
    "word-wrap": "normal|break-word",
    "overflow-x": "visible|hidden|scroll|auto",
    "overflow-y": "visible|hidden|scroll|auto",
}
"""The styles that we use, with the values that are allowed there."""


class Sanitized(HTMLParser):
    """What is left of HTML in an untrusted notebook, and what was removed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html, self.text, self.removed, self._skip = "", "", set[str](), 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._skip += 1
        if tag not in TAGS:
            self.removed.add(tag)
            return
        kept = ""
        for name, value in attrs:
            if name == "style":
                parts = [part.split(":", 1) for part in (value or "").split(";") if part]
                fine = [(n, v) for n, v in parts if re.fullmatch(STYLES.get(n.strip(), "(?!)"), v.strip())]
                self.removed |= {f"style {n}:{v}" for n, v in parts} - {f"style {n}:{v}" for n, v in fine}
                kept += f' style="{escape(";".join(f"{n}:{v}" for n, v in fine))}"'
            elif name in EVERYWHERE | ATTRIBUTES.get(tag, set()):
                kept += f' {name}="{escape(value or "")}"'
            else:
                self.removed.add(f"{tag} {name}")
        self.html += f"<{tag}{kept}>"

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("script", "style")
        if tag in TAGS:
            self.html += f"</{tag}>"

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.html += escape(data)
            self.text += data


@pytest.mark.slow
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_an_untrusted_notebook_removes_nothing(name: str) -> None:
    trace = samples.SAMPLES[name]()
    for html in (trace_fragment(trace), verdict_fragment(samples.verdict(trace))):
        assert Sanitized(html).removed == set()


def test_the_sanitizer_of_this_test_removes_what_jupyter_removes() -> None:
    left = Sanitized("<style>p{}</style><svg><text>x</text></svg><p onclick='a' style='position:fixed'>y</p>")
    assert left.removed == {"style", "svg", "text", "p onclick", "style position:fixed"}
    assert left.text == "xy"


def test_the_picture_is_the_diagram() -> None:
    html = Sanitized(verdict_fragment(samples.verdict(samples.paxos()))).html
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    drawn = base64.b64decode(data).decode()
    root = ET.fromstring(drawn)
    assert len([e for e in root.iter() if e.attrib.get("class", "").startswith("event")]) == 17
    assert "prefers-color-scheme" not in drawn, "the frame is white, so the picture is too"


def test_hostile_names_stay_text() -> None:
    page = Sanitized(trace_fragment(samples.hostile()))
    assert samples.HOSTILE in page.text
    assert page.html.count("<img") == 1


# Rules like those of notebooks: they align cells, colour rows, and let description lists float.
NOTEBOOK = """
  body { background: #111; color: #eee; font: 14px sans-serif; }
  .out dl dt { float: left; clear: left; width: 20%; } .out dl dd { float: left; width: 80%; margin: 0 0 0 20%; }
  .out table { table-layout: fixed; margin: 0 auto 1em; } .out:not(.md) td { text-align: right; padding: .5em; }
  .out tbody tr:nth-child(odd) { background: #222; } .out img { max-width: 100%; height: auto; }
"""


@pytest.mark.slow
def test_it_is_shown_in_an_untrusted_dark_notebook(page: Page, tmp_path: Path) -> None:
    html = Sanitized(verdict_fragment(samples.verdict(samples.paxos()))).html
    file = tmp_path / "notebook.html"
    file.write_text(f'<meta charset="utf-8"><style>{NOTEBOOK}</style><div class="out">{html}</div>', encoding="utf-8")
    page.goto(file.as_uri())
    script = """() => {
      const picture = document.querySelector("img");
      const boxes = [...document.querySelectorAll("span, td")].filter(e => e.childElementCount == 0 && e.textContent.trim())
        .filter(e => !e.closest("details:not([open])")).map(e => e.getBoundingClientRect());
      let over = 0;
      boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3) over += 1;
      }));
      const cell = getComputedStyle(document.querySelector("td"));
      return [picture.naturalWidth, picture.clientWidth, boxes.length, over, cell.textAlign, cell.backgroundColor];
    }"""
    natural, wide, texts, over, align, paper = page.evaluate(script)
    assert natural == wide > 400
    assert texts > 20
    assert over == 0
    assert (align, paper) == ("left", "rgb(255, 255, 255)")
