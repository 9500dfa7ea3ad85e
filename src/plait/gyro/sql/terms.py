"""Values and conditions, as conditions of entries speak of them: neither SQL trees nor solver's formulas.

A term is what stands for one value: a column of a row, a parameter of the operation, an id that its server generates, a
constant, or something unknown. Whatever the analysis does not understand becomes `Unknown` or `Opaque`, which may be
anything: a condition can only become weaker by it, and a weaker condition can only have more conflicts.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Literal, TypeAlias

Kind = Literal["number", "text", "other"]
"""What equality of a column means: on numbers and on text, equal is identical; on others (collations that ignore case,
padded strings, dates, untyped columns), it may not be, and comparisons are opaque."""

Operator = Literal["=", "<", "<="]

_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of one row. `instance` tells the rows of one statement apart."""

    instance: str
    name: str
    kind: Kind
    nullable: bool = True

    def __str__(self) -> str:
        table, _, rest = self.instance.partition("#")
        return f"{'old ' if rest.endswith('/before') else ''}{table}.{self.name}"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An input parameter of the transaction."""

    name: str

    def __str__(self) -> str:
        return f":{self.name}"


@dataclasses.dataclass(frozen=True)
class Generated:
    """An id that the server which executes the operation generates: never generated twice, and it routes to that server."""

    source: str
    """The column that it is for: `table.column`. Ids for one column are never equal."""
    site: int
    """Which statement of the transaction."""

    def __str__(self) -> str:
        return f"new {self.source}"


@dataclasses.dataclass(frozen=True)
class Constant:
    """A number or a string of the statement's text; None is NULL."""

    value: int | str | None

    @property
    def kind(self) -> Kind:
        return "text" if isinstance(self.value, str) else "number"

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        return repr(self.value) if isinstance(self.value, str) else str(self.value)


@dataclasses.dataclass(frozen=True)
class Unknown:
    """Any value; `reason` says where it comes from. No two are the same unless they are the same object's copies."""

    reason: str
    number: int = dataclasses.field(default_factory=lambda: next(_numbers))
    plain: bool = False
    """It is certainly a value that is stored, and not an object of some library that stands for SQL."""

    def __str__(self) -> str:
        return "?"


Term: TypeAlias = Column | Parameter | Generated | Constant | Unknown


@dataclasses.dataclass(frozen=True)
class Compare:
    """`left operator right`, unknown if one is NULL."""

    operator: Operator
    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclasses.dataclass(frozen=True)
class Same:
    """Both NULL, or equal: what a column is after it was set."""

    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclasses.dataclass(frozen=True)
class IsNull:
    """Whether the term is NULL."""

    term: Term

    def __str__(self) -> str:
        return f"{self.term} is NULL"


@dataclasses.dataclass(frozen=True)
class Not:
    """Negation in three-valued logic."""

    part: Condition

    def __str__(self) -> str:
        return f"not ({self.part})"


@dataclasses.dataclass(frozen=True)
class And:
    """All of these; true if there are none."""

    parts: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        shown = [f"({p})" if isinstance(p, Or) else str(p) for p in self.parts if not _empty(p)]
        return " and ".join(shown) or "true"


@dataclasses.dataclass(frozen=True)
class Or:
    """One of these; false if there are none."""

    parts: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return " or ".join(f"({p})" if isinstance(p, And) else str(p) for p in self.parts) or "false"


@dataclasses.dataclass(frozen=True)
class Opaque:
    """A condition that the analysis does not look into: it may be true, false or unknown."""

    said: str
    number: int = dataclasses.field(default_factory=lambda: next(_numbers))

    def __str__(self) -> str:
        return f"⟨{self.said}⟩"


Condition: TypeAlias = Compare | Same | IsNull | Not | And | Or | Opaque

TRUE = And()


def _empty(condition: Condition) -> bool:
    return isinstance(condition, And) and all(_empty(p) for p in condition.parts)


def conjunction(*parts: Condition) -> Condition:
    """All of them, without nested conjunctions.

    >>> str(conjunction(TRUE, IsNull(Parameter("p"))))
    ':p is NULL'
    """
    flat: list[Condition] = []
    for part in parts:
        flat += part.parts if isinstance(part, And) else (part,)
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def atoms(condition: Condition) -> Iterator[Compare | Same | IsNull | Opaque]:
    """The conditions that have no conditions inside."""
    if isinstance(condition, And | Or):
        for part in condition.parts:
            yield from atoms(part)
    elif isinstance(condition, Not):
        yield from atoms(condition.part)
    else:
        yield condition


def terms(condition: Condition) -> Iterator[Term]:
    """Every term of a condition."""
    for atom in atoms(condition):
        if isinstance(atom, Compare | Same):
            yield atom.left
            yield atom.right
        elif isinstance(atom, IsNull):
            yield atom.term


def substitute(condition: Condition, terms: dict[Term, Term]) -> Condition:
    """The condition with terms replaced."""
    if isinstance(condition, And | Or):
        return type(condition)(tuple(substitute(p, terms) for p in condition.parts))
    if isinstance(condition, Not):
        return Not(substitute(condition.part, terms))
    if isinstance(condition, Opaque):
        return condition
    if isinstance(condition, IsNull):
        return IsNull(terms.get(condition.term, condition.term))
    left, right = terms.get(condition.left, condition.left), terms.get(condition.right, condition.right)
    return Compare(condition.operator, left, right) if isinstance(condition, Compare) else Same(left, right)
