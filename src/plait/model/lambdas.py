"""Names for lambdas: the name of a lambda is its source text, if that is short."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from typing import Any

LAMBDA = "<lambda>"
"""The name that Python gives to every lambda."""
MAX_LENGTH = 40
"""A longer text is not used as a name."""


def short_text(function: Callable[[Any], Any]) -> str | None:
    """The expression of a lambda as the user wrote it. None if it is long, or if there is no source.

    An expression with operators is put in parentheses, so that it can be part of a formula.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    # Each instruction knows its part of the source. The last instruction has the whole expression.
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
    if len(text) > MAX_LENGTH or isinstance(node, ast.Constant):
        return None
    return text if isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Name) else f"({text})"
