"""The tree of a C program after parsing: every expression has its type, and implicit conversions are explicit."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from plait.bmc.c.reading.types import CType, Integer
from plait.bmc.program.source import Place


class Declaration(msgspec.Struct, eq=False):
    """A variable or a parameter."""

    name: str
    type: CType
    place: Place
    initial: Expression | None = None
    static: bool = False
    """Whether it exists for the whole run: file scope, or a static local."""
    thread_local: bool = False
    """Whether each thread has one of its own."""
    defined: bool = True
    assigned: int = 0
    """How many expressions may assign it, beside its initialisation."""
    shared: bool = False
    """Whether its address is taken."""
    unset: bool = False
    """Whether it may be read before it is assigned."""
    filled: bool = False
    """Whether it is an array that a loop fills before anything else uses it."""
    skipped: bool = False
    """Whether it may be used although a jump led over its declaration."""
    length: Expression | None = None
    """The length of an array, if it is not a constant of the language."""


class Number(msgspec.Struct, eq=False):
    """A constant."""

    value: int
    type: CType
    place: Place


class Text(msgspec.Struct, eq=False):
    """A string literal."""

    value: str
    type: CType
    place: Place


class Name(msgspec.Struct, eq=False):
    """A variable."""

    declaration: Declaration
    type: CType
    place: Place


class FunctionName(msgspec.Struct, eq=False):
    """A function."""

    name: str
    type: CType
    place: Place


class Unary(msgspec.Struct, eq=False):
    """An operator with one operand: - + ~ ! * &."""

    operator: str
    operand: Expression
    type: CType
    place: Place


class Binary(msgspec.Struct, eq=False):
    """An operator with two operands, also a comma."""

    operator: str
    left: Expression
    right: Expression
    type: CType
    place: Place


class Assign(msgspec.Struct, eq=False):
    """An assignment. With an operator: a compound one, which calculates in the type `calculation`."""

    operator: str
    target: Expression
    value: Expression
    type: CType
    place: Place
    calculation: Integer | None = None


class Increment(msgspec.Struct, eq=False):
    """`++` or `--`, before (prefix) or after its operand."""

    change: int
    prefix: bool
    target: Expression
    type: CType
    place: Place


class Conditional(msgspec.Struct, eq=False):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    type: CType
    place: Place


class Cast(msgspec.Struct, eq=False):
    """A conversion, explicit or implicit. Also the use of an array as a pointer to its first element."""

    operand: Expression
    type: CType
    place: Place


class Call(msgspec.Struct, eq=False):
    """A call of a function by name or through a pointer."""

    function: Expression
    arguments: list[Expression]
    type: CType
    place: Place


class Member(msgspec.Struct, eq=False):
    """`base.field`. (`p->field` is `(*p).field`.)"""

    base: Expression
    field: str
    type: CType
    place: Place


class Index(msgspec.Struct, eq=False):
    """`base[index]`; the base is a pointer."""

    base: Expression
    index: Expression
    type: CType
    place: Place


class Items(msgspec.Struct, eq=False):
    """An initialiser in braces. Each item has the fields and indices of its designator."""

    items: list[tuple[list[str | int], Expression]]
    type: CType
    place: Place


class Literal(msgspec.Struct, eq=False):
    """A compound literal: an object without a name."""

    declaration: Declaration
    type: CType
    place: Place


class Evaluated(msgspec.Struct, eq=False):
    """A statement expression of GNU C: `({ …; value; })`."""

    body: Block
    type: CType
    place: Place


Expression = (
    Number
    | Text
    | Name
    | FunctionName
    | Unary
    | Binary
    | Assign
    | Increment
    | Conditional
    | Cast
    | Call
    | Member
    | Index
    | Items
    | Literal
    | Evaluated
)


class Block(msgspec.Struct, eq=False):
    """Statements in braces."""

    body: list[Statement]
    place: Place


class Do(msgspec.Struct, eq=False):
    """An expression as a statement."""

    expression: Expression
    place: Place


class Declare(msgspec.Struct, eq=False):
    """The declaration of local variables."""

    declarations: list[Declaration]
    place: Place


class If(msgspec.Struct, eq=False):
    """`if`."""

    condition: Expression
    then: Statement
    otherwise: Statement | None
    place: Place


class Loop(msgspec.Struct, eq=False):
    """`while`, `do` and `for`."""

    initial: Statement | None
    condition: Expression | None
    step: Expression | None
    body: Statement
    place: Place
    first: bool = False
    """Whether the body runs before the condition is evaluated: `do`."""


class Switch(msgspec.Struct, eq=False):
    """`switch`."""

    value: Expression
    body: Statement
    place: Place


class Case(msgspec.Struct, eq=False):
    """`case low … high:` of a switch; without a value, `default:`."""

    low: int | None
    high: int | None
    body: Statement
    place: Place


class Target(msgspec.Struct, eq=False):
    """A label."""

    name: str
    body: Statement
    place: Place


class Jump(msgspec.Struct, eq=False):
    """`goto`, `break` or `continue`."""

    kind: str
    name: str
    place: Place


class Return(msgspec.Struct, eq=False):
    """`return`."""

    value: Expression | None
    place: Place


Statement = Block | Do | Declare | If | Loop | Switch | Case | Target | Jump | Return
Node = Expression | Statement | Declaration


class Definition(msgspec.Struct, eq=False):
    """A function with a body."""

    name: str
    parameters: list[Declaration]
    result: CType
    body: Block
    place: Place
    variables: list[Declaration] = msgspec.field(default_factory=list)
    """Its parameters and local variables."""
    jumps: bool = False
    """Whether a goto leads back, so that any of its statements may be repeated."""


def children(node: Node) -> Iterator[Node]:
    """The parts of a node, in order."""
    match node:
        case Number() | Text() | FunctionName() | Jump() | Name():
            return
        case Declaration():
            yield from (part for part in (node.length, node.initial) if part is not None)
        case Literal():
            yield node.declaration
        case Unary() | Cast():
            yield node.operand
        case Binary():
            yield from (node.left, node.right)
        case Assign():
            yield from (node.target, node.value)
        case Increment():
            yield node.target
        case Conditional():
            yield from (node.condition, node.then, node.otherwise)
        case Call():
            yield node.function
            yield from node.arguments
        case Member():
            yield node.base
        case Index():
            yield from (node.base, node.index)
        case Items():
            yield from (item for _, item in node.items)
        case Evaluated() | Target() | Case():
            yield node.body
        case Block():
            yield from node.body
        case Do():
            yield node.expression
        case Declare():
            yield from node.declarations
        case If():
            yield from (part for part in (node.condition, node.then, node.otherwise) if part is not None)
        case Loop():
            parts = (node.initial, node.condition, node.step, node.body)
            yield from (part for part in parts if part is not None)
        case Switch():
            yield from (node.value, node.body)
        case Return():
            if node.value is not None:
                yield node.value


def nodes(node: Node) -> Iterator[Node]:
    """A node and all its parts."""
    yield node
    for child in children(node):
        yield from nodes(child)
