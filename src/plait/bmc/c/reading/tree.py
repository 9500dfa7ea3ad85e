"""The tree of a C program after parsing: every expression has its type, and implicit conversions are explicit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from plait.bmc.c.reading.types import CType, Integer
from plait.bmc.program.source import Place


@dataclasses.dataclass(eq=False)
class Declaration:
    """A variable or a parameter."""

    name: str
    type: CType
    place: Place
    initial: Expression | None = None
    static: bool = False
    """Whether it exists for the whole run: file scope, or a static local."""
    defined: bool = True
    assigned: int = 0
    """How many expressions may assign it, beside its initialisation."""
    shared: bool = False
    """Whether its address is taken."""
    unset: bool = False
    """Whether it may be read before it is assigned."""
    length: Expression | None = None
    """The length of an array, if it is not a constant of the language."""


@dataclasses.dataclass(eq=False)
class Number:
    """A constant."""

    value: int
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Text:
    """A string literal."""

    value: str
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Name:
    """A variable."""

    declaration: Declaration
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class FunctionName:
    """A function."""

    name: str
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Unary:
    """An operator with one operand: - + ~ ! * &."""

    operator: str
    operand: Expression
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Binary:
    """An operator with two operands, also a comma."""

    operator: str
    left: Expression
    right: Expression
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Assign:
    """An assignment. With an operator: a compound one, which calculates in the type `calculation`."""

    operator: str
    target: Expression
    value: Expression
    type: CType
    place: Place
    calculation: Integer | None = None


@dataclasses.dataclass(eq=False)
class Increment:
    """`++` or `--`, before (prefix) or after its operand."""

    change: int
    prefix: bool
    target: Expression
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Conditional:
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Cast:
    """A conversion, explicit or implicit. Also the use of an array as a pointer to its first element."""

    operand: Expression
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Call:
    """A call of a function by name or through a pointer."""

    function: Expression
    arguments: list[Expression]
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Member:
    """`base.field`. (`p->field` is `(*p).field`.)"""

    base: Expression
    field: str
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Index:
    """`base[index]`; the base is a pointer."""

    base: Expression
    index: Expression
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Items:
    """An initialiser in braces. Each item has the fields and indices of its designator."""

    items: list[tuple[list[str | int], Expression]]
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Literal:
    """A compound literal: an object without a name."""

    declaration: Declaration
    type: CType
    place: Place


@dataclasses.dataclass(eq=False)
class Evaluated:
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


@dataclasses.dataclass(eq=False)
class Block:
    """Statements in braces."""

    body: list[Statement]
    place: Place


@dataclasses.dataclass(eq=False)
class Do:
    """An expression as a statement."""

    expression: Expression
    place: Place


@dataclasses.dataclass(eq=False)
class Declare:
    """The declaration of local variables."""

    declarations: list[Declaration]
    place: Place


@dataclasses.dataclass(eq=False)
class If:
    """`if`."""

    condition: Expression
    then: Statement
    otherwise: Statement | None
    place: Place


@dataclasses.dataclass(eq=False)
class Loop:
    """`while`, `do` and `for`."""

    initial: Statement | None
    condition: Expression | None
    step: Expression | None
    body: Statement
    place: Place
    first: bool = False
    """Whether the body runs before the condition is evaluated: `do`."""


@dataclasses.dataclass(eq=False)
class Switch:
    """`switch`."""

    value: Expression
    body: Statement
    place: Place


@dataclasses.dataclass(eq=False)
class Case:
    """`case low … high:` of a switch; without a value, `default:`."""

    low: int | None
    high: int | None
    body: Statement
    place: Place


@dataclasses.dataclass(eq=False)
class Target:
    """A label."""

    name: str
    body: Statement
    place: Place


@dataclasses.dataclass(eq=False)
class Jump:
    """`goto`, `break` or `continue`."""

    kind: str
    name: str
    place: Place


@dataclasses.dataclass(eq=False)
class Return:
    """`return`."""

    value: Expression | None
    place: Place


Statement = Block | Do | Declare | If | Loop | Switch | Case | Target | Jump | Return
Node = Expression | Statement | Declaration


@dataclasses.dataclass(eq=False)
class Definition:
    """A function with a body."""

    name: str
    parameters: list[Declaration]
    result: CType
    body: Block
    place: Place
    variables: list[Declaration] = dataclasses.field(default_factory=list)
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
