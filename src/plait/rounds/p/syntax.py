"""The syntax tree of a P program. Each part has its place in the text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from plait.rounds.p.lexer import Place


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A part of the tree."""

    place: Place

    def parts(self) -> Iterator[Node]:
        """The nodes directly inside of this one, in the order of the text."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Node):
                    yield part

    def find(self, *kinds: type[Node]) -> Iterator[Node]:
        """The nodes of these kinds in this one, with this one."""
        if isinstance(self, kinds):
            yield self
        for part in self.parts():
            yield from part.find(*kinds)


# -- types -----------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class TypeName(Node):
    """A type: `int`, a name, or `seq`, `set`, `map`, `tuple`, `record` with the types of its parts and names of fields."""

    name: str
    of: tuple[TypeName, ...] = ()
    fields: tuple[str, ...] = ()


# -- expressions -----------------------------------------------------------------------------------------------------------


class Expression(Node):
    """An expression."""


@dataclasses.dataclass(frozen=True, eq=False)
class Literal(Expression):
    """A number, a truth value, a string or null."""

    value: int | bool | str | None


@dataclasses.dataclass(frozen=True, eq=False)
class Name(Expression):
    """A name, with its place."""

    name: str


@dataclasses.dataclass(frozen=True, eq=False)
class This(Expression):
    """`this`"""


@dataclasses.dataclass(frozen=True, eq=False)
class Choose(Expression):
    """`choose(of)`; without `of` it is `$`."""

    of: Expression | None


@dataclasses.dataclass(frozen=True, eq=False)
class TupleOf(Expression):
    """`(a, b)`"""

    items: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class RecordOf(Expression):
    """A named tuple."""

    names: tuple[str, ...]
    items: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Field(Expression):
    """`of.name`"""

    of: Expression
    name: str


@dataclasses.dataclass(frozen=True, eq=False)
class Item(Expression):
    """`of.0`"""

    of: Expression
    index: int


@dataclasses.dataclass(frozen=True, eq=False)
class Index(Expression):
    """`of[index]`"""

    of: Expression
    index: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class Call(Expression):
    """`function(arguments)`"""

    function: str
    arguments: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class New(Expression):
    """`new machine(arguments)`"""

    machine: str
    arguments: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Builtin(Expression):
    """`keys(of)`, `values(of)` or `sizeof(of)`."""

    name: str
    of: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class Default(Expression):
    """`default(type)`"""

    type: TypeName


@dataclasses.dataclass(frozen=True, eq=False)
class Unary(Expression):
    """`-of` or `!of`"""

    operator: str
    of: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class Binary(Expression):
    """`left + right`"""

    operator: str
    left: Expression
    right: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class Cast(Expression):
    """`of as type`, or `of to type`."""

    of: Expression
    word: str
    type: TypeName


@dataclasses.dataclass(frozen=True, eq=False)
class Format(Expression):
    """`format("…{0}", arguments)`"""

    text: str
    arguments: tuple[Expression, ...]


# -- statements ------------------------------------------------------------------------------------------------------------


class Statement(Node):
    """A statement."""


@dataclasses.dataclass(frozen=True, eq=False)
class Block(Statement):
    """`{ statements }`"""

    statements: tuple[Statement, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Assert(Statement):
    """`assert condition, message;`"""

    condition: Expression
    message: Expression | None


@dataclasses.dataclass(frozen=True, eq=False)
class Print(Statement):
    """`print message;`"""

    message: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class Return(Statement):
    """`return value;`"""

    value: Expression | None


@dataclasses.dataclass(frozen=True, eq=False)
class Break(Statement):
    """`break;`"""


@dataclasses.dataclass(frozen=True, eq=False)
class Continue(Statement):
    """`continue;`"""


@dataclasses.dataclass(frozen=True, eq=False)
class Assign(Statement):
    """`target = value;`"""

    target: Expression
    value: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class Insert(Statement):
    """`target += (index, value)` or `target += (value)`."""

    target: Expression
    index: Expression | None
    value: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class Remove(Statement):
    """`target -= value;`"""

    target: Expression
    value: Expression


@dataclasses.dataclass(frozen=True, eq=False)
class While(Statement):
    """`while (condition) body`"""

    condition: Expression
    body: Statement


@dataclasses.dataclass(frozen=True, eq=False)
class Foreach(Statement):
    """`foreach (name in collection) body`"""

    name: str
    collection: Expression
    body: Statement


@dataclasses.dataclass(frozen=True, eq=False)
class If(Statement):
    """`if (condition) then else otherwise`"""

    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclasses.dataclass(frozen=True, eq=False)
class Do(Statement):
    """A call or a `new` as a statement."""

    call: Call | New


@dataclasses.dataclass(frozen=True, eq=False)
class Raise(Statement):
    """`raise event, payload;`"""

    event: Expression
    payload: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Send(Statement):
    """`send machine, event, payload;`"""

    machine: Expression
    event: Expression
    payload: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Announce(Statement):
    """`announce event, payload;`"""

    event: Expression
    payload: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Goto(Statement):
    """`goto state, payload;`"""

    state: str
    payload: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Case(Node):
    """What a `receive` does with some events."""

    events: tuple[Name, ...]
    function: Function


@dataclasses.dataclass(frozen=True, eq=False)
class Receive(Statement):
    """`receive { cases }`"""

    cases: tuple[Case, ...]


# -- declarations ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Variable(Node):
    """A variable or a parameter."""

    name: str
    type: TypeName


@dataclasses.dataclass(frozen=True, eq=False)
class Function(Node):
    """A function. An anonymous one has the empty name and at most one parameter."""

    name: str
    parameters: tuple[Variable, ...]
    result: TypeName | None
    variables: tuple[Variable, ...]
    body: Block


@dataclasses.dataclass(frozen=True, eq=False)
class Handler(Node):
    """What a state does with an event: `do`, `goto`, `defer` or `ignore`. A function is its text, or its name."""

    word: str
    event: Name
    target: str = ""
    function: Function | Name | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class State(Node):
    """A state of a machine."""

    name: str
    start: bool
    temperature: str
    entry: Function | Name | None
    exit: Function | Name | None
    handlers: tuple[Handler, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Machine(Node):
    """A machine, or with `observes` a specification."""

    name: str
    observes: tuple[Name, ...] | None
    variables: tuple[Variable, ...]
    functions: tuple[Function, ...]
    states: tuple[State, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Event(Node):
    """`event name: type;`"""

    name: str
    type: TypeName | None


@dataclasses.dataclass(frozen=True, eq=False)
class Enum(Node):
    """`enum name { elements }`"""

    name: str
    elements: tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class TypeDefinition(Node):
    """`type name = type;`"""

    name: str
    type: TypeName


@dataclasses.dataclass(frozen=True, eq=False)
class Module(Node):
    """A module expression: names of machines or modules, and the specifications that it asserts."""

    names: tuple[Name, ...]
    asserts: tuple[Name, ...]
    modules: tuple[Module, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class NamedModule(Node):
    """`module name = module;`"""

    name: str
    module: Module


@dataclasses.dataclass(frozen=True, eq=False)
class Test(Node):
    """`test name [main=Machine]: module;`"""

    name: str
    main: Name
    module: Module


Declaration = Machine | Event | Enum | TypeDefinition | Function | NamedModule | Test
