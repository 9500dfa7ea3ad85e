"""Pictures that a `@view` draws: SVG of which only what draws is kept.

A picture may come from a model that somebody else wrote, or from a trace file that somebody sent. So it is parsed (a
document type is refused before it can declare an entity), and written again from a list of the elements and attributes
that draw. What is not in the list (scripts, foreign content, animations, events, addresses outside of the picture) is left
out, and a note says so. A picture without a size, and one that a browser could not draw in reasonable time, is refused.

A page shows the result as an image with a `data:` address, never as a part of itself. In an image, browsers run no script
and load nothing, and ids and styles cannot clash with those of the page. Either measure is enough; the page has both.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from urllib.parse import quote
from xml.parsers import expat

import msgspec

from plait.kernel.trace import Picture, Snapshot, Trace
from plait.report.markup import asset, escape, shorten

SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
MOST_CHARACTERS = 500_000
MOST_ELEMENTS = 20_000
MOST_DRAWN = 100_000
"""Elements that a browser draws: with `use` and markers, an element can be drawn many times."""
MOST_NOTED = 8
"""Names of removed things that the note lists."""
MOST_DEPTH = 100
LARGEST = 10_000
"""Width and height in pixels."""

_SHAPES = "svg g defs use title desc text tspan path rect circle ellipse line polyline polygon marker"
ELEMENTS = frozenset({*_SHAPES.split(), "linearGradient", "radialGradient", "stop"})
_GEOMETRY = (
    "x y x1 y1 x2 y2 cx cy r rx ry fx fy fr width height d points dx dy rotate textLength lengthAdjust pathLength transform "
    "viewBox preserveAspectRatio offset gradientUnits gradientTransform spreadMethod markerWidth markerHeight markerUnits "
    "refX refY orient"
)
_STYLES = (
    "alignment-baseline baseline-shift color display dominant-baseline fill fill-opacity fill-rule font-family font-size "
    "font-style font-variant font-weight letter-spacing marker-end marker-mid marker-start opacity paint-order "
    "shape-rendering stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin "
    "stroke-miterlimit stroke-opacity stroke-width text-anchor text-decoration text-rendering vector-effect visibility "
    "word-spacing"
)
STYLES = frozenset(_STYLES.split())
"""What attributes and `style` can say about the look of an element."""
ATTRIBUTES = STYLES | frozenset(_GEOMETRY.split()) | {"id", "class", "style", "href"}
_LINKING = frozenset({"use", "linearGradient", "radialGradient"})
"""Elements that may refer to another element of the picture with href."""
_MARKED = frozenset({"line", "path", "polyline", "polygon"})
"""Elements that may have markers. Others would hand them on, also to what a marker contains."""
_TEXTS = frozenset({"text", "tspan", "title", "desc"})
"""Elements that have text. Between others it is space."""

_PLAIN = re.compile(r"""[\w\s#%.,+'"()/-]*""")
_CALL = re.compile(r"([\w-]*)\s*\(")
_NUMBER = re.compile(r"[\d.]+")
_CALLS = frozenset({"rgb", "rgba", "hsl", "hsla", "translate", "rotate", "scale", "skewX", "skewY", "matrix"})
_LOCAL = re.compile(r"#([A-Za-z_][\w.-]*)", re.ASCII)
_PAINT = re.compile(r"url\(#([A-Za-z_][\w.-]*)\)", re.ASCII)
_ID = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_SIZE = re.compile(r"\s*(\d{1,6}(?:\.\d+)?)(?:px)?\s*", re.ASCII)
_BOX = re.compile(
    r"\s*" + r"[\s,]+".join([r"-?\d{1,9}(?:\.\d+)?"] * 2 + [r"(\d{1,6}(?:\.\d+)?)"] * 2) + r"\s*", re.ASCII
)


class PictureError(ValueError):
    """Why a text is no picture."""


class _Element:
    """An element of a picture."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name, self.attributes = name, attributes
        self.content: list[_Element | str] = []

    def written(self) -> str:
        head = "".join(f' {name}="{escape(value)}"' for name, value in self.attributes.items())
        inner = "".join(one.written() if isinstance(one, _Element) else escape(one) for one in self.content)
        empty = not inner and self.name != "svg"
        return f"<{self.name}{head}/>" if empty else f"<{self.name}{head}>{inner}</{self.name}>"

    def all(self) -> Iterator[_Element]:
        """The element, and everything in it."""
        yield self
        for one in self.content:
            if isinstance(one, _Element):
                yield from one.all()

    def markers(self) -> Iterator[str]:
        """The ids of its markers."""
        for name, value in [*self.attributes.items(), *_declarations(self.name, self.attributes.get("style", ""))]:
            if name.startswith("marker-") and (found := _PAINT.fullmatch(value)) is not None:
                yield found[1]

    @property
    def corners(self) -> int:
        """At least the number of points at which a marker is drawn."""
        return 2 + len(_NUMBER.findall(self.attributes.get("d", self.attributes.get("points", "")))) // 2


class _Reader:
    """Reads a picture, and keeps what is allowed."""

    def __init__(self) -> None:
        self.root: _Element | None = None
        self.removed: dict[str, None] = {}
        self._count = 0
        self._open: list[_Element] = []
        self._skipped = 0
        """The number of open elements that are left out."""

    def read(self, raw: str) -> None:
        parser = expat.ParserCreate(encoding="utf-8", namespace_separator=" ")
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartDoctypeDeclHandler = _no_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(raw.encode(), True)
        except expat.ExpatError as error:
            said = expat.ErrorString(error.code)
            raise PictureError(f"line {error.lineno}, column {error.offset + 1}: {said}{_hint(said)}") from None
        except UnicodeEncodeError:
            raise PictureError("it contains a character that is no text (a lone surrogate)") from None

    def _start(self, full: str, given: list[str]) -> None:
        namespace, _, name = full.rpartition(" ")
        self._count += 1
        if self._count > MOST_ELEMENTS:
            raise PictureError(f"it has more than {MOST_ELEMENTS:,} elements")
        if len(self._open) + self._skipped >= MOST_DEPTH:
            raise PictureError(f"its elements are nested more than {MOST_DEPTH} deep")
        if self.root is None and (name != "svg" or namespace not in ("", SVG)):
            raise PictureError(f"expected one <svg> element, found <{shorten(name, 40)}>")
        if self._skipped or name not in ELEMENTS or namespace not in ("", SVG):
            if not self._skipped:
                self.removed[f"<{shorten(name, 40)}>"] = None
            self._skipped += 1
            return
        found = _Element(name, self._attributes(name, dict(zip(given[::2], given[1::2], strict=True))))
        if self._open:
            self._open[-1].content.append(found)
        else:
            self.root = found
        self._open.append(found)

    def _end(self, full: str) -> None:
        if self._skipped:
            self._skipped -= 1
        else:
            self._open.pop()

    def _text(self, text: str) -> None:
        if not self._skipped and self._open and self._open[-1].name in _TEXTS:
            self._open[-1].content.append(text.replace("\r\n", "\n").replace("\r", "\n"))

    def _attributes(self, element: str, given: dict[str, str]) -> dict[str, str]:
        kept = {}
        for full, value in given.items():
            namespace, _, name = full.rpartition(" ")
            if namespace == _XLINK and name == "href" and "href" not in given:
                namespace = ""
            said = _allowed(element, name, " ".join(value.split())) if not namespace and name in ATTRIBUTES else None
            if said is None:
                self.removed[shorten(name, 40)] = None
            else:
                kept[name] = said
        return kept


def _no_doctype(*_: object) -> None:
    raise PictureError("it has a document type (<!DOCTYPE …>): leave it out")


def _hint(said: str) -> str:
    if said == "undefined entity":
        return "; write the character itself"
    return (
        "; write html.escape(text) where text has < or &" if "not well-formed" in said or "mismatched" in said else ""
    )


def _allowed(element: str, name: str, value: str) -> str | None:
    """The value of an attribute, or None if it is left out."""
    match name:
        case "href":
            return value if element in _LINKING and _LOCAL.fullmatch(value) else None
        case "id":
            return value if _ID.fullmatch(value) else None
        case "style":
            return "; ".join(f"{key}: {said}" for key, said in _declarations(element, value)) or None
    return value if _is_harmless(element, name, value) else None


def _declarations(element: str, style: str) -> Iterator[tuple[str, str]]:
    """What a `style` says, as far as it is allowed."""
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip(), value.strip()
        if name in STYLES and value and _is_harmless(element, name, value):
            yield name, value


def _is_harmless(element: str, name: str, value: str) -> bool:
    """Whether a value refers to nothing outside of the picture: it has no address, no escape and no unknown function."""
    if name.startswith("marker-") and element not in _MARKED:
        return False
    if name in STYLES and _PAINT.fullmatch(value):
        return True
    return "/*" not in value and bool(_PLAIN.fullmatch(value)) and _CALLS.issuperset(_CALL.findall(value))


def _sized(root: _Element) -> None:
    """Give a picture a size and a viewBox. If it has one of them only, a unit of the viewBox is a pixel."""
    attributes = root.attributes
    box = _BOX.fullmatch(attributes.get("viewBox", ""))
    sizes = [_SIZE.fullmatch(attributes.get(name, "")) for name in ("width", "height")]
    if box is None and None in sizes:
        raise PictureError('it has no size: give <svg> a viewBox="0 0 WIDTH HEIGHT", or width and height in pixels')
    for number, (name, size) in enumerate(zip(("width", "height"), sizes, strict=True), 1):
        pixels = size[1] if size is not None else box[number] if box is not None else ""
        if not 1 <= float(pixels) <= LARGEST:
            raise PictureError(f"its {name} is {pixels}: expected 1 to {LARGEST:,} pixels")
        attributes[name] = pixels
    if box is None:
        attributes["viewBox"] = f"0 0 {attributes['width']} {attributes['height']}"


def _require_drawable(root: _Element) -> None:
    """Refuse a picture in which few elements are drawn very often. What `use` and markers draw contains neither."""
    named = {one.attributes["id"]: one for one in reversed([*root.all()]) if "id" in one.attributes}

    @functools.cache
    def size(name: str) -> int:
        """How many elements are drawn for a reference."""
        if name not in named:
            return 0
        inner = list(named[name].all())
        if any(one.name == "use" for one in inner):
            raise PictureError(f"#{name} is drawn by <use> or as a marker, and contains <use>: draw its parts instead")
        return sum(map(weight, inner))

    @functools.cache
    def weight(element: _Element) -> int:
        """How many elements are drawn for one, with its markers."""
        total = 1
        for name in element.markers():
            if name in named and any(True for one in named[name].all() for _ in one.markers()):
                raise PictureError(f"#{name} is a marker, and contains markers: draw its parts instead")
            total += element.corners * size(name)
        return total

    used = (size(one.attributes.get("href", "#")[1:]) for one in root.all() if one.name == "use")
    if sum(map(weight, root.all())) + sum(used) > MOST_DRAWN:
        raise PictureError(f"more than {MOST_DRAWN:,} elements would be drawn")


@functools.lru_cache(maxsize=128)
def safe(raw: str) -> Picture:
    """SVG as a picture that can be shown. It contains only what `ELEMENTS` and `ATTRIBUTES` list.

    >>> safe('<svg viewBox="0 0 9 9"><circle r="4" onclick="alert(1)"/><script>alert(2)</script></svg>')
    Picture(svg='<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9"><circle r="4"/></svg>', \
error=None, note='removed: onclick, <script>')
    """
    if len(raw) > MOST_CHARACTERS:
        raise PictureError(f"it has {len(raw):,} characters: expected at most {MOST_CHARACTERS:,}")
    reader = _Reader()
    reader.read(raw.strip())
    root = reader.root
    assert root is not None  # the parser accepts no document without an element
    _sized(root)
    _require_drawable(root)
    root.attributes = {"xmlns": SVG, **root.attributes}
    names = [*reader.removed][:MOST_NOTED] + ["…"] * (len(reader.removed) > MOST_NOTED)
    return Picture(root.written(), note=f"removed: {', '.join(names)}" if names else None)


@functools.lru_cache(maxsize=128)
def shown(picture: Picture) -> Picture:
    """A picture of a trace, which may come from a file: made safe again."""
    if picture.svg is None:
        return picture
    try:
        found = safe(picture.svg)
    except PictureError as error:
        return Picture(error=f"the picture cannot be shown: {error}")
    return msgspec.structs.replace(found, note=picture.note or found.note)


def with_safe_pictures(trace: Trace) -> Trace:
    """The trace, with pictures that can be shown."""
    replace = msgspec.structs.replace

    def state(one: Snapshot) -> Snapshot:
        return replace(one, views={name: shown(p) for name, p in one.views.items()}) if one.views else one

    events = [replace(event, state=state(event.state)) for event in trace.events]
    return replace(trace, initial=state(trace.initial), events=events)


def address(svg: str) -> str:
    """The address of an image with a picture that is safe, in the colours of the page."""
    head, _, rest = svg.partition(">")
    styles = asset("picture.css")
    return "data:image/svg+xml," + quote(f"{head}><style>{styles}</style>{rest}")
