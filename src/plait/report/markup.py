"""Safe text for XML and HTML: all text from a model, a user or a file goes through `escape`."""

from __future__ import annotations

import html
import re
from importlib import resources

from plait.kernel.errors import UsageError

# XML 1.0 forbids these even as character references. A name with a NUL must not make the whole drawing unreadable.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape(raw: str) -> str:
    """Make text safe inside elements and quoted attributes.

    >>> escape("<b> & '")
    '&lt;b&gt; &amp; &#x27;'
    """
    return html.escape(_FORBIDDEN.sub("\ufffd", raw), quote=True)


def asset(name: str) -> str:
    """A stylesheet or script of the package, as text to write into a page."""
    file = resources.files("plait.report").joinpath("assets", name)
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{name} is not built: this is a clone of Plait", hint="run `make setup`") from None


def diagram_styles(*, dark: bool = True) -> str:
    """The styles of all diagrams. With `dark`, they are dark for readers who prefer this."""
    return asset("space_time.css") + (asset("space_time_dark.css") if dark else "")


def shorten(raw: str, length: int) -> str:
    """Cut a text that is too long, and end it with an ellipsis.

    >>> shorten("on_promises", 6)
    'on_pr…'
    """
    return raw if len(raw) <= length else raw[: max(1, length - 1)] + "…"


_NARROW = dict.fromkeys("ijlI|'`", 0.3) | dict.fromkeys(' .,:;!ftr()[]/\\-"', 0.41)
_BROAD = dict.fromkeys("mMW@%…", 1.0) | dict.fromkeys("wOQGDNH→=+<>–", 0.84)


def text_width(raw: str, size: float) -> float:
    """An upper bound for the width of a text. It assumes a wide font (DejaVu Sans).

    >>> text_width("ill", 10) < text_width("sea", 10) < text_width("MWM", 10)
    True
    """
    ems = sum(_NARROW.get(c) or _BROAD.get(c) or (0.7 if c.isupper() else 0.64 if c.isascii() else 1.0) for c in raw)
    return ems * size
