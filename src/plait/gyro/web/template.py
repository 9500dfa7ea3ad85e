"""The template of a statement: its text without values, equal for all executions that the analysis need not distinguish.

Placeholders become slots. Two kinds of repetition are removed: `IN (?, ?, …)` has one slot with several values, and an
INSERT of several rows is several executions of an INSERT of one row. Both have the same entries for the analysis: a row
that satisfies `x IN (a, b)` satisfies `x IN (a)` or `x IN (b)`, and each inserted row has entries of its own. Numbers after
LIMIT and OFFSET become 1: Django writes the number of the page into the statement, and the analysis ignores them.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

_TOKEN = re.compile(
    r"(?P<aside>--[^\n]*|/\*.*?\*/|\s+)|(?P<text>'(?:''|[^'])*'|\"(?:\"\"|[^\"])*\"|`[^`]*`|\[\w+\]|::)"
    r"|%\((?P<pyformat>\w+)\)s|(?P<format>%s)|\?(?P<qmark>\d*)|:(?P<named>\w+)|\$(?P<dollar>\d+)"
    r"|(?P<word>\w+)|(?P<other>.)",
    re.DOTALL,
)
_EMPTY = ["(", "SELECT", "1", "FROM", "(", "SELECT", "1", ")", "WHERE", "1", "!", "=", "1", ")"]
"""How SQLAlchemy writes an empty list after IN."""
_INSERTED = re.compile(r'INSERT (?:OR \w+ )?INTO (?:\w+ \. )?["`\[]?(\w+)["`\]]? (?:\(([^()]*)\))?', re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Template:
    """The text of a statement, and the names or positions of the placeholders in each slot, one list per inserted row."""

    text: str
    rows: tuple[tuple[tuple[str | int, ...], ...], ...]

    def values(self, parameters: Any) -> list[tuple[tuple[Any, ...], ...]]:
        """The values in each slot, one list per row.

        >>> template_of("SELECT x FROM t WHERE a = ? AND b IN (?, ?)").values((1, 2, 3))
        [((1,), (2, 3))]
        """
        values: Any = parameters if isinstance(parameters, Mapping) else list(parameters or ())
        return [tuple(tuple(values[key] for key in slot) for slot in row) for row in self.rows]

    @property
    def names(self) -> list[str]:
        """The names of the placeholders of the first row; empty if a placeholder has no name."""
        return [str(slot[0]) for slot in self.rows[0] if slot]

    def named(self, names: Sequence[str]) -> str:
        """The statement with other names of its placeholders.

        >>> template_of("SELECT x FROM t WHERE a=?").named(["cart"])
        'SELECT x FROM t WHERE a = :cart'
        """
        parts = [f":{names[int(p[2:]) - 1]}" if p.startswith(":s") else p for p in self.text.split(" ")]
        return _spaced(parts)

    @property
    def inserted(self) -> tuple[str, frozenset[str]] | None:
        """The table and the columns of an INSERT."""
        found = _INSERTED.match(self.text)
        if found is None:
            return None
        columns = frozenset(c.strip(' "`[]').lower() for c in (found[2] or "").split(","))
        return found[1].lower(), columns


@functools.lru_cache(maxsize=4096)
def template_of(sql: str) -> Template:
    """The template of a statement.

    >>> template_of("INSERT INTO t (a)  VALUES (?), (?)")
    Template(text='INSERT INTO t ( a ) VALUES ( :s1 )', rows=(((0,),), ((1,),)))
    >>> template_of("DELETE FROM t WHERE a IN (:x, :y)").text
    'DELETE FROM t WHERE a IN ( :s1 )'
    >>> template_of("SELECT a FROM t LIMIT 25 OFFSET 50").text
    'SELECT a FROM t LIMIT 1 OFFSET 1'
    """
    tokens, keys = _tokens(sql)
    tokens, slots = _lists(tokens, keys)
    tokens, rows = _rows(tokens, slots)
    number = 0
    text = []
    for token in tokens:
        number += token is None
        text.append(f":s{number}" if token is None else token)
    return Template(" ".join(text), tuple(tuple(map(tuple, row)) for row in rows))


Key = str | int


def _tokens(sql: str) -> tuple[list[str | None], list[Key]]:
    """The words of a statement, None for a placeholder; the keys of the placeholders in the parameters."""
    tokens: list[str | None] = []
    keys: list[Key] = []
    position = 0
    for match in _TOKEN.finditer(sql.strip().rstrip(";")):
        kind = match.lastgroup
        if kind == "aside":
            continue
        if kind in ("text", "word", "other"):
            paged = bool(tokens) and str(tokens[-1]).upper() in ("LIMIT", "OFFSET") and match[0].isdigit()
            tokens.append("1" if paged else match[0].replace(" ", "\u00a0") if kind == "text" else match[0])
            continue
        tokens.append(None)
        if kind == "format" or (kind == "qmark" and not match["qmark"]):
            keys.append(position)
            position += 1
        else:
            name = match[str(kind)]
            keys.append(int(name) - 1 if name.isdigit() else name)
    return tokens, keys


def _lists(tokens: list[str | None], keys: list[Key]) -> tuple[list[str | None], list[list[Key]]]:
    """Replace the list after IN by one slot."""
    found: list[str | None] = []
    slots: list[list[Key]] = []
    left = iter(keys)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        found.append(token)
        at += 1
        if token is None:
            slots.append([next(left)])
        elif token.upper() == "IN" and at < len(tokens) and tokens[at] == "(":
            inner = at + 1
            while inner + 1 < len(tokens) and tokens[inner] is None and tokens[inner + 1] == ",":
                inner += 2
            if inner + 1 < len(tokens) and tokens[inner] is None and tokens[inner + 1] == ")":
                slots.append([next(left) for _ in range((inner - at) // 2 + 1)])
                found += ["(", None, ")"]
                at = inner + 2
            elif tokens[at : at + len(_EMPTY)] == _EMPTY and (len(found) < 2 or str(found[-2]).upper() != "NOT"):
                slots.append([])
                found += ["(", None, ")"]
                at += len(_EMPTY)
    return found, slots


def _rows(tokens: list[str | None], slots: list[list[Key]]) -> tuple[list[str | None], list[list[list[Key]]]]:
    """Split an INSERT of several equal rows."""
    words = [t.upper() if t is not None else t for t in tokens]
    if "VALUES" not in words or words[0] != "INSERT":
        return tokens, [slots]
    start = words.index("VALUES") + 1
    groups: list[tuple[int, int]] = []
    at = start
    while at < len(tokens) and tokens[at] == "(":
        depth, end = 1, at + 1
        while end < len(tokens) and depth:
            depth += {"(": 1, ")": -1}.get(tokens[end] or "", 0)
            end += 1
        groups.append((at, end))
        at = end + 1 if end < len(tokens) and tokens[end] == "," else end
        if at == end:
            break
    shapes = {tuple(tokens[a:b]) for a, b in groups}
    if len(groups) < 2 or len(shapes) != 1:
        return tokens, [slots]
    before = sum(t is None for t in tokens[:start])
    size = sum(t is None for t in tokens[groups[0][0] : groups[0][1]])
    head, tail = slots[:before], slots[before + size * len(groups) :]
    rows = [head + slots[before + i * size : before + (i + 1) * size] + tail for i in range(len(groups))]
    return tokens[: groups[0][1]] + tokens[groups[-1][1] :], rows


def _spaced(parts: list[str]) -> str:
    """A statement with the usual spaces."""
    text = " ".join(parts)
    text = re.sub(r" ([,).;])", r"\1", text)
    text = re.sub(r"([(.]) ", r"\1", text)
    text = re.sub(r"([<>!|]) (?=[=<>|])", r"\1", text)
    text = re.sub(r" (::) ", r"\1", text)
    return text.replace("\u00a0", " ")
