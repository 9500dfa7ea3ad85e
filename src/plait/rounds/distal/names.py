"""What a Distal text declares, and what is inferred about its names."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from plait.kernel.extras import needs
from plait.rounds.distal.parser import Node, Text
from plait.rounds.distal.value_types import BOOL, INT, PID, TEXT, ValueType, list_of, set_of

with needs("rounds"):
    from lark import Token

RESERVED = {"m", "messages", "s", "outputs", "nobody", "none", "self", "n", "phases", "ALL", "mbox", "timeout", "id"}
RESERVED |= {"send", "broadcast", "ids", "announce", "choose", "spawn", "pid", "start", "Message", "Process", "System"}
RESERVED |= {"Node", "Pid", "View", "Any", "action", "always", "init", "on", "reachable", "tagged", "processes"}
RESERVED |= {"all", "any", "chr", "int", "len", "bool", "max", "min", "ord", "range", "str", "tuple", "sum"}
RESERVED |= {"frozenset", "sorted", "repr", "ModelError", "NamedTuple", "ClassVar"}

BUILTIN: dict[str, tuple[list[ValueType | None], ValueType, str, str | None]] = {
    "prefix": ([list_of(), list_of()], BOOL, "({1}[: len({0})] == {0})", None),
    "letter": ([INT], TEXT, 'chr(ord("a") + {0} - 1)', None),
    "process": ([INT], PID, "Node.pid({0})", None),
    "subset": ([set_of(), set_of()], BOOL, "({0} <= {1})", None),
}
"""Built-in functions: parameters, result, the Python code, and the helper that it calls."""
HELPERS = {
    "_item": """\
def _item(items: tuple[Any, ...], number: int) -> Any:
    if not 0 <= number < len(items):
        raise IndexError(f"there is no element {number} in a list of {len(items)}")
    return items[number]
""",
    "_put": """\
def _put(items: tuple[Any, ...], number: int, value: Any) -> tuple[Any, ...]:
    if not 0 <= number < len(items):
        raise IndexError(f"there is no element {number} in a list of {len(items)}")
    return (*items[:number], value, *items[number + 1 :])
""",
    "_subsets": """\
def _subsets(items: tuple[Any, ...], number: int | None = None) -> tuple[tuple[Any, ...], ...]:
    sizes = range(len(items) + 1) if number is None else (max(number, 0),)
    return tuple(part for size in sizes for part in itertools.combinations(items, size))
""",
    "_value": """\
def _value(given: Any) -> Any:
    if given is None:
        raise ValueError("value(none)")
    return given
""",
}
"""Functions that a translated module has if it calls them."""


@dataclasses.dataclass
class Function:
    """A function: types of its parameters, its result, its definition, and the messages that it reads."""

    node: Node
    text: Text
    parameters: dict[str, ValueType]
    result: ValueType
    body: Node
    mailbox: str | None = None
    """The type of the messages that it reads."""
    selects: bool = False
    """Whether it only selects one of the messages."""


class RoundField(NamedTuple):
    """A field of a message type that has the round: one class of messages for each value (Definition 1)."""

    field: str
    values: list[str]


@dataclasses.dataclass
class Received:
    """The messages that an action received."""

    message: str
    round: str | None = None
    """The round of the messages, if it is a field."""
    one: bool = False
    """Whether it is a single message."""
    just_enough: bool = False
    """Whether a smallest set of messages stands for all that were received: then an action may only select, once."""
    reads: bool = False
    """Whether the action reads the messages as a set."""


@dataclasses.dataclass
class Names:
    """What the text declares, and what is inferred about its variables."""

    text: Text
    messages: dict[str, dict[str, ValueType]] = dataclasses.field(default_factory=dict)
    rounds: dict[str, RoundField] = dataclasses.field(default_factory=dict)
    """The message types whose round is a field."""
    records: dict[str, dict[str, ValueType]] = dataclasses.field(default_factory=dict)
    constants: dict[str, ValueType] = dataclasses.field(default_factory=dict)
    functions: dict[str, Function] = dataclasses.field(default_factory=dict)
    variables: dict[str, ValueType | None] = dataclasses.field(default_factory=dict)
    live: set[str] = dataclasses.field(default_factory=set)
    """Variables that an action may read before it assigns them: the process must remember them."""
    outputs: bool = False
    """Whether the text has an output."""
    used: dict[str, None] = dataclasses.field(default_factory=dict)
    """The called functions, in the order of their first call."""
    helpers: set[str] = dataclasses.field(default_factory=set)
    """The helpers that are called."""
    spare: Node | None = None
    """How many processes may be created."""
    marked: bool = False
    """Whether expressions are marked with their places (`positions.py`)."""

    def known(self) -> list[str]:
        return [*self.variables, *self.constants, "self", "nobody", "none", "processes"]

    def method(self, function: str) -> str:
        """The Python name of a function, which differs from the names of variables."""
        return f"{function}_" if function in self.live else function

    def fields_of(self, kind: ValueType | None) -> dict[str, ValueType] | None:
        """The fields of a message or a record."""
        return (self.messages.get(kind.name) or self.records.get(kind.name)) if kind else None

    def round_field(self, message: str) -> str | None:
        """The field with the round."""
        return self.rounds[message].field if message in self.rounds else None

    def kind_of(self, message: str, value: str | None) -> str:
        """The class of messages of a type, and of a round if it is a field."""
        return message if value is None else f"{message}_{value}"

    def type_of(self, node: Node) -> ValueType:
        """The type that a declaration names."""
        named = {"int": INT, "bool": BOOL, "text": TEXT, "pid": PID}
        if node.data in ("list_type", "set_type", "optional_type"):
            return ValueType(node.data.removesuffix("_type"), self.type_of(node.node(0)))
        name: Token = node.token(0)
        if name in self.records:
            return ValueType(str(name))
        if name not in named:
            raise self.text.error(
                name,
                f"there is no type '{name}'",
                f"there are: {', '.join([*named, *self.records])}, lists [text], sets {{pid}}, and int? (may be none)",
            )
        return named[str(name)]
