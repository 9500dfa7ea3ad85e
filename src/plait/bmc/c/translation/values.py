"""Values and places of C during the translation: what is known about them beside the expression of the model."""

from __future__ import annotations

import msgspec

from plait.bmc.c.reading.types import CType
from plait.bmc.program.definition import Constant, Expr, Variable

Origins = frozenset[str]
"""Where a pointer may come from: `object x`, `function f`, or `variable v`, whose contents it may be."""
NOWHERE: Origins = frozenset()
ZERO, ONE = Constant(0), Constant(1)
TRUE = Constant(True)


class Object(msgspec.Struct, eq=False):
    """A variable of C, or all objects that one call of malloc makes."""

    name: str
    type: CType
    base: int | None
    """The address of its first cell. None: nobody takes its address."""
    process: int | None
    """The process of a local whose address nobody takes."""
    copies: int = 1
    """How many objects of this type there are: one after the other, with a cell in between."""
    heap: bool = False
    """Whether malloc makes it."""
    alive: Variable | None = None
    """For allocated objects that can be freed: whether each exists."""
    unset: bool = False
    """Whether its scalars have no value at first: to read one before it is set is a violation."""
    doubtful: bool = False
    """Whether a struct with fields that are not set may be copied to it."""
    initial: dict[tuple[str, ...], list[int]] = msgspec.field(default_factory=dict)
    """The initial values of each part that are not 0."""
    variables: dict[tuple[str, ...], Variable] = msgspec.field(default_factory=dict)
    flags: dict[tuple[str, ...], Variable] = msgspec.field(default_factory=dict)
    """For scalars that may have no value: whether each is set."""

    @property
    def key(self) -> str:
        """Its name among all objects."""
        return self.name if self.process is None else f"{self.process} {self.name}"


class Located(msgspec.Struct, frozen=True, eq=False):
    """A part of a known object."""

    object: Object
    type: CType
    address: Expr
    """Its address; 0 if the object has none."""
    path: tuple[str, ...] = ()
    """The fields that lead to it."""
    index: Expr = ZERO
    """Its number among all parts that these fields lead to."""
    count: int = 1
    """The number of these parts, as far as the indices are known."""
    copy: Expr = ZERO
    checks: tuple[tuple[Expr, str], ...] = ()
    """Conditions for an access, and what happens otherwise."""
    array: Located | None = None
    """The array of which it is an element."""
    position: Expr = ZERO
    """The index in that array."""


class Pointed(msgspec.Struct, frozen=True, eq=False):
    """What a pointer points to: the analysis knows only the possible objects."""

    address: Expr
    target: CType
    """The type of what the pointer points to."""
    origins: Origins
    type: CType
    steps: tuple[str | Expr, ...] = ()
    """The fields and indices inside of that."""
    text: str = "the pointer"


Reference = Located | Pointed


class Val(msgspec.Struct, frozen=True, eq=False):
    """A value."""

    expr: Expr
    type: CType
    origins: Origins = NOWHERE
    target: Located | None = None
    """What a pointer points to, if that is known."""
    function: str | None = None
    """The function, if the value is a known one."""
    parts: tuple[Val, ...] | None = None
    """The scalars of a struct."""
    known: Expr = TRUE
    """Whether it is set: a copy of a struct may have parts that are not."""

    @property
    def certain(self) -> bool:
        """Whether it is set, with all its parts."""
        return self.known == TRUE and all(part.certain for part in self.parts or ())

    @property
    def constant(self) -> int | None:
        """The value, if it is known."""
        return int(self.expr.value) if isinstance(self.expr, Constant) else None
