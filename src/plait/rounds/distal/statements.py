"""Statements of Distal, translated to Python."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator

from plait.kernel.extras import needs
from plait.rounds.distal.declarations import Declarations
from plait.rounds.distal.expressions import tidy
from plait.rounds.distal.names import RESERVED
from plait.rounds.distal.parser import Node
from plait.rounds.distal.scope import Scope
from plait.rounds.distal.value_types import INT, PID, list_of

with needs("rounds"):
    from lark import Token

LINE = "\0"
"""Separates a line of Python from the number of its line in the text."""


class Statements:
    """The statements of a text."""

    def __init__(self, declared: Declarations) -> None:
        self.declared, self.text, self.names = declared, declared.text, declared.names

    def block(self, node: Node, scope: Scope) -> Iterator[str]:
        """The statements of a block. A block without effect is `pass`."""
        made = False
        for statement in node.nodes():
            if statement.data == "upon":
                yield from self._reached(statement)
            else:
                lines = getattr(self, f"_do_{statement.data}")(statement, scope, *statement.children)
                yield from marked(lines, statement.line)
            made = True
        if not made:
            yield "pass"

    def _reached(self, node: Node) -> Iterator[str]:
        """A nested upon: from now on the process waits for it."""
        for upon in self.declared.upons:
            if upon.node is node:
                yield from marked([f"self.{upon.waits} = True"], node.line)

    def _do_skip(self, node: Node, scope: Scope) -> Iterator[str]:
        yield "pass"

    def _do_assign(self, node: Node, scope: Scope, name: Token, value: Node) -> Iterator[str]:
        code = scope.expression(value)
        if code.kind and code.kind.name in self.names.messages:
            if name in self.names.live:
                raise self.text.error(name, f"{name} is a message here, and a variable elsewhere", "use another name")
            scope.local[str(name)] = code.kind
            scope.own_m = scope.own_m and name != "m"
            self.names.variables.pop(str(name), None)
        else:
            self._assignable(name, scope)
            known = self.names.variables.get(str(name))
            self.names.variables[str(name)] = scope.same(value, known, code.kind, f"the value of {name}")
            scope.fresh.add(str(name))
        yield f"{name if name in scope.local else scope.variable(name)} = {tidy(code.text)}"

    def _do_add(self, node: Node, scope: Scope, name: Token, value: Node) -> Iterator[str]:
        self._assignable(name, scope)
        code = scope.expression(value)
        owner = scope.expression(_name(name))
        if owner.kind is not None and owner.kind.name == "set":
            kind = type(owner.kind)("set", code.kind)
            self.names.variables[str(name)] = scope.same(name, owner.kind, kind, f"{name}.add")
            yield f"{scope.variable(name)} |= frozenset({{{tidy(code.text)}}})"
            return
        self.names.variables[str(name)] = scope.same(name, owner.kind, list_of(code.kind), f"{name}.add")
        yield f"{scope.variable(name)} += ({tidy(code.text)},)"

    def _do_put(self, node: Node, scope: Scope, name: Token, place: Node, value: Node) -> Iterator[str]:
        self._assignable(name, scope)
        owner, code = scope.expression(_name(name)), scope.expression(value)
        self.names.variables[str(name)] = scope.same(value, owner.kind, list_of(code.kind), f"an element of {name}")
        number = scope.of(place, INT, "the number of an element")
        self.names.helpers.add("_put")
        made = scope.mark(node, f"_put({owner.text}, {number}, {code.text})")
        yield f"{scope.variable(name)} = {tidy(made)}"

    def _assignable(self, name: Token, scope: Scope) -> None:
        if name in self.names.constants or name in RESERVED:
            raise self.text.error(name, f"'{name}' cannot be assigned", "choose another name for the variable")
        if name in scope.local:
            raise self.text.error(name, f"'{name}' is not a variable here", "choose another name for the variable")
        if keyword.iskeyword(name) or str(name).startswith(("_", "upon_", "waits_", "mbox_", "hear_")):
            raise self.text.error(name, f"'{name}' is a reserved name", "choose another name for the variable")

    def _do_send(self, node: Node, scope: Scope, to: Node, message: Node) -> Iterator[str]:
        text = self._message_of(message, scope)
        if to.data == "name" and to.children[0] == "ALL":
            yield f"self.broadcast(Node, {text})"
            return
        code = scope.expression(to)
        if code.kind is not None and code.kind.name in ("list", "set"):
            scope.same(to, type(code.kind)(code.kind.name, PID), code.kind, "whom to send to")
            receivers = f"sorted({code.text}, key=repr)" if code.kind.name == "set" else code.text
            yield f"self.send({tidy(receivers)}, {text})"
            return
        scope.wanted(to, PID, code.kind, "whom to send to")
        yield f"self.send({tidy(code.text)}, {text})"

    def _do_send_to(self, node: Node, scope: Scope, message: Node, to: Node) -> Iterator[str]:
        yield from self._do_send(node, scope, to, message)

    def _do_broadcast(self, node: Node, scope: Scope, message: Node) -> Iterator[str]:
        yield f"self.broadcast(Node, {self._message_of(message, scope)})"

    def _message_of(self, node: Node, scope: Scope) -> str:
        code = scope.expression(node)
        if code.kind is None or code.kind.name not in self.names.messages:
            raise self.text.error(node, f"expected a message to send, not a value of type {code.kind}")
        return tidy(code.text)

    def _do_output(self, node: Node, scope: Scope, value: Node) -> Iterator[str]:
        code = scope.expression(value)
        known = self.names.variables.get("outputs")
        self.names.variables["outputs"] = scope.same(value, known, list_of(code.kind), "the output")
        self.names.live.add("outputs")
        yield f"self.outputs += ({tidy(code.text)},)"

    def _do_timer(self, node: Node, scope: Scope, what: Token, name: Token) -> Iterator[str]:
        if not any(upon.timer == name for upon in self.declared.upons):
            raise self.text.error(name, f"no upon waits for the timeout {name}", f"write: upon timeout({name}) do …")
        yield f"self.timeout_{name} = {what == 'start'}"

    def _do_conditional(
        self, node: Node, scope: Scope, condition: Node, yes: Node, no: Node | None = None
    ) -> Iterator[str]:
        yield f"if {tidy(scope.condition(condition))}:"
        before, mine = set(scope.fresh), scope.own_m
        yield from indent(self.block(yes, scope))
        after_yes, mine_yes = scope.fresh, scope.own_m
        scope.fresh, scope.own_m = before, mine
        if no is not None:
            yield "else:"
            yield from indent(self.block(no, scope))
        scope.fresh, scope.own_m = scope.fresh & after_yes, scope.own_m and mine_yes

    def _do_each(self, node: Node, scope: Scope, name: Token, domain: Node, body: Node) -> Iterator[str]:
        if name in self.names.variables or name in scope.local:
            raise self.text.error(name, f"'{name}' is a variable already", "choose another name")
        loop, inner = scope.over(name, domain)
        yield f"{tidy_loop(loop)}:"
        fresh, mine = set(scope.fresh), scope.own_m
        scope.local[str(name)] = inner.local[str(name)]
        yield from indent(self.block(body, scope))
        scope.local.pop(str(name))
        scope.fresh, scope.own_m = fresh, mine and scope.own_m


def tidy_loop(loop: str) -> str:
    """`for x in …` without redundant parentheses."""
    head, _, rest = loop.partition(" in ")
    return f"{head} in {tidy(rest)}"


def _name(token: Token) -> Node:
    return Node("name", (token,), token.line or 1, token.column or 1)


def marked(lines: Iterable[str], line: int) -> Iterator[str]:
    """Lines of Python with the number of their line in the text; lines that have a number keep it."""
    for number, made in enumerate(lines):
        yield made if number or LINE in made else f"{made}{LINE}{line}"


def indent(lines: Iterable[str]) -> Iterator[str]:
    """Lines in a block."""
    for line in lines:
        yield f"    {line}" if line else ""
