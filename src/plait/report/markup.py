"""Text into XML and HTML, harmlessly: every character that a model, a user or a file chose goes through `escape`."""

from __future__ import annotations

import html
import re
from importlib import resources

# What XML 1.0 forbids even as a character reference: a name with a NUL must not make the whole drawing unreadable.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(raw: str) -> str:
    """Make text safe inside elements and quoted attributes.

    >>> escape("<b> & '")
    '&lt;b&gt; &amp; &#x27;'
    """
    return html.escape(_FORBIDDEN.sub("\ufffd", raw), quote=True)


def asset(name: str) -> str:
    """A stylesheet or script that is shipped with the package, to be written into the page."""
    return resources.files("plait.report").joinpath("assets", name).read_text(encoding="utf-8")


def shorten(raw: str, length: int) -> str:
    """Cut with an ellipsis.

    >>> shorten("on_promises", 6)
    'on_pr…'
    """
    return raw if len(raw) <= length else raw[: max(1, length - 1)] + "…"
