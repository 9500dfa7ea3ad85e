"""The syntax tree of a program. Both front ends (text and Python) make it.

Every node has its place in the source, so that an error can point at it.
"""

from __future__ import annotations

import dataclasses

from plait.bmc.program.source import Place, Source


class Node:
    """A node of the tree."""

    place: Place


@dataclasses.dataclass(frozen=True)
class Number(Node):
    """A whole number."""

    place: Place
    value: int


@dataclasses.dataclass(frozen=True)
class Truth(Node):
    """`true` or `false`."""

    place: Place
    value: bool


@dataclasses.dataclass(frozen=True)
class Name(Node):
    """`x`, `a[i]`, `p.x`, `p[2].a[i]`: a variable; with `owner`, a local of a process."""

    place: Place
    name: str
    index: Expression | None = None
    owner: str | None = None
    owner_index: Expression | None = None


@dataclasses.dataclass(frozen=True)
class Done(Node):
    """`done(p)`: the process has ended. Without a process: all processes have ended."""

    place: Place
    process: str | None = None
    index: Expression | None = None


@dataclasses.dataclass(frozen=True)
class Unary(Node):
    """`-e` or `!e`."""

    place: Place
    operator: str
    operand: Expression


@dataclasses.dataclass(frozen=True)
class Binary(Node):
    """An operator with two operands."""

    place: Place
    operator: str
    left: Expression
    right: Expression


@dataclasses.dataclass(frozen=True)
class Conditional(Node):
    """`c ? a : b`."""

    place: Place
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclasses.dataclass(frozen=True)
class Quantified(Node):
    """`forall i in low..high: e`, or `exists`."""

    place: Place
    universal: bool
    variable: str
    low: Expression
    high: Expression
    body: Expression


Expression = Number | Truth | Name | Done | Unary | Binary | Conditional | Quantified


@dataclasses.dataclass(frozen=True)
class Assign(Node):
    """`x = e;`"""

    place: Place
    target: Name
    value: Expression


@dataclasses.dataclass(frozen=True)
class Havoc(Node):
    """`havoc x;` or `havoc x in low..high;`: assign any value."""

    place: Place
    target: Name
    low: Expression | None = None
    high: Expression | None = None


@dataclasses.dataclass(frozen=True)
class Assume(Node):
    """`assume(c);`: wait until c holds."""

    place: Place
    condition: Expression


@dataclasses.dataclass(frozen=True)
class Assert(Node):
    """`assert(c);`: an error if c does not hold here."""

    place: Place
    condition: Expression


@dataclasses.dataclass(frozen=True)
class Locking(Node):
    """`lock(m);` or `unlock(m);`"""

    place: Place
    target: Name
    taken: bool


@dataclasses.dataclass(frozen=True)
class Skip(Node):
    """`skip;`: a step without effect."""

    place: Place


@dataclasses.dataclass(frozen=True)
class If(Node):
    """`if (c) { … } else { … }`"""

    place: Place
    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class While(Node):
    """`while (c) { … }`"""

    place: Place
    condition: Expression
    body: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class Choose(Node):
    """`choose { … } or { … }`: any one of the branches."""

    place: Place
    branches: tuple[tuple[Statement, ...], ...]


@dataclasses.dataclass(frozen=True)
class Atomic(Node):
    """`atomic { … }`: one step."""

    place: Place
    body: tuple[Statement, ...]


Statement = Assign | Havoc | Assume | Assert | Locking | Skip | If | While | Choose | Atomic


@dataclasses.dataclass(frozen=True)
class Constant(Node):
    """`const n = 4;`: a number or truth value that a parameter can replace."""

    place: Place
    name: str
    value: Expression


@dataclasses.dataclass(frozen=True)
class Declaration(Node):
    """`int x = 0;`, `bool b;`, `int a[3] = {1, 2, 3};`, `lock m;`, `int y in 0..3;`"""

    place: Place
    kind: str
    name: str
    size: Expression | None = None
    initial: tuple[Expression, ...] | None = None
    """For an array: one value for all cells, or one for each cell. None: free."""
    listed: bool = False
    low: Expression | None = None
    high: Expression | None = None


@dataclasses.dataclass(frozen=True)
class Parameter(Node):
    """`int left = (i + 1) % n`: a constant of each process."""

    place: Place
    name: str
    value: Expression


@dataclasses.dataclass(frozen=True)
class ProcessDeclaration(Node):
    """`process p[i in 0..n-1](int left = i) { … }`"""

    place: Place
    name: str
    variable: str | None
    low: Expression | None
    high: Expression | None
    parameters: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    body: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True)
class PropertyDeclaration(Node):
    """`always name: e;`, `final name: e;` or `reachable name: e;`"""

    place: Place
    kind: str
    name: str
    condition: Expression


@dataclasses.dataclass(frozen=True)
class ProgramTree:
    """The tree of a whole program."""

    source: Source
    name: str
    constants: tuple[Constant, ...] = ()
    variables: tuple[Declaration, ...] = ()
    initial: tuple[Expression, ...] = ()
    """`init e;`: conditions on the initial state."""
    processes: tuple[ProcessDeclaration, ...] = ()
    properties: tuple[PropertyDeclaration, ...] = ()
    count: tuple[Place, Expression] | None = None
    """`processes 3;`: the number of processes."""
    atomic: bool = False
    """`atomic statements;`: the author claims that every statement is one step."""
