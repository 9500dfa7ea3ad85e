"""Expressions of Distal, checked for names and types, and translated to Python.

A `Scope` knows what names mean at a place of the text. It also records what an expression reads: the variables that outlive
an action, the fields of a received message, and whether the mailbox is read. `scope.py` has what ranges over
collections and over the mailbox.
"""

from __future__ import annotations

import ast
import difflib
import keyword
from collections.abc import Iterable
from typing import NamedTuple

from plait.kernel.extras import needs
from plait.rounds.distal.names import BUILTIN, RESERVED, Names, Received
from plait.rounds.distal.parser import Node, Text
from plait.rounds.distal.value_types import BOOL, INT, PID, PROCESS, TEXT, ValueType, fits, list_of, merge, optional

with needs("rounds"):
    from lark import Token

PYTHON = {"∨": "or", "||": "or", "or": "or", "∧": "and", "&&": "and", "and": "and", "≤": "<=", "≥": ">=", "≠": "!="}
PYTHON |= {"div": "//", "mod": "%"}


class Code(NamedTuple):
    """An expression in Python, and its type in Distal."""

    text: str
    kind: ValueType | None


class Expressions:
    """What names mean at one place: in an action, a guard, a function or a property."""

    def __init__(
        self,
        names: Names,
        text: Text,
        *,
        received: Received | None = None,
        myself: bool = True,
        acts: bool = False,
        local: dict[str, ValueType | None] | None = None,
    ) -> None:
        self.names, self.text = names, text
        self.myself = myself
        """Whether variables belong to one process: not in a property."""
        self.acts = acts
        """Whether the place is in an action, which may choose and create processes."""
        self.in_function = False
        """Whether the place is in a function, which guards and actions may call."""
        self.received = received
        """The messages that the action received."""
        self.local: dict[str, ValueType | None] = dict(local or {})
        self.fresh: set[str] = set()
        """Variables that are certainly assigned in this action."""
        self.own_m = True
        """Whether `m` is still the message that was received."""
        self.fields: dict[str, Token] = {}
        """The fields of the received message that are read, and where."""

    def error(self, place: Node | Token, message: str, known: Iterable[str] = (), hint: str | None = None) -> Exception:
        near = difflib.get_close_matches(str(place), list(known), 1) if isinstance(place, Token) else []
        return self.text.error(place, message, f"did you mean {near[0]!r}?" if near else hint)

    # -- types -------------------------------------------------------------------------------------------------------

    def same(self, place: Node | Token, one: ValueType | None, other: ValueType | None, what: str) -> ValueType | None:
        """The common type of two values."""
        try:
            return merge(one, other)
        except ValueError:
            hint = "docs/reference/distal.md lists the types; a variable has the type of what is assigned first"
            raise self.error(place, f"{what}: expected {one}, not {other}", hint=hint) from None

    def wanted(self, place: Node | Token, kind: ValueType | None, found: ValueType | None, what: str) -> None:
        """Raise an error unless a value has the type that is wanted."""
        self.same(place, kind, found, what)
        if not fits(found, kind):
            raise self.error(
                place,
                f"{what}: expected {kind}, not {found}, which may be none",
                hint="write value(…), where it is not none",
            )

    def of(self, node: Node, kind: ValueType, what: str) -> str:
        """An expression that must have this type."""
        code = self.expression(node)
        self.wanted(node, kind, code.kind, what)
        return code.text

    def condition(self, node: Node) -> str:
        """A condition. A process id as a condition asks whether it is the process's own id, as in `if primary(b) then`."""
        code = self.expression(node)
        if code.kind == PID and self.myself:
            return f"({code.text}) == self.id"
        self.wanted(node, BOOL, code.kind, "a condition")
        return code.text

    def binder(self, name: Token) -> str:
        """A name that an expression binds."""
        if name in RESERVED or keyword.iskeyword(name) or str(name).startswith("_") or name in self.names.constants:
            raise self.error(name, f"'{name}' is a reserved name", hint="choose another name")
        return str(name)

    # -- expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: Node) -> Code:
        """Translate an expression."""
        code: Code = getattr(self, f"_{node.data}")(node, *node.children)
        return code if node.data in _NO_PLACE else Code(self.mark(node, code.text), code.kind)

    def mark(self, node: Node, text: str) -> str:
        """An expression, marked with its place in the text if marks are wanted."""
        if not self.names.marked or self.text is not self.names.text:
            return text
        line, column = _place(node)
        return f"_at({line}, {column}, {text})"

    def _number(self, node: Node, value: Token) -> Code:
        return Code(str(int(value)), INT)

    def _text(self, node: Node, value: Token) -> Code:
        return Code(str(value), TEXT)

    def _truth(self, node: Node, value: Token) -> Code:
        return Code(value.capitalize(), BOOL)

    def _empty(self, node: Node, value: Token) -> Code:
        return Code("()", list_of())

    def _choice(self, node: Node, condition: Node, yes: Node, no: Node) -> Code:
        test, one, other = self.condition(condition), self.expression(yes), self.expression(no)
        return Code(
            f"(({one.text}) if ({test}) else ({other.text}))", self.same(no, one.kind, other.kind, "after else")
        )

    def _negate(self, node: Node, _: Token, operand: Node) -> Code:
        return Code(f"not ({self.condition(operand)})", BOOL)

    def _signed(self, node: Node, sign: Token, operand: Node) -> Code:
        return Code(f"{sign}({self.of(operand, INT, f'what follows {sign}')})", INT)

    def _implies(self, node: Node, left: Node, _: Token, right: Node) -> Code:
        return Code(f"not ({self.condition(left)}) or ({self.condition(right)})", BOOL)

    def _equal(self, node: Node, left: Node, right: Node) -> Code:
        return self._compared(left, "==", right, "the right side of =")

    def _compared(self, left: Node, sign: str, right: Node, what: str) -> Code:
        one, other = self.expression(left), self.expression(right)
        self.same(right, one.kind, other.kind, what)
        key = ".id" if PROCESS in (one.kind, other.kind) else ""
        return Code(f"({one.text}){key} {sign} ({other.text}){key}", BOOL)

    def _binary(self, node: Node, left: Node, operator: Token, right: Node) -> Code:
        sign = PYTHON.get(operator, str(operator))
        if sign in ("and", "or"):
            return Code(f"({self.condition(left)}) {sign} ({self.condition(right)})", BOOL)
        if sign == "/":
            raise self.error(operator, "/ is allowed only in times", hint="write div for integer division")
        if sign == "!=":
            return self._compared(left, sign, right, f"the right side of {operator}")
        one, other = self.expression(left), self.expression(right)
        kind = self.same(right, one.kind, other.kind, f"the right side of {operator}")
        for place, code in ((left, one), (right, other)):
            if code.kind is not None and code.kind.name == "optional":
                self.wanted(place, code.kind.element or INT, code.kind, f"a side of {operator}")
        if operator.type == "COMPARE":
            if kind is not None and kind.name not in ("int", "text"):
                raise self.error(left, f"{operator} compares numbers, not values of type {kind}")
            return Code(f"({one.text}) {sign} ({other.text})", BOOL)
        if kind is not None and kind != INT and not (sign == "+" and kind.name in ("list", "text")):
            raise self.error(left, f"{operator} does not work for values of type {kind}")
        return Code(f"({one.text}) {sign} ({other.text})", kind)

    def _name(self, node: Node, name: Token) -> Code:
        if name in self.local:
            if name == "m" and self.received and self.own_m:
                raise self.error(name, "the whole message m cannot be used here", hint="name a field: m.ballot")
            return Code(str(name), self.local[name])
        if name == "nobody":
            return Code("None", PID)
        if name == "none":
            return Code("None", optional())
        if name == "self" and self.myself:
            return Code("self.id", PID)
        if name == "processes":
            return self._processes(name)
        if name in self.names.constants:
            return Code(f"self.{name}" if self.myself else str(name), self.names.constants[name])
        if name in self.names.variables and self.myself:
            if name not in self.fresh:
                self.names.live.add(str(name))
            return Code(self.variable(name), self.names.variables[name])
        if name in self.names.variables:
            raise self.error(
                name, f"'{name}' needs a process", hint=f"a property names the process: forall p: p.{name}"
            )
        known = [*(n for n in self.local if n != "m" or self.received), *self.names.known()]
        raise self.error(
            name, f"the name '{name}' is not defined", known, f"assign it first; defined names: {', '.join(known)}"
        )

    def _processes(self, name: Token) -> Code:
        """All processes: in a property their variables, elsewhere their ids."""
        if not self.myself:
            return Code("s[Node]", list_of(PROCESS))
        if self.names.spare is None:
            return Code("tuple(Node.pid(i) for i in range(self.n))", list_of(PID))
        if not self.acts and not self.in_function:
            raise self.error(
                name,
                "a guard does not know which processes were created",
                hint="let an action assign processes to a variable",
            )
        return Code("self.ids(Node)", list_of(PID))

    def variable(self, name: str) -> str:
        """How a variable is written: a field of the process if it outlives an action."""
        return f"self.{name}" if name in self.names.live else str(name)

    def _access(self, node: Node, owner: Node, field: Token) -> Code:
        kind: ValueType | None
        received = False
        if owner.data == "name" and owner.children[0] in self.local:
            name = str(owner.children[0])
            text, kind = name, self.local[name]
            received = name == "m" and self.received is not None and self.own_m
        else:
            text, kind = self.expression(owner)
        if kind == PROCESS:
            return self._of_process(text, field)
        if kind == PID and field == "index":
            return Code(f"({text}).index", INT)
        fields = self.names.fields_of(kind)
        if fields is None or kind is None:
            raise self.error(field, f"only messages and records have fields, not a value of type {kind}")
        if received:
            self.fields.setdefault(str(field), field)
        if field == "sender" and kind.name in self.names.messages:
            return Code(f"({text}).sender", PID)
        if field not in fields:
            sender = " and sender" if kind.name in self.names.messages else ""
            raise self.error(
                field, f"{kind} has no field '{field}'", fields, f"its fields are: {', '.join(fields)}{sender}"
            )
        if received and self.received is not None and field == self.names.round_field(kind.name):
            return Code(repr(self.received.round), TEXT)
        return Code(f"({text}).{field}", fields[str(field)])

    def _of_process(self, text: str, field: Token) -> Code:
        """A variable of a process in a property."""
        if field in ("self", "index"):
            return Code(f"({text}).id" + (".index" if field == "index" else ""), INT if field == "index" else PID)
        known = [*self.names.variables, *(["outputs"] if self.names.outputs else [])]
        if field not in known:
            raise self.error(
                field, f"a process has no variable '{field}'", known, f"it has: {', '.join(dict.fromkeys(known))}"
            )
        self.names.live.add(str(field))
        return Code(f"({text}).{field}", self.names.variables.get(str(field)))

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: Node, name: Token, given: Node | None) -> Code:
        arguments = given.nodes() if given else []
        if name in self.names.messages:
            return self._new_message(name, arguments)
        if name in self.names.records:
            texts = self._arguments(name, arguments, list(self.names.records[name].values()))
            return Code(f"{name}({', '.join(texts)})", ValueType(str(name)))
        if (special := getattr(self, f"_call_{name}", None)) is not None and name not in self.names.functions:
            code: Code = special(node, name, arguments)
            return code
        if name in BUILTIN:
            parameters, result, python, helper = BUILTIN[name]
            texts = [f"({text})" for text in self._arguments(name, arguments, parameters)]
            self.names.helpers |= {helper} if helper else set()
            return Code(python.format(*texts), result)
        function = self.names.functions.get(name)
        if function is None:
            known = [*self.names.messages, *self.names.records, *BUILTIN, *self.names.functions]
            raise self.error(
                name, f"there is no function or message type '{name}'", known, f"there are: {', '.join(known)}"
            )
        if not self.myself:
            raise self.error(name, "a property cannot call functions of a process", hint=f"use {', '.join(BUILTIN)}")
        texts = self._arguments(name, arguments, list(function.parameters.values()))
        self.names.used.setdefault(str(name))
        if function.mailbox is not None:
            self.reads_mailbox(name, function.mailbox, select=function.selects)
            texts.insert(0, "messages")
        return Code(f"self.{self.names.method(name)}({', '.join(texts)})", function.result)

    def _arguments(
        self, name: Token, given: list[Node], expected: list[ValueType | None] | list[ValueType]
    ) -> list[str]:
        if len(given) != len(expected):
            signature = ", ".join(str(kind) for kind in expected)
            raise self.error(name, f"{name} takes {len(expected)} values ({signature}), not {len(given)}")
        texts = []
        for number, (node, kind) in enumerate(zip(given, expected, strict=True), 1):
            code = self.expression(node)
            self.wanted(node, kind, code.kind, f"value {number} of {name}")
            texts.append(code.text)
        return texts

    def _new_message(self, name: Token, given: list[Node]) -> Code:
        """A new message. If its round is a field, the value of this field decides its class."""
        fields = self.names.messages[name]
        texts = self._arguments(name, given, list(fields.values()))
        if (rounds := self.names.rounds.get(str(name))) is None:
            return Code(f"{name}({', '.join(texts)})", ValueType(str(name)))
        place = list(fields).index(rounds.field)
        chosen, node = texts.pop(place), given[place]
        if node.data == "text":
            value = ast.literal_eval(str(node.token(0)))
            if value not in rounds.values:
                raise self.error(
                    node, f"{value!r} is no round of {name}", hint=f"its rounds are: {', '.join(rounds.values)}"
                )
            return Code(f"{self.names.kind_of(name, value)}({', '.join(texts)})", ValueType(str(name)))
        table = ", ".join(f"{value!r}: {self.names.kind_of(name, value)}" for value in rounds.values)
        return Code(f"{{{table}}}[{chosen}]({', '.join(texts)})", ValueType(str(name)))

    def _call_value(self, node: Node, name: Token, given: list[Node]) -> Code:
        """The value of something that may be none, and is not."""
        if len(given) != 1:
            raise self.error(name, f"value takes one value, not {len(given)}")
        code = self.expression(given[0])
        if code.kind is not None and code.kind.name != "optional":
            raise self.error(given[0], f"value of {code.kind}: this is never none", hint="leave value out")
        self.names.helpers.add("_value")
        return Code(f"_value({code.text})", code.kind and code.kind.element)

    def _call_choose(self, node: Node, name: Token, given: list[Node]) -> Code:
        """Any element of a list or a set."""
        if not self.acts:
            raise self.error(name, "choose is allowed only in actions", hint="assign the choice to a variable first")
        if len(given) != 1:
            raise self.error(name, f"choose takes a list or a set, not {len(given)} values")
        code = self.expression(given[0])
        if code.kind is None or code.kind.name not in ("list", "set"):
            raise self.error(given[0], f"choose takes a list or a set, not a value of type {code.kind}")
        options = f"sorted({code.text}, key=repr)" if code.kind.name == "set" else code.text
        return Code(f"self.choose({options})", code.kind.element)

    def _call_spawn(self, node: Node, name: Token, given: list[Node]) -> Code:
        """The id of a new process."""
        if not self.acts:
            raise self.error(name, "spawn is allowed only in actions")
        if self.names.spare is None:
            raise self.error(
                name, "the text does not say how many processes may be created", hint="declare it: spawns 2;"
            )
        self._arguments(name, given, [])
        constants = ", ".join(f"{constant}=self.{constant}" for constant in self.names.constants)
        return Code(f"self.spawn(Node, {constants})", PID)

    # -- the mailbox -------------------------------------------------------------------------------------------------

    def reads_mailbox(self, place: Node | Token, message: str | None, *, select: bool = False) -> str:
        """Note that the place reads messages of a type. Returns the type."""
        got = self.received
        if got is None or (message is not None and got.message != message):
            found = f"this action received {got.message}" if got else "no message was received here"
            what = f"{message} messages" if message else "the mailbox"
            raise self.error(place, f"this reads {what}, but {found}", hint="an action reads what its upon received")
        if got.one and not select:
            raise self.error(
                place, "this upon takes one message", hint="say how many messages it takes: times 0 takes at least one"
            )
        got.reads = True
        return got.message


_NO_PLACE = {"number", "text", "truth", "empty", "name"}
"""Expressions that raise no exceptions."""


def _place(node: Node) -> tuple[int, int]:
    """Where an exception in an expression is shown: at the operator, if it has one."""
    for part in node.children:
        if isinstance(part, Token) and node.data in ("binary", "access", "within"):
            return part.line or node.line, part.column or node.column
    return node.line, node.column


def tidy(text: str) -> str:
    """A Python expression without redundant parentheses.

    >>> tidy("((a) + (b)) > (c)")
    'a + b > c'
    """
    return ast.unparse(ast.parse(text, mode="eval"))
