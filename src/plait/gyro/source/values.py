"""What a variable of a Python function may hold, as far as the analysis of applications keeps track of it.

A value is a term (a parameter, a constant, a generated id, something unknown), a container of values that is handed to
`execute`, or something of the database interface: a connection or cursor, what a statement returned, a row of it; a table,
an expression or a statement of SQLAlchemy Core (`core.py`).
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TypeAlias

from plait.gyro.sql.terms import Constant, Generated, Parameter, Term, Unknown

_handles = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Handle:
    """A connection, cursor, session or engine. Two names of one cursor have the same number."""

    number: int = dataclasses.field(default_factory=lambda: next(_handles))


@dataclasses.dataclass(frozen=True)
class Result:
    """What a statement returned: names and terms of its columns, `lastrowid` last if an INSERT made an id."""

    outputs: tuple[tuple[str, Term], ...] = ()

    @property
    def lastrowid(self) -> Term:
        found = [t for n, t in self.outputs if n == "lastrowid"]
        return found[0] if found else Unknown("the id of a row that was inserted", plain=True)

    @property
    def columns(self) -> list[tuple[str, Term]]:
        return [(n, t) for n, t in self.outputs if n != "lastrowid"]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a result, or None if there is none; then it is of no use."""

    columns: tuple[tuple[str, Term], ...]

    def at(self, key: object) -> Term:
        """The column by its number or name."""
        if isinstance(key, int) and 0 <= key < len(self.columns):
            return self.columns[key][1]
        found = [t for n, t in self.columns if n == key]
        return found[0] if len(found) == 1 else Unknown("a column of a row", plain=True)


@dataclasses.dataclass(frozen=True)
class Sequence:
    """A tuple, or a list that nobody changes."""

    items: tuple[Value, ...]
    mutable: bool = False


@dataclasses.dataclass(frozen=True)
class Mapping:
    """A dict with constant keys that nobody changes."""

    items: tuple[tuple[str, Value], ...]
    mutable: bool = True


@dataclasses.dataclass(frozen=True)
class Many:
    """Any number of values like this one: a comprehension."""

    item: Value


@dataclasses.dataclass(frozen=True)
class Text:
    """SQLAlchemy's text(), with what was bound to it."""

    sql: str
    bound: tuple[tuple[str, Value], ...] = ()


@dataclasses.dataclass(frozen=True)
class CoreTable:
    """A Table of SQLAlchemy: its columns, and whether a value for one is stored as it is given."""

    name: str
    columns: tuple[tuple[str, bool], ...]
    written: str = ""
    """Why what is written to it is not known: columns that SQLAlchemy fills."""
    ddl: str = ""
    """CREATE TABLE, if the definition has nothing that is not understood."""


@dataclasses.dataclass(frozen=True)
class CoreColumns:
    """The columns of a Table: `table.c`."""

    table: CoreTable


@dataclasses.dataclass(frozen=True)
class Clause:
    """An expression of SQLAlchemy as SQL, with the tables that it mentions and what is bound to its placeholders."""

    sql: str
    tables: tuple[str, ...] = ()
    bound: tuple[tuple[str, Value], ...] = ()
    column: str = ""
    """Its name, if it is a column and nothing else."""
    plain: bool = False
    """A value that is compared with it is compared as it is given."""


@dataclasses.dataclass(frozen=True)
class Query:
    """A statement of SQLAlchemy that is being put together."""

    kind: str
    table: CoreTable | None = None
    columns: tuple[Clause, ...] = ()
    where: tuple[Clause, ...] = ()
    values: tuple[tuple[str, Clause], ...] = ()
    tail: tuple[tuple[str, tuple[Clause, ...]], ...] = ()
    """GROUP BY and the like, in their order."""
    more: tuple[str, ...] = ()
    """Tables that it is from although no column says so."""
    problem: str = ""
    """Why it is not understood."""


Value: TypeAlias = (
    Term | Handle | Result | Row | Sequence | Mapping | Many | Text | CoreTable | CoreColumns | Clause | Query
)


def is_plain(value: Value | None) -> bool:
    """Whether it is certainly a value that can be stored."""
    return isinstance(value, Parameter | Constant | Generated) or (isinstance(value, Unknown) and value.plain)


def as_term(value: Value) -> Term:
    """The value as a parameter of a statement."""
    return value if isinstance(value, Parameter | Constant | Generated | Unknown) else Unknown("a container or a row")


def merge(one: Value | None, other: Value | None) -> Value:
    """What holds after either of two branches."""
    if one is not None and one == other:
        return one
    if isinstance(one, Handle) or isinstance(other, Handle):
        return Handle()  # it may be a connection: whoever gets it may execute SQL
    return Unknown("it differs between branches", plain=is_plain(one) and is_plain(other))


def has(value: Value, kind: type[Handle] | type[Query]) -> bool:
    """Whether a connection, or a statement, is in it."""
    if isinstance(value, Sequence):
        return any(has(i, kind) for i in value.items)
    if isinstance(value, Mapping):
        return any(has(i, kind) for _, i in value.items)
    return isinstance(value, kind) or (isinstance(value, Many) and has(value.item, kind))
