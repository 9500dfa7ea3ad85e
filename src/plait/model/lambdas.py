"""What to call a lambda: its own text, where that is short enough to be a name."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from typing import Any

LAMBDA = "<lambda>"
"""What Python calls every one of them."""
MOST = 40
"""Characters of a text that is a name."""


def short_text(function: Callable[[Any], Any]) -> str | None:
    """The expression of a lambda as it is written, or None where it is long or there is no source.

    An expression of operators is in parentheses, so that it can stand in a formula.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    # Each instruction knows the part of the source that it comes from; that of the last one is the whole expression.
    places = [place for place in code.co_positions() if None not in place and place[2] != place[3]]
    if not places or len({line for first, last, *_ in places for line in (first, last)}) > 1:
        return None
    start, end = min(place[2] for place in places), max(place[3] for place in places)
    line = linecache.getline(code.co_filename, places[0][0]).encode()
    text = line[start:end].decode(errors="replace")
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if len(text) > MOST or isinstance(node, ast.Constant):
        return None
    return text if isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Name) else f"({text})"
