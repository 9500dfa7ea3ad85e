"""Expressions of Distal, checked for names and types, and translated to Python.

A `Scope` knows what names mean at a place of the text. It also records what an expression reads: the variables that outlive
an action, the fields of a received message, and whether the mailbox is read.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
from collections.abc import Iterable
from typing import NamedTuple

from plait.kernel.extras import needs
from plait.rounds.distal.parser import Node, Text
from plait.rounds.distal.value_types import BOOL, INT, PID, PROCESS, TEXT, ValueType, merge

with needs("rounds"):
    from lark import Token


class Code(NamedTuple):
    """An expression in Python, and its type in Distal."""

    text: str
    kind: ValueType | None


@dataclasses.dataclass
class Function:
    """A function: types of its parameters, its result, its definition, and the messages that it selects from."""

    node: Node
    text: Text
    parameters: dict[str, ValueType]
    result: ValueType
    body: Node
    mailbox: str | None = None


@dataclasses.dataclass
class Names:
    """What the text declares, and what is inferred about its variables."""

    messages: dict[str, dict[str, ValueType]] = dataclasses.field(default_factory=dict)
    constants: dict[str, ValueType] = dataclasses.field(default_factory=dict)
    functions: dict[str, Function] = dataclasses.field(default_factory=dict)
    variables: dict[str, ValueType | None] = dataclasses.field(default_factory=dict)
    live: set[str] = dataclasses.field(default_factory=set)
    """Variables that an action may read before it assigns them: the process must remember them."""
    outputs: bool = False
    """Whether the text has an output."""
    used: dict[str, None] = dataclasses.field(default_factory=dict)
    """The called functions, in the order of their first call."""

    def known(self) -> list[str]:
        return [*self.variables, *self.constants, "self", "nobody"]

    def method(self, function: str) -> str:
        """The Python name of a function, which differs from the names of variables."""
        return f"{function}_" if function in self.live else function


BUILTIN: dict[str, tuple[list[ValueType | None], ValueType, str]] = {
    "length": ([ValueType("list")], INT, "len({0})"),
    "prefix": ([ValueType("list"), ValueType("list")], BOOL, "({1}[: len({0})] == {0})"),
    "letter": ([INT], TEXT, 'chr(ord("a") + {0} - 1)'),
    "process": ([INT], PID, "Node.pid({0})"),
}
"""Built-in functions: parameters, result, and the Python code."""
PYTHON = {"∨": "or", "||": "or", "or": "or", "∧": "and", "&&": "and", "and": "and", "≤": "<=", "≥": ">=", "≠": "!="}
PYTHON |= {"div": "//", "mod": "%"}


class Scope:
    """What names mean at one place: in an action, a guard, a function or a property."""

    def __init__(
        self,
        names: Names,
        text: Text,
        *,
        received: str | None = None,
        myself: bool = True,
        local: dict[str, ValueType] | None = None,
    ) -> None:
        self.names, self.text = names, text
        self.myself = myself
        """Whether variables belong to one process: not in a property."""
        self.received = received
        """The type of the messages that the action received."""
        self.local: dict[str, ValueType] = dict(local or {})
        self.fresh: set[str] = set()
        """Variables that are certainly assigned in this action."""
        self.own_m = True
        """Whether `m` is still the message that was received."""
        self.fields: dict[str, Token] = {}
        """The fields of the received message that are read, and where."""
        self.selections = 0

    def error(self, place: Node | Token, message: str, known: Iterable[str] = (), hint: str | None = None) -> Exception:
        near = difflib.get_close_matches(str(place), list(known), 1) if isinstance(place, Token) else []
        return self.text.error(place, message, f"did you mean {near[0]!r}?" if near else hint)

    # -- types -------------------------------------------------------------------------------------------------------

    def same(self, place: Node | Token, one: ValueType | None, other: ValueType | None, what: str) -> ValueType | None:
        try:
            return merge(one, other)
        except ValueError:
            hint = "docs/reference/distal.md lists the types; a variable has the type of what is assigned first"
            raise self.error(place, f"{what}: expected {one}, not {other}", hint=hint) from None

    def of(self, node: Node, kind: ValueType, what: str) -> str:
        """An expression that must have this type."""
        code = self.expression(node)
        self.same(node, kind, code.kind, what)
        return code.text

    def condition(self, node: Node) -> str:
        """A condition. A process id as a condition asks whether it is the process's own id, as in `if primary(b) then`."""
        code = self.expression(node)
        if code.kind == PID and self.myself:
            return f"({code.text}) == self.id"
        self.same(node, BOOL, code.kind, "a condition")
        return code.text

    # -- expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: Node) -> Code:
        """Translate an expression."""
        code: Code = getattr(self, f"_{node.data}")(node, *node.children)
        return code

    def _number(self, node: Node, value: Token) -> Code:
        return Code(str(int(value)), INT)

    def _text(self, node: Node, value: Token) -> Code:
        return Code(str(value), TEXT)

    def _truth(self, node: Node, value: Token) -> Code:
        return Code(value.capitalize(), BOOL)

    def _empty(self, node: Node, value: Token) -> Code:
        return Code("()", ValueType("list"))

    def _list(self, node: Node, *elements: Node) -> Code:
        kind: ValueType | None = None
        texts = []
        for element in elements:
            code = self.expression(element)
            kind = self.same(element, kind, code.kind, "an element of this list")
            texts.append(code.text)
        return Code(f"({', '.join(texts)},)", ValueType("list", kind))

    def _choice(self, node: Node, condition: Node, yes: Node, no: Node) -> Code:
        test, one, other = self.condition(condition), self.expression(yes), self.expression(no)
        return Code(f"({one.text}) if ({test}) else ({other.text})", self.same(no, one.kind, other.kind, "after else"))

    def _negate(self, node: Node, _: Token, operand: Node) -> Code:
        return Code(f"not ({self.condition(operand)})", BOOL)

    def _equal(self, node: Node, left: Node, right: Node) -> Code:
        one, other = self.expression(left), self.expression(right)
        self.same(right, one.kind, other.kind, "the right side of =")
        return Code(f"({one.text}) == ({other.text})", BOOL)

    def _binary(self, node: Node, left: Node, operator: Token, right: Node) -> Code:
        sign = PYTHON.get(operator, str(operator))
        if sign in ("and", "or"):
            return Code(f"({self.condition(left)}) {sign} ({self.condition(right)})", BOOL)
        if sign == "/":
            raise self.error(operator, "/ is allowed only in times", hint="write div for integer division")
        one, other = self.expression(left), self.expression(right)
        kind = self.same(right, one.kind, other.kind, f"the right side of {operator}")
        if operator.type == "COMPARE":
            if kind is not None and kind.name not in ("int", "text") and sign != "!=":
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
        if name == "self" and self.myself:
            return Code("self.id", PID)
        if name in self.names.constants:
            return Code(f"self.{name}" if self.myself else str(name), self.names.constants[name])
        if name in self.names.variables and self.myself:
            if name not in self.fresh:
                self.names.live.add(name)
            return Code(self.variable(name), self.names.variables[name])
        if name in self.names.variables:
            raise self.error(
                name, f"'{name}' needs a process", hint=f"a property names the process: forall p: p.{name}"
            )
        known = [*self.local, *self.names.known()]
        raise self.error(
            name, f"the name '{name}' is not defined", known, f"assign it first; defined names: {', '.join(known)}"
        )

    def variable(self, name: str) -> str:
        """How a variable is written: a field of the process if it outlives an action."""
        return f"self.{name}" if name in self.names.live else str(name)

    def _access(self, node: Node, owner: Node, field: Token) -> Code:
        kind: ValueType | None
        if owner.data == "name" and owner.children[0] in self.local:
            text, kind = str(owner.children[0]), self.local[str(owner.children[0])]
        else:
            text, kind = self.expression(owner)
        if kind == PROCESS:
            known = [*self.names.variables, *(["outputs"] if self.names.outputs else [])]
            if field not in known:
                raise self.error(
                    field, f"a process has no variable '{field}'", known, f"it has: {', '.join(dict.fromkeys(known))}"
                )
            self.names.live.add(str(field))
            return Code(f"{text}.{field}", self.names.variables.get(str(field)))
        fields = self.names.messages.get(kind.name) if kind else None
        if fields is None:
            raise self.error(field, f"only messages have fields, not a value of type {kind}")
        if text == "m" and self.received and self.own_m:
            self.fields.setdefault(str(field), field)
        if field == "sender":
            return Code(f"{text}.sender", PID)
        if field not in fields:
            assert kind is not None
            raise self.error(
                field, f"{kind} has no field '{field}'", fields, f"its fields are: {', '.join(fields)} and sender"
            )
        return Code(f"{text}.{field}", fields[str(field)])

    def _call(self, node: Node, name: Token, given: Node | None) -> Code:
        arguments = given.nodes() if given else []
        if name in self.names.messages:
            texts = self._arguments(name, arguments, list(self.names.messages[name].values()))
            return Code(f"{name}({', '.join(texts)})", ValueType(str(name)))
        if name in BUILTIN:
            parameters, result, python = BUILTIN[name]
            return Code(python.format(*(f"({text})" for text in self._arguments(name, arguments, parameters))), result)
        function = self.names.functions.get(name)
        if function is None:
            known = [*self.names.messages, *BUILTIN, *self.names.functions]
            raise self.error(
                name, f"there is no function or message type '{name}'", known, f"there are: {', '.join(known)}"
            )
        if not self.myself:
            raise self.error(name, "a property cannot call functions of a process", hint=f"use {', '.join(BUILTIN)}")
        texts = self._arguments(name, arguments, list(function.parameters.values()))
        self.names.used.setdefault(str(name))
        if function.mailbox is not None:
            self._mailbox(name, function.mailbox)
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
            self.same(node, kind, code.kind, f"value {number} of {name}")
            texts.append(code.text)
        return texts

    def _mailbox(self, place: Token, message: str) -> None:
        if self.received != message:
            got = f"this action received {self.received}" if self.received else "no message was received here"
            raise self.error(
                place, f"this reads {message} messages, but {got}", hint="an action reads what its upon received"
            )
        self.selections += 1
        if self.selections > 1:
            raise self.error(
                place, "an action may select from its mailbox only once", hint="select once, and assign the result"
            )

    def _select(self, node: Node, order: Token, name: Token, message: Token, *rest: Node) -> Code:
        condition, keys, result = rest
        if message not in self.names.messages:
            raise self.error(message, f"there is no message type '{message}'", self.names.messages)
        self._mailbox(message, message)
        inner = Scope(
            self.names, self.text, myself=self.myself, local={**self.local, str(name): ValueType(str(message))}
        )
        inner.fresh = self.fresh
        test = inner.condition(condition)
        key = ", ".join(inner.expression(k).text for k in keys.nodes())
        code = inner.expression(result)
        pick = "max" if order == "greatest" else "min"
        best = f"{pick}(({name} for {name} in messages if {test}), key=lambda {name}: ({key},))"
        if result.data == "access" and tidy(code.text).startswith(f"{name}."):
            return Code(best + tidy(code.text)[len(name) :], code.kind)
        return Code(f"(lambda {name}: {code.text})({best})", code.kind)

    def _quantified(self, node: Node, quantifier: Token, names: Node, domain: Node | None, formula: Node) -> Code:
        kind: ValueType | None = PROCESS
        over = "s[Node]"
        if domain is None and self.myself:
            raise self.error(
                quantifier, "only properties can range over processes", hint="an action knows only its own process"
            )
        if domain is not None:
            code = self.expression(domain)
            self.same(domain, ValueType("list"), code.kind, f"what {quantifier} ranges over")
            over, kind = code.text, code.kind.element if code.kind else None
        inner = Scope(self.names, self.text, myself=self.myself, local=dict(self.local))
        loops = []
        for name in names.children:
            inner.local[str(name)] = kind  # type: ignore[assignment]
            loops.append(f"for {name} in {over}")
        test = inner.condition(formula)
        return Code(f"{'all' if quantifier in ('forall', '∀') else 'any'}(({test}) {' '.join(loops)})", BOOL)


def tidy(text: str) -> str:
    """A Python expression without redundant parentheses.

    >>> tidy("((a) + (b)) > (c)")
    'a + b > c'
    """
    return ast.unparse(ast.parse(text, mode="eval"))
