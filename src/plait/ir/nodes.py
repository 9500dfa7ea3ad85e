"""The nodes of the intermediate representation: a Program is functions, classes and entry points.

The representation is a tree, as the source is. Lowering (`lower.py`) has resolved everything that does not depend on
values: names are slots of a frame, constants or functions; `super()`, mixins and overridden methods of the process itself
are resolved to one function; default arguments and keywords are in their places; patterns of `match` are tests.

The virtual machine (`rust/src/vm/`) executes it with the meaning that CPython gives to the source, or gives up (*bails*).
Then CPython answers the question. So a node means what its Python construct means, and every exception, also a failed
assertion, is a reason to bail.

A program is sent to the virtual machine as JSON (`encoded`). A node is an array: its name, then its fields in the order of
their declaration. Values are canonical bytes in base64, as `plait._native.Codec` writes them.
"""

from __future__ import annotations

from typing import Literal, Union

import msgspec


class Node(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A node of the tree."""


# -- expressions -----------------------------------------------------------------------------------------------------

Unary = Literal["-", "+", "~", "not"]
Binary = Literal["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]
Comparison = Literal["==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in"]


class Constant(Node, frozen=True):
    """A value: a literal, a global of the user's module, an enum member, a process id.

    A list, dict or set is one object that all evaluations share, as a global is. A program that changes it bails.
    """

    content: bytes


class Local(Node, frozen=True):
    """The variable in a slot of the frame. Bails if it has no value."""

    slot: int


class Attribute(Node, frozen=True):
    """`value.name` of a process, a view of a process, a monitor, a message, a record, a named tuple or an enum member.

    Which field it is depends on the class of the value. `sender` of messages, `name` and `value` of enum members, `id`,
    `status`, `crashed` and `inbox` of processes, `role` and `index` of process ids are understood too.
    """

    value: Expression
    name: str


class Subscript(Node, frozen=True):
    """`value[index]`. The index may be a `Slice`."""

    value: Expression
    index: Expression


class Slice(Node, frozen=True):
    """`lower:upper:step`, as an index only."""

    lower: Expression | None
    upper: Expression | None
    step: Expression | None


class UnaryOperation(Node, frozen=True):
    """`-a`, `not a`"""

    operator: Unary
    operand: Expression


class BinaryOperation(Node, frozen=True):
    """`a + b`"""

    operator: Binary
    left: Expression
    right: Expression


class And(Node, frozen=True):
    """`a and b and …`: the value of the first operand that is false, else that of the last one."""

    operands: list[Expression]


class Or(Node, frozen=True):
    """`a or b or …`: the value of the first operand that is true, else that of the last one."""

    operands: list[Expression]


class Compare(Node, frozen=True):
    """`left op right op right …`: evaluates each operand once, and stops at the first comparison that is false."""

    left: Expression
    operators: list[Comparison]
    rights: list[Expression]


class Conditional(Node, frozen=True):
    """`body if test else orelse`"""

    test: Expression
    body: Expression
    orelse: Expression


class Assigned(Node, frozen=True):
    """`(name := value)`"""

    slot: int
    value: Expression


class Starred(Node, frozen=True):
    """`*value` in a display or a call."""

    value: Expression


class TupleDisplay(Node, frozen=True):
    """`(a, b)`"""

    items: list[Expression]


class ListDisplay(Node, frozen=True):
    """`[a, b]`"""

    items: list[Expression]


class SetDisplay(Node, frozen=True):
    """`{a, b}`"""

    items: list[Expression]


class DictDisplay(Node, frozen=True):
    """`{key: value, **other}`: the key of `**other` is None."""

    keys: list[Expression | None]
    values: list[Expression]


class Clause(Node, frozen=True):
    """`for target in iterable if condition if condition …`"""

    target: Target
    iterable: Expression
    conditions: list[Expression]


class ListComprehension(Node, frozen=True):
    """`[element for …]`"""

    element: Expression
    clauses: list[Clause]


class SetComprehension(Node, frozen=True):
    """`{element for …}`"""

    element: Expression
    clauses: list[Clause]


class DictComprehension(Node, frozen=True):
    """`{key: value for …}`"""

    key: Expression
    value: Expression
    clauses: list[Clause]


class Generator(Node, frozen=True):
    """A generator expression. It stands only where something consumes it at once: as an argument of `CallBuiltin` or
    `CallMethod`, as the iterable of a `For` or a `Clause`, or as a receiver of `Send` or the options of `Choose`. It is
    lazy: what the consumer does not ask for is not evaluated."""

    element: Expression
    clauses: list[Clause]


class FormattedValue(Node, frozen=True):
    """`{value!conversion:format}` of an f-string. The conversion is "", "s", "r" or "a"."""

    value: Expression
    conversion: str
    format: Expression | None


class JoinedString(Node, frozen=True):
    """An f-string: its parts, one after the other. Bails on values whose text the virtual machine does not make."""

    parts: list[Expression]


class Lambda(Node, frozen=True):
    """A function inside a function: a lambda, or a nested `def` (then the body has statements). It uses the frame around it:
    `parameters` and the variables that it captures are slots there. Lowering refuses one that recurs or outlives it."""

    parameters: list[int]
    defaults: list[Expression]
    """Of the last parameters; evaluated when the lambda is made."""
    body: list[Statement]


class FunctionValue(Node, frozen=True):
    """A function of the program as a value, as in `key=rank`; with `bound`, its first argument (`key=self.rank`)."""

    function: int
    bound: Expression | None


class BuiltinValue(Node, frozen=True):
    """A built-in function as a value, as in `key=len`, or an unbound method of a built-in type (`str.lower`)."""

    name: str


class CallValue(Node, frozen=True):
    """The call of a value that is a function: of a variable that holds a lambda or a nested function."""

    function: Expression
    arguments: list[Expression]


class CallFunction(Node, frozen=True):
    """The call of a function of the program. The arguments are complete: one for each parameter. (`*args` is one tuple.)"""

    function: int
    arguments: list[Expression]


class CallMethod(Node, frozen=True):
    """`value.name(arguments, **keywords)`, where the class of the value decides: a method of a built-in type, or of a
    class of the user (`Class.methods`; then there are no keywords)."""

    value: Expression
    name: str
    arguments: list[Expression]
    keywords: dict[str, Expression]


class CallBuiltin(Node, frozen=True):
    """The call of a function or class that the virtual machine knows (`builtins.py` has the list): `len`, `range`,
    `itertools.combinations`, `collections.Counter` and so on. The name is qualified if it is not in `builtins`."""

    name: str
    arguments: list[Expression]
    keywords: dict[str, Expression]


class IsInstance(Node, frozen=True):
    """`isinstance(value, (types…))`: names of built-in types ("int", "tuple", …) and classes of the program by index."""

    value: Expression
    builtins: list[str]
    classes: list[int]


class Construct(Node, frozen=True):
    """An instance of a class of the program, with a value for each field in order. A flag or a derived class has one."""

    class_: int
    fields: list[Expression]


class Replace(Node, frozen=True):
    """`dataclasses.replace(value, **changes)`, and `value._replace(**changes)` of a named tuple."""

    value: Expression
    changes: dict[str, Expression]


# -- what only a step, a guard or a property has -----------------------------------------------------------------------


class SelfId(Node, frozen=True):
    """`self.id`: the id of the process that runs."""


class Send(Node, frozen=True):
    """`self.send(to, message)`: to one process, or to each of an iterable of processes. Its value is None."""

    to: Expression
    message: Expression


class Broadcast(Node, frozen=True):
    """`self.broadcast(Role, message, myself=…)`: to the processes at these positions, in this order."""

    positions: list[int]
    message: Expression
    myself: Expression | None


class Announce(Node, frozen=True):
    """`self.announce(event)`"""

    event: Expression


class Choose(Node, frozen=True):
    """`self.choose(options)`: one of the options. The step runs once for each combination of choices."""

    options: Expression


class Spawn(Node, frozen=True):
    """`self.spawn(Role, …)`: takes a spare slot of the class, with a value for each field in order."""

    class_: int
    fields: list[Expression]


class ViewRole(Node, frozen=True):
    """`s[Role]` or `s.get(Role)` of the view `s`: the processes at these positions. Those from `first_spare` on are left out
    while they are unborn (which reads their status)."""

    positions: list[int]
    first_spare: int


class ViewProcess(Node, frozen=True):
    """`s[pid]`"""

    pid: Expression


class ViewMonitor(Node, frozen=True):
    """`s[Audit]`: the monitor with this number."""

    monitor: int


class ViewMessages(Node, frozen=True):
    """`s.messages`: the pending messages of these processes. Those from `first_spare` on are left out while unborn."""

    positions: list[int]
    first_spare: int


# -- statements ------------------------------------------------------------------------------------------------------


class LocalTarget(Node, frozen=True):
    """`name = …`"""

    slot: int


class AttributeTarget(Node, frozen=True):
    """`value.name = …`"""

    value: Expression
    name: str


class SubscriptTarget(Node, frozen=True):
    """`value[index] = …`"""

    value: Expression
    index: Expression


class StarredTarget(Node, frozen=True):
    """`*target` in a `TupleTarget`."""

    target: Target


class TupleTarget(Node, frozen=True):
    """`a, *b, c = …`: unpacks any iterable."""

    targets: list[Target]


class Evaluate(Node, frozen=True):
    """An expression whose value is not used."""

    value: Expression


class Assign(Node, frozen=True):
    """`target = target = … = value`: the value is evaluated once, the targets are assigned from left to right."""

    targets: list[Target]
    value: Expression


class AugmentedAssign(Node, frozen=True):
    """`target operator= value`: evaluates the parts of the target once. On a list, set or dict it changes the object."""

    target: Target
    operator: Binary
    value: Expression


class If(Node, frozen=True):
    """`if test: … else: …`"""

    test: Expression
    body: list[Statement]
    orelse: list[Statement]


class While(Node, frozen=True):
    """`while test: … else: …`"""

    test: Expression
    body: list[Statement]
    orelse: list[Statement]


class For(Node, frozen=True):
    """`for target in iterable: … else: …`"""

    target: Target
    iterable: Expression
    body: list[Statement]
    orelse: list[Statement]


class Break(Node, frozen=True):
    """`break`"""


class Continue(Node, frozen=True):
    """`continue`"""


class Return(Node, frozen=True):
    """`return value`"""

    value: Expression | None


class Delete(Node, frozen=True):
    """`del value[index]` or `del value.name` or `del name`"""

    target: Target


class Assert(Node, frozen=True):
    """Bails if the test is false. The message is for analyses (`Lowering.whole`)."""

    test: Expression
    message: Expression | None = None


class Raise(Node, frozen=True):
    """Always bails: CPython makes the exception. What it is made of is for analyses (`Lowering.whole`)."""

    values: list[Expression] = []


class Try(Node, frozen=True):
    """`try: … except …: … else: … finally: …`, for analyses only. A handler assigns its name first."""

    body: list[Statement]
    handlers: list[list[Statement]]
    orelse: list[Statement]
    finalbody: list[Statement]


Expression = Union[  # noqa: UP007
    Constant, Local, Attribute, Subscript, Slice, UnaryOperation, BinaryOperation, And, Or, Compare, Conditional, Assigned,
    Starred, TupleDisplay, ListDisplay, SetDisplay, DictDisplay, ListComprehension, SetComprehension, DictComprehension,
    Generator, FormattedValue, JoinedString, Lambda, FunctionValue, BuiltinValue, CallValue, CallFunction, CallMethod,
    CallBuiltin, IsInstance, Construct, Replace, SelfId, Send, Broadcast, Announce, Choose, Spawn, ViewRole,
    ViewProcess, ViewMonitor, ViewMessages,
]  # fmt: skip
Target = Union[LocalTarget, AttributeTarget, SubscriptTarget, StarredTarget, TupleTarget]  # noqa: UP007
Statement = Union[  # noqa: UP007
    Evaluate, Assign, AugmentedAssign, If, While, For, Break, Continue, Return, Delete, Assert, Raise, Try,
]  # fmt: skip


# -- a program -------------------------------------------------------------------------------------------------------


class Function(msgspec.Struct, frozen=True):
    """A function with its frame: `parameters` are the first slots."""

    name: str
    file: str
    line: int
    parameters: int
    slots: int
    body: list[Statement]


class Class(msgspec.Struct, frozen=True):
    """A class of values, processes, monitors or shared objects."""

    name: str
    """As the codec writes it: module and qualified name."""
    kind: Literal["enum", "flag", "tuple", "derived", "record", "message", "process", "monitor", "shared"]
    """`tuple` is a named tuple, `derived` another class that derives from a built-in one, `record` a dataclass."""
    fields: list[str]
    """In the order of the canonical bytes; for an enum, the names of its members."""
    values: list[bytes]
    """For an enum, the values of its members as canonical bytes (b"" if a value has none)."""
    mutable: bool
    """A record that is not frozen: it has identity, and its fields can be assigned."""
    equal: bool
    """Instances with equal fields are equal. Otherwise only an instance itself is equal to it."""
    ordered: bool
    """Instances are compared by their fields (`order=True`; every named tuple)."""
    hashable: bool
    bases: list[int]
    """The classes of the program that it is an instance of, itself included."""
    methods: dict[str, int]
    """Functions of the program that a call `value.name(…)` reaches, by name. The first parameter is the value."""
    properties: dict[str, int]
    """Functions for attributes that are computed (`@property`)."""
    constants: dict[str, bytes]
    """Class attributes that are no fields."""


class Handler(msgspec.Struct, frozen=True):
    """The functions of a handler of one process class; None: CPython answers."""

    step: int | None
    guard: int | None
    """Of the process, and of a message unless the handler is an action."""
    guarded: bool
    """Whether it has a guard at all."""
    quorum: int | None
    """Computes the number of messages from the process."""
    accept: int | None
    """Of the process and a tuple of messages: the guard over the whole set."""
    several: bool
    """Whether the step gets a tuple of messages: it has a quorum, of whatever kind."""


class Part(msgspec.Struct, frozen=True):
    """A part of a property: a function of the processes at these positions, as views."""

    function: int
    positions: list[int]


class Property(msgspec.Struct, frozen=True):
    """A property: a function of the view. (The view itself is no value: slot 0 is empty.)

    A quantified property has parts, one for each process (`all(p(a) for a in s[Role])`) or pair of processes, so that these
    are tabulated. With `every` it is true if all parts are true, else if one is.
    """

    function: int
    every: bool
    parts: list[Part]
    """Empty: it is not quantified."""


class Process(msgspec.Struct, frozen=True):
    """A position in the system: its class, and the id that it has."""

    class_: int
    role: str
    index: int
    handlers: int
    """The place of its class in `Program.handlers`."""


class Program(msgspec.Struct, frozen=True):
    """Everything that the virtual machine needs to know about a system."""

    functions: list[Function]
    classes: list[Class]
    processes: list[Process]
    """All positions, spare slots included."""
    first_spare: int
    handlers: list[list[Handler]]  # for each process class, by number
    monitors: list[tuple[int, int | None]]
    """For each monitor its class and the function `observe(self, process, event)`."""
    properties: list[Property | None]
    """None: CPython answers."""
    shared: list[tuple[int, str, int]] = []
    """For each shared object its class and its id. In steps and guards, their fields follow those of the process."""
    inserts: bool = False
    """Whether there may be a `defaultdict`, so that a subscript may insert a key. Else the virtual machine bails on one."""


def encoded(program: Program) -> bytes:
    """A program for the virtual machine."""
    return msgspec.json.encode(program)
