"""The syntax tree of a program. Both front ends (text and Python) make it.

Every node has its place in the source, so that an error can point at it.
"""

from __future__ import annotations

import msgspec

from plait.bmc.program.source import Place, Source


class Node(msgspec.Struct, frozen=True):
    """A node of the tree. Structs are defined faster than data classes, which matters when a command starts."""

    place: Place


class Number(Node, frozen=True):
    """A whole number."""

    value: int


class Truth(Node, frozen=True):
    """`true` or `false`."""

    value: bool


class Name(Node, frozen=True):
    """`x`, `a[i]`, `p.x`, `p[2].a[i]`: a variable; with `owner`, a local of a process."""

    name: str
    index: Expression | None = None
    owner: str | None = None
    owner_index: Expression | None = None


class Done(Node, frozen=True):
    """`done(p)`: the process has ended. Without a process: all processes have ended."""

    process: str | None = None
    index: Expression | None = None


class Unary(Node, frozen=True):
    """`-e` or `!e`."""

    operator: str
    operand: Expression


class Binary(Node, frozen=True):
    """An operator with two operands."""

    operator: str
    left: Expression
    right: Expression


class Conditional(Node, frozen=True):
    """`c ? a : b`."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Quantified(Node, frozen=True):
    """`forall i in low..high: e`, or `exists`."""

    universal: bool
    variable: str
    low: Expression
    high: Expression
    body: Expression


Expression = Number | Truth | Name | Done | Unary | Binary | Conditional | Quantified


class Assign(Node, frozen=True):
    """`x = e;`"""

    target: Name
    value: Expression


class Havoc(Node, frozen=True):
    """`havoc x;` or `havoc x in low..high;`: assign any value."""

    target: Name
    low: Expression | None = None
    high: Expression | None = None


class Assume(Node, frozen=True):
    """`assume(c);`: wait until c holds."""

    condition: Expression


class Assert(Node, frozen=True):
    """`assert(c);`: an error if c does not hold here."""

    condition: Expression


class Locking(Node, frozen=True):
    """`lock(m);` or `unlock(m);`"""

    target: Name
    taken: bool


class Skip(Node, frozen=True):
    """`skip;`: a step without effect."""


class If(Node, frozen=True):
    """`if (c) { … } else { … }`"""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


class While(Node, frozen=True):
    """`while (c) { … }`"""

    condition: Expression
    body: tuple[Statement, ...]


class Choose(Node, frozen=True):
    """`choose { … } or { … }`: any one of the branches."""

    branches: tuple[tuple[Statement, ...], ...]


class Atomic(Node, frozen=True):
    """`atomic { … }`: one step."""

    body: tuple[Statement, ...]


Statement = Assign | Havoc | Assume | Assert | Locking | Skip | If | While | Choose | Atomic


class Constant(Node, frozen=True):
    """`const n = 4;`: a number or truth value that a parameter can replace."""

    name: str
    value: Expression


class Declaration(Node, frozen=True):
    """`int x = 0;`, `bool b;`, `int a[3] = {1, 2, 3};`, `lock m;`, `int y in 0..3;`"""

    kind: str
    name: str
    size: Expression | None = None
    initial: tuple[Expression, ...] | None = None
    """For an array: one value for all cells, or one for each cell. None: free."""
    listed: bool = False
    low: Expression | None = None
    high: Expression | None = None


class Parameter(Node, frozen=True):
    """`int left = (i + 1) % n`: a constant of each process."""

    name: str
    value: Expression


class ProcessDeclaration(Node, frozen=True):
    """`process p[i in 0..n-1](int left = i) { … }`"""

    name: str
    variable: str | None
    low: Expression | None
    high: Expression | None
    parameters: tuple[Parameter, ...]
    locals: tuple[Declaration, ...]
    body: tuple[Statement, ...]


class PropertyDeclaration(Node, frozen=True):
    """`always name: e;`, `final name: e;` or `reachable name: e;`"""

    kind: str
    name: str
    condition: Expression


class ProgramTree(msgspec.Struct, frozen=True):
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
