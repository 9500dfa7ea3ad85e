"""Pictures of views: what draws is kept, and nothing of an attack survives."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernel.trace import Picture
from plait.report.markup import escape
from plait.report.picture import ATTRIBUTES, ELEMENTS, SVG, PictureError, address, safe, shown
from tests.report.attacks import REFUSED, REMOVED

URL = re.compile(r"url\(#[A-Za-z_][\w.-]*\)")


def require_harmless(svg: str) -> None:
    """Parse a picture with another parser, and look at each element and attribute of it."""
    for element in ET.fromstring(svg).iter():
        assert element.tag.removeprefix(f"{{{SVG}}}") in ELEMENTS, element.tag
        for name, value in element.attrib.items():
            assert name in ATTRIBUTES, name
            assert not name.startswith("on")
            if name == "href":
                assert re.fullmatch(r"#[A-Za-z_][\w.-]*", value), value
            rest = URL.sub("", value)
            assert not re.search(r"url|script|import|expression|@|\\|&|/\*|//|data:|var\(", rest, re.IGNORECASE), value
    assert "<!" not in svg
    assert "<?" not in svg


def test_what_draws_is_kept() -> None:
    parts = [
        '<defs><linearGradient id="g" x1="0"><stop offset="50%" stop-color="#fff"/></linearGradient>',
        '<marker id="m" markerWidth="4" refX="2" orient="auto"><path d="M0 0L4 2L0 4z"/></marker></defs>',
        '<g transform="translate(1 2) rotate(30)" class="box good" style="fill: rgb(1, 2, 3); font-weight: bold">',
        '<path d="M0 0 C1 1, 2 2, 3e-1 3Z" marker-end="url(#m)" stroke-dasharray="4 2"/>',
        '<rect x="1" y="2" width="3" height="4" rx="1" fill="url(#g)"/>',
        '<text x="1" text-anchor="middle" font-family="\'DejaVu Sans\', serif">a &lt; b<tspan dy="1em">ü→✓</tspan></text>',
        '<polygon points="0,0 1,1 2,0"/><use href="#g" x="1"/><title>A picture</title></g>',
    ]
    picture = safe(f'<svg viewBox="0 0 40 30">{"".join(parts)}</svg>')
    assert picture.note is None
    assert picture.svg is not None
    kept = ET.fromstring(picture.svg)
    given_ = ET.fromstring(f'<svg xmlns="{SVG}" viewBox="0 0 40 30">{"".join(parts)}</svg>')
    assert [(e.tag, e.text, e.attrib) for e in kept.iter()][1:] == [(e.tag, e.text, e.attrib) for e in given_.iter()][
        1:
    ]
    assert (kept.get("width"), kept.get("height")) == ("40", "30"), "a unit is a pixel"


@pytest.mark.parametrize("name", REMOVED)
def test_nothing_of_an_attack_survives(name: str) -> None:
    picture = safe(REMOVED[name])
    assert picture.svg is not None
    require_harmless(picture.svg)
    assert "<circle" in picture.svg, "the rest is shown"
    assert "evil" not in picture.svg
    assert "<script" not in picture.svg.lower()
    texts = "".join(ET.fromstring(picture.svg).itertext())
    assert ("hacked" in picture.svg) == ("hacked" in texts), "as text at most"
    if "text that" not in name and "title" not in name and name != "processing instruction":
        assert picture.note is not None
        assert picture.note.startswith("removed: ")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_picture_is_refused(name: str) -> None:
    with pytest.raises(PictureError):
        safe(REFUSED[name])
    again = shown(Picture(REFUSED[name]))
    assert again.svg is None, "also if it comes from a file"
    assert again.error is not None


@pytest.mark.parametrize(
    ("svg", "said"),
    [
        (
            '<svg viewBox="0 0 9 9"><text>a < b</text></svg>',
            "line 1, column 33: not well-formed (invalid token); write html.escape",
        ),
        ("<svg/>", 'it has no size: give <svg> a viewBox="0 0 WIDTH HEIGHT"'),
        ('<svg viewBox="0 0 9 0"/>', "its height is 0: expected 1 to 10,000 pixels"),
        ('<svg viewBox="0 0 9 9"><text>&nbsp;</text></svg>', "undefined entity; write the character itself"),
        ("<circle r='4'/>", "expected one <svg> element, found <circle>"),
        ("hello", "syntax error"),
        (REFUSED["entities that grow"], "it has a document type"),
        (REFUSED["uses of uses"], "contains <use>: draw its parts instead"),
    ],
)
def test_the_author_reads_what_is_wrong(svg: str, said: str) -> None:
    with pytest.raises(PictureError) as error:
        safe(svg)
    assert said in str(error.value)


def test_the_author_reads_what_was_removed() -> None:
    given_ = '<svg viewBox="0 0 9 9"><style>a</style><image href="x"/><rect onclick="x" filter="x"/></svg>'
    assert safe(given_).note == "removed: <style>, <image>, onclick, filter"


@pytest.mark.parametrize(
    "root", ['viewBox="0 0 30 20"', 'width="30" height="20px"', 'viewBox="0,0,3,2" width="30" height="20"']
)
def test_every_picture_has_a_size(root: str) -> None:
    svg = safe(f"<svg {root}/>").svg
    assert svg is not None
    kept = ET.fromstring(svg)
    assert (kept.get("width"), kept.get("height")) == ("30", "20")
    assert kept.get("viewBox") is not None


def test_an_image_has_the_styles_of_the_page() -> None:
    svg = safe('<svg viewBox="0 0 9 9"/>').svg
    assert svg is not None
    found = address(svg)
    assert re.fullmatch(r"data:image/svg\+xml,[\w%./~-]+", found), "it cannot end an attribute"
    assert "prefers-color-scheme" in found


# -- laws -------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [*sorted(ELEMENTS), "script", "a", "image", "foreignObject", "style", "animate", "set", "x:y", "iframe"]
)
KEYS = st.sampled_from([*sorted(ATTRIBUTES), "onclick", "xlink:href", "x:href", "src", "filter", "mask", "xml:space"])
SAMPLES = """#a|url(#a)|url( #a )|url(http://evil.test)|javascript:hacked()|fill:red|fill:red;stroke:url(#b)|a|/*|1 2 3|'|"|
rotate(30) translate(1)|\\75rl(x)|\t x |rgb(1,2,3)|behavior:url(x)|-x(1)|marker-end:url(#a)|display:none;|x\ry"""
VALUES = st.one_of(
    st.sampled_from(SAMPLES.split("|")), st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
)


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    """An element, or text."""
    if draw(st.integers(0, 4)) == 0:
        return escape(draw(VALUES)).replace("\r", "&#13;") + draw(
            st.sampled_from(["", "<!-- x -->", "<?x y?>", "<![CDATA[<b>]]>"])
        )
    name = draw(NAMES)
    given_ = draw(st.dictionaries(KEYS, VALUES, max_size=4))
    attributes = "".join(f' {k}="{escape(v)}"' for k, v in given_.items()).replace("\n", "&#10;").replace("\r", "&#13;")
    inner = "".join(draw(st.lists(elements(depth - 1), max_size=3))) if depth else ""
    return f"<{name}{attributes}>{inner}</{name}>"


@given(st.lists(elements(), max_size=4))
def test_safe_pictures_are_harmless_and_stay_as_they_are(content: list[str]) -> None:
    spaces = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:x="http://evil.test/"'
    try:
        picture = safe(f'<svg {spaces} viewBox="0 0 9 9">{"".join(content)}</svg>')
    except PictureError as error:
        assert "instead" in str(error), "only uses of uses and markers with markers are refused here"  # noqa: PT017
        return
    assert picture.svg is not None
    require_harmless(picture.svg)
    assert safe(picture.svg) == Picture(picture.svg), "once more changes nothing, and removes nothing"


@given(st.text())
def test_any_text_is_a_picture_or_refused(raw: str) -> None:
    try:
        safe(raw)
    except PictureError as error:
        assert str(error)  # noqa: PT017
