"""Terms and conditions of entries. They depend neither on the SQL parser nor on the solver.

A term is one value: a column of a row, a parameter of the operation, an id that the server generates, a constant, or
an unknown value. A value that the analysis does not understand becomes `Unknown`, and a condition becomes `Opaque`.
Both can be anything. So a condition can only become weaker, and a weaker condition can only have more conflicts.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Literal, TypeAlias

Kind: TypeAlias = str
"""The kind of a column (`kind.py`): `number`, `text`, … Comparisons of the kind `other`, and of two kinds, are opaque."""

Operator = Literal["=", "<", "<="]

_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of one row. `instance` distinguishes the rows of one statement."""

    instance: str
    name: str
    kind: Kind
    nullable: bool = True
    type: str = ""

    @property
    def source(self) -> str:
        """Its name in the schema: `table.column`."""
        return f"{self.instance.partition('#')[0]}.{self.name}"

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
    """An id that the executing server generates. It is unique, and it is mapped to this server."""

    source: str
    """The column of the id: `table.column`. Two ids for one column are never equal."""
    site: int
    """The number of the statement in the transaction."""

    def __str__(self) -> str:
        return f"new {self.source}"


@dataclasses.dataclass(frozen=True)
class Constant:
    """A number or a string in the text of the statement; None is NULL."""

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
    """Any value. `reason` says where it comes from. Two are equal only if they are copies of one object."""

    reason: str
    number: int = dataclasses.field(default_factory=lambda: next(_numbers))
    plain: bool = False
    """It is certainly a stored value, not an object that represents SQL (such as an expression of SQLAlchemy)."""

    def __str__(self) -> str:
        return "?"


Term: TypeAlias = Column | Parameter | Generated | Constant | Unknown


@dataclasses.dataclass(frozen=True)
class Compare:
    """`left operator right`: unknown if one side is NULL."""

    operator: Operator
    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclasses.dataclass(frozen=True)
class Same:
    """Both are NULL, or both are equal: the state of a column after an assignment."""

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
    """A conjunction; true if it is empty."""

    parts: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        shown = [f"({p})" if isinstance(p, Or) else str(p) for p in self.parts if not _empty(p)]
        return " and ".join(shown) or "true"


@dataclasses.dataclass(frozen=True)
class Or:
    """A disjunction; false if it is empty."""

    parts: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return " or ".join(f"({p})" if isinstance(p, And) else str(p) for p in self.parts) or "false"


@dataclasses.dataclass(frozen=True)
class Opaque:
    """A condition that the analysis does not understand: it may be true, false or unknown."""

    text: str
    number: int = dataclasses.field(default_factory=lambda: next(_numbers))

    def __str__(self) -> str:
        return f"⟨{self.text}⟩"


Condition: TypeAlias = Compare | Same | IsNull | Not | And | Or | Opaque

TRUE = And()


def _empty(condition: Condition) -> bool:
    return isinstance(condition, And) and all(_empty(p) for p in condition.parts)


def conjunction(*parts: Condition) -> Condition:
    """The conjunction of the parts, without nested conjunctions.

    >>> str(conjunction(TRUE, IsNull(Parameter("p"))))
    ':p is NULL'
    """
    flat: list[Condition] = []
    for part in parts:
        flat += part.parts if isinstance(part, And) else (part,)
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def atoms(condition: Condition) -> Iterator[Compare | Same | IsNull | Opaque]:
    """The conditions without inner conditions."""
    if isinstance(condition, And | Or):
        for part in condition.parts:
            yield from atoms(part)
    elif isinstance(condition, Not):
        yield from atoms(condition.part)
    else:
        yield condition


def terms(condition: Condition) -> Iterator[Term]:
    """All terms of a condition."""
    for atom in atoms(condition):
        if isinstance(atom, Compare | Same):
            yield atom.left
            yield atom.right
        elif isinstance(atom, IsNull):
            yield atom.term


def normal_form(condition: Condition, instance: str) -> tuple[Condition, dict[Term, Term]]:
    """A condition on a row with numbers as names, and what became of each term.

    Conditions that differ in the names of parameters and of other rows only have the same normal form.

    >>> row = Column("carts#7", "id", "number")
    >>> str(normal_form(Compare("=", row, Parameter("cart")), "carts#7")[0])
    'row.id = :1'
    """
    renamed: dict[Term, Term] = {}
    instances = {instance: "row"}
    for number, term in enumerate(dict.fromkeys(terms(condition))):
        match term:
            case Column():
                other = instances.setdefault(term.instance, str(len(instances)))
                renamed[term] = dataclasses.replace(term, instance=other)
            case Parameter():
                renamed[term] = Parameter(str(number))
            case Generated():
                renamed[term] = Generated(term.source, number)
            case Unknown():
                renamed[term] = Unknown("", number)
            case Constant():
                pass
    return substitute(condition, renamed), renamed


def substitute(condition: Condition, terms: dict[Term, Term]) -> Condition:
    """Replace terms in a condition."""
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
