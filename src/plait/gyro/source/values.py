"""Abstract values: what the analysis knows about a variable of a Python function.

A value is a term (a parameter, a constant, a generated id, an unknown value), a container of values, or an object of
the database interface: a connection or cursor, the result of a statement, a row. It can also be a table, an expression
or a statement of SQLAlchemy Core (`sqlalchemy_core.py`).
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TypeAlias

from plait.gyro.sql.terms import Constant, Generated, Parameter, Term, Unknown

_handles = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Handle:
    """A connection, cursor, session or engine. Two variables for one cursor have the same number."""

    number: int = dataclasses.field(default_factory=lambda: next(_handles))


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a statement: names and terms of its columns, then `lastrowid` if an INSERT generated an id."""

    outputs: tuple[tuple[str, Term], ...] = ()

    @property
    def lastrowid(self) -> Term:
        found = [t for n, t in self.outputs if n == "lastrowid"]
        return found[0] if found else Unknown("the id of an inserted row", plain=True)

    @property
    def columns(self) -> list[tuple[str, Term]]:
        return [(n, t) for n, t in self.outputs if n != "lastrowid"]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a result. At run time it may be None; then the function cannot use its columns."""

    columns: tuple[tuple[str, Term], ...]

    def at(self, key: object) -> Term:
        """A column by number or name."""
        if isinstance(key, int) and 0 <= key < len(self.columns):
            return self.columns[key][1]
        found = [t for n, t in self.columns if n == key]
        return found[0] if len(found) == 1 else Unknown("a column of a row", plain=True)


@dataclasses.dataclass(frozen=True)
class Sequence:
    """A tuple, or a list that is never changed."""

    items: tuple[Value, ...]
    mutable: bool = False


@dataclasses.dataclass(frozen=True)
class Mapping:
    """A dict with constant keys that is never changed."""

    items: tuple[tuple[str, Value], ...]
    mutable: bool = True


@dataclasses.dataclass(frozen=True)
class Many:
    """Any number of values like this one: the result of a comprehension."""

    item: Value


@dataclasses.dataclass(frozen=True)
class Text:
    """SQLAlchemy's text(), with its bound values."""

    sql: str
    bound: tuple[tuple[str, Value], ...] = ()


@dataclasses.dataclass(frozen=True)
class CoreTable:
    """A Table of SQLAlchemy: its columns, and for each column whether values are stored unchanged."""

    name: str
    columns: tuple[tuple[str, bool], ...]
    written: str = ""
    """A column that SQLAlchemy fills: INSERT and UPDATE are then not understood."""
    ddl: str = ""
    """CREATE TABLE, if the whole definition is understood."""


@dataclasses.dataclass(frozen=True)
class CoreColumns:
    """The columns of a Table: `table.c`."""

    table: CoreTable


@dataclasses.dataclass(frozen=True)
class Clause:
    """An expression of SQLAlchemy as SQL, with its tables and the values of its placeholders."""

    sql: str
    tables: tuple[str, ...] = ()
    bound: tuple[tuple[str, Value], ...] = ()
    column: str = ""
    """The name of the column, if the expression is just a column."""
    plain: bool = False
    """Values are compared with it unchanged."""


@dataclasses.dataclass(frozen=True)
class Query:
    """A statement of SQLAlchemy, possibly incomplete."""

    kind: str
    table: CoreTable | None = None
    columns: tuple[Clause, ...] = ()
    where: tuple[Clause, ...] = ()
    values: tuple[tuple[str, Clause], ...] = ()
    tail: tuple[tuple[str, tuple[Clause, ...]], ...] = ()
    """GROUP BY, ORDER BY, LIMIT and others, in order."""
    more: tuple[str, ...] = ()
    """Tables in FROM that need not have a column in the statement."""
    problem: str = ""
    """The reason why it is not understood."""


Value: TypeAlias = (
    Term | Handle | Result | Row | Sequence | Mapping | Many | Text | CoreTable | CoreColumns | Clause | Query
)


def is_plain(value: Value | None) -> bool:
    """Whether it is certainly a stored value, and not an expression."""
    return isinstance(value, Parameter | Constant | Generated) or (isinstance(value, Unknown) and value.plain)


def as_term(value: Value) -> Term:
    """The value as a term for a placeholder."""
    return value if isinstance(value, Parameter | Constant | Generated | Unknown) else Unknown("a container or a row")


def merge(one: Value | None, other: Value | None) -> Value:
    """The value after one of two branches."""
    if one is not None and one == other:
        return one
    if isinstance(one, Handle) or isinstance(other, Handle):
        return Handle()  # it may be a connection
    return Unknown("the value differs between branches", plain=is_plain(one) and is_plain(other))


def has(value: Value, kind: type[Handle] | type[Query]) -> bool:
    """Whether a value contains a connection (or a statement)."""
    if isinstance(value, Sequence):
        return any(has(i, kind) for i in value.items)
    if isinstance(value, Mapping):
        return any(has(i, kind) for _, i in value.items)
    return isinstance(value, kind) or (isinstance(value, Many) and has(value.item, kind))
