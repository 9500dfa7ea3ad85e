"""Converts placeholders of SQLite for drivers that use `%s`."""

from __future__ import annotations

import functools
import re

_TOKEN = re.compile(
    r"""'(?:''|[^'])*'|"[^"]*"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|::|(?P<mark>\?)|(?<![\w:]):(?P<name>[A-Za-z_]\w*)|(?P<percent>%)""",
    re.DOTALL,
)


@functools.lru_cache(maxsize=4096)
def placeholders(sql: str) -> str:
    """The SQL with `%s` and `%(name)s` instead of `?` and `:name`.

    >>> placeholders("SELECT '?', a % 2 FROM t WHERE b = ? AND c::int = 1")
    "SELECT '?', a %% 2 FROM t WHERE b = %s AND c::int = 1"
    >>> placeholders("UPDATE t SET a = :value WHERE id = :id")
    'UPDATE t SET a = %(value)s WHERE id = %(id)s'
    >>> placeholders("SELECT a FROM t WHERE b = %s")
    'SELECT a FROM t WHERE b = %s'
    """
    found = [m for m in _TOKEN.finditer(sql) if m["mark"] or m["name"]]
    if not found:
        return sql

    def written(match: re.Match[str]) -> str:
        if match["mark"]:
            return "%s"
        if match["name"]:
            return f"%({match['name']})s"
        return match[0].replace("%", "%%")

    return _TOKEN.sub(written, sql)
