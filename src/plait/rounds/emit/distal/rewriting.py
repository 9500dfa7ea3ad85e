"""Expressions and statements of a protocol in Distal, rewritten for one process that runs all processes.

The variable x of the process whose turn it is becomes `s_x[turn_]`. A received message is a record with the number of
its sender (`sender_`). Names that the program itself uses end with an underscore.
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.kernel.errors import ModelError
from plait.kernel.extras import needs
from plait.rounds.distal.names import Names
from plait.rounds.distal.parser import Node, Text
from plait.rounds.distal.value_types import PID

with needs("rounds"):
    from lark import Token


class Rewriting:
    """Rewrites one text."""

    def __init__(self, names: Names, text: Text, places: dict[str, str]) -> None:
        self.names, self.text = names, text
        self.places = places
        """For each message type the number of the round of a message `sent_`, as an expression."""
        self.message = "msg_"
        """What m is called."""
        self.got = "got_"
        """What the received messages are called."""
        self.renamed: dict[str, str] = {}
        """Variables with new messages."""
        self.processes: set[str] = set()
        """The names that are processes, in a property."""
        self.bound: set[str] = set()

    def refuse(self, node: Node, what: str) -> ModelError:
        """The error for what the program does not have."""
        return self.text.error(node, f"--to distal does not support {what}", "use --to python")

    # -- expressions -----------------------------------------------------------------------------------------------------

    def expression(self, node: Node) -> str:
        """An expression."""
        made: str = getattr(self, f"_{node.data}")(node, *node.children)
        return made

    def condition(self, node: Node) -> str:
        """A condition. A process id as a condition asks for the process whose turn it is."""
        text = self.expression(node)
        if node.data == "call" and (function := self.names.functions.get(str(node.token(0)))) is not None:
            return f"({text} = process(turn_))" if function.result == PID else text
        if node.data == "call" and node.token(0) == "process":
            return f"({text} = process(turn_))"
        if node.data == "name" and self.names.variables.get(str(node.token(0))) == PID:
            return f"({text} = process(turn_))"
        return text

    def _number(self, node: Node, value: Token) -> str:
        return str(value)

    _text = _truth = _number

    def _empty(self, node: Node, value: Token) -> str:
        return "ε"

    def _list(self, node: Node, *parts: Node) -> str:
        return f"[{', '.join(map(self.expression, parts))}]"

    def _set(self, node: Node, given: Node | None) -> str:
        return f"{{{', '.join(map(self.expression, given.nodes() if given else []))}}}"

    def _range(self, node: Node, first: Node, last: Node) -> str:
        return f"[{self.expression(first)} .. {self.expression(last)}]"

    def _choice(self, node: Node, condition: Node, yes: Node, no: Node) -> str:
        return f"(if {self.condition(condition)} then {self.expression(yes)} else {self.expression(no)})"

    def _negate(self, node: Node, sign: Token, operand: Node) -> str:
        return f"¬({self.condition(operand)})"

    def _implies(self, node: Node, left: Node, sign: Token, right: Node) -> str:
        return f"(({self.condition(left)}) implies ({self.condition(right)}))"

    def _equal(self, node: Node, left: Node, right: Node) -> str:
        return f"({self.expression(left)} = {self.expression(right)})"

    def _binary(self, node: Node, left: Node, operator: Token, right: Node) -> str:
        part = self.condition if operator.type in ("AND", "OR") else self.expression
        return f"({part(left)} {operator} {part(right)})"

    def _signed(self, node: Node, sign: Token, operand: Node) -> str:
        return f"({sign}{self.expression(operand)})"

    def _within(self, node: Node, element: Node, owner: Node) -> str:
        return f"({self.expression(element)} in {self.expression(owner)})"

    def _index(self, node: Node, owner: Node, place: Node) -> str:
        return f"{self.expression(owner)}[{self.expression(place)}]"

    def _name(self, node: Node, name: Token) -> str:
        if name in self.bound:
            return self.own(name)
        if name in self.renamed:
            return self.renamed[str(name)]
        if name == "m":
            return self.message
        if name == "self":
            return "process(turn_)"
        if name == "processes":
            return "[0 .. size_ - 1]" if self.processes else "[process(i_) for i_ in [0 .. size_ - 1]]"
        if name == "n":
            return "size_"
        if name in self.names.live:
            return f"s_{name}[turn_]"
        return str(name) if name in self.names.constants or name in ("none", "nobody") else self.own(name)

    def own(self, name: Token | str) -> str:
        """A name that an expression or an action defines."""
        return f"l_{name}"

    def _access(self, node: Node, owner: Node, field: Token) -> str:
        if owner.data == "name" and owner.children[0] in self.processes:
            process = self.own(owner.token(0))
            if field in ("self", "index"):
                return process if field == "index" else f"process({process})"
            return f"run_.s_{field}[{process}]"
        if owner.data == "name" and owner.children[0] == "self" and field == "index":
            return "turn_"
        text = self.expression(owner)
        return f"process({text}.sender_)" if field == "sender" else f"{text}.{field}"

    def _call(self, node: Node, name: Token, given: Node | None) -> str:
        texts = [self.expression(part) for part in (given.nodes() if given else [])]
        if name in self.names.messages:
            texts.insert(0, "turn_")
        elif name == "spawn":
            raise self.refuse(node, "processes that are created")
        elif name == "senders":
            return f"{{process(x_.sender_) for x_ in {texts[0]}}}"
        function = self.names.functions.get(str(name))
        if function is not None:
            if function.mailbox is not None:
                texts.insert(0, self.got)
            return f"f_{name}({', '.join(texts)})"
        return f"{name}({', '.join(texts)})"

    # -- what ranges over a collection -----------------------------------------------------------------------------------

    def _loop(self, name: Token, domain: Node, condition: Node | None) -> str:
        """`x in D with e`, in which x is bound from now on."""
        tests = []
        if domain.data == "mailbox":
            over = self.got
            self.bound.add(str(name))
            tests += [self.condition(domain.node(1))] if domain.children[1] is not None else []
        else:
            over = self.expression(domain)
            if domain.data == "name" and domain.children[0] == "processes" and self.processes:
                self.processes.add(str(name))
        self.bound.add(str(name))
        tests += [self.condition(condition)] if condition is not None else []
        return f"{self.own(name)} in {over}" + (f" with {' and '.join(tests)}" if tests else "")

    def _ranging(self, before: str, name: Token, domain: Node, condition: Node | None, after: str, part: Node) -> str:
        known = set(self.bound), set(self.processes)
        loop = self._loop(name, domain, condition)
        made = f"{before}{self.expression(part)} for {loop}{after}"
        self.bound, self.processes = known
        return made

    def _mailbox(self, node: Node, name: Token | None, condition: Node | None) -> str:
        if condition is None:
            return self.got
        before, self.message = self.message, "x_"
        renamed, self.renamed = self.renamed, {}
        made = f"[x_ for x_ in {self.got} with {self.condition(condition)}]"
        self.message, self.renamed = before, renamed
        return made

    def _list_of(self, node: Node, part: Node, name: Token, domain: Node, condition: Node | None = None) -> str:
        return self._ranging("[", name, domain, condition, "]", part)

    def _set_of(self, node: Node, part: Node, name: Token, domain: Node, condition: Node | None = None) -> str:
        return self._ranging("{", name, domain, condition, "}", part)

    def _aggregate(
        self, node: Node, function: Token, part: Node, name: Token, domain: Node, condition: Node | None = None
    ) -> str:
        return self._ranging(f"{function}(", name, domain, condition, ")", part)

    def _count(self, node: Node, _: Token, name: Token, domain: Node, condition: Node | None = None) -> str:
        known = set(self.bound), set(self.processes)
        made = f"count({self._loop(name, domain, condition)})"
        self.bound, self.processes = known
        return made

    def _select(self, node: Node, order: Token, name: Token, domain: Node, *rest: Node | None) -> str:
        condition, keys, result = rest
        assert keys is not None
        assert result is not None
        known = set(self.bound)
        loop = self._loop(name, domain, condition)
        by = ", ".join(self.expression(key) for key in keys.nodes())
        made = f"({order} {loop} by {by} give {self.expression(result)})"
        self.bound = known
        return made

    def _quantified(self, node: Node, quantifier: Token, names: Node, domain: Node | None, formula: Node) -> str:
        known = set(self.bound), set(self.processes)
        heads = []
        for name in names.children:
            assert isinstance(name, Token)
            if domain is None:
                self.processes.add(str(name))
                self.bound.add(str(name))
                heads.append(f"{quantifier} {self.own(name)} in [0 .. size_ - 1]: ")
            else:
                over = self._loop(name, domain, None).partition(" with ")
                heads.append(f"{quantifier} {over[0]}: ")
                if over[2]:
                    raise self.refuse(node, "a quantifier over a part of the mailbox")
        made = f"({''.join(heads)}{self.condition(formula)})"
        self.bound, self.processes = known
        return made

    # -- statements ------------------------------------------------------------------------------------------------------

    def block(self, node: Node) -> Iterator[str]:
        """The statements of an action, line by line."""
        for statement in node.nodes():
            yield from getattr(self, f"_do_{statement.data}")(statement, *statement.children)

    def _do_skip(self, node: Node) -> Iterator[str]:
        yield "skip;"

    def _do_upon(self, node: Node, *_: object) -> Iterator[str]:
        raise self.refuse(node, "nested upons")

    def _do_timer(self, node: Node, *_: object) -> Iterator[str]:
        raise self.refuse(node, "timeouts with names")

    def _target(self, name: Token) -> str:
        return f"s_{name}[turn_]" if name in self.names.live else self.own(name)

    def _do_assign(self, node: Node, name: Token, value: Node) -> Iterator[str]:
        made = self.expression(value)
        if str(name) in self._message_of:
            self.renamed[str(name)] = f"new_{self._message_of[str(name)]}"
        yield f"{self.renamed.get(str(name)) or self._target(name)} = {made};"

    def _do_add(self, node: Node, name: Token, value: Node) -> Iterator[str]:
        kind = self.names.variables.get(str(name))
        element = self.expression(value)
        if kind is not None and kind.name == "set":
            yield f"{self._target(name)} = union({self._target(name)}, {{{element}}});"
        else:
            yield f"{self._target(name)} = {self._target(name)} + [{element}];"

    def _do_put(self, node: Node, name: Token, place: Node, value: Node) -> Iterator[str]:
        yield f"list_ = {self._target(name)};"
        yield f"list_[{self.expression(place)}] = {self.expression(value)};"
        yield f"{self._target(name)} = list_;"

    def _do_output(self, node: Node, value: Node) -> Iterator[str]:
        yield f"s_outputs[turn_] = s_outputs[turn_] + [{self.expression(value)}];"

    def _do_conditional(self, node: Node, condition: Node, yes: Node, no: Node | None = None) -> Iterator[str]:
        yield f"if {self.condition(condition)} then"
        yield from indented(self.block(yes))
        if no is not None:
            yield "else"
            yield from indented(self.block(no))

    def _do_each(self, node: Node, name: Token, domain: Node, body: Node) -> Iterator[str]:
        yield f"for {self.own(name)} in {self.expression(domain)} do"
        yield from indented(self.block(body))

    def _do_send(self, node: Node, to: Node, message: Node) -> Iterator[str]:
        name = self._type_of(message)
        yield f"sent_{name} = {self.expression(message)};"
        yield f"at_ = {self.places[name]};"
        yield "broken_ = broken_ ∨ 2 * at_ < clock_[turn_];"
        yield "first_ = if first_ = 0 then at_ else min(first_, at_);"
        yield "latest_ = max(latest_, at_);"
        if to.data == "name" and to.children[0] == "ALL":
            over, number = "[0 .. size_ - 1]", "q_"
        else:
            over, number = f"[{self.expression(to)}]", "q_.index"
            kind = self._kind(to)
            if kind in ("list", "set"):
                over = self.expression(to)
        yield "if at_ ≤ last_ then"
        yield f"  for q_ in {over} do"
        yield f"    mail_{name} = mail_{name} + [Mail{name}({number}, sent_{name})];"

    def _do_send_to(self, node: Node, message: Node, to: Node) -> Iterator[str]:
        yield from self._do_send(node, to, message)

    def _do_broadcast(self, node: Node, message: Node) -> Iterator[str]:
        yield from self._do_send(node, Node("name", (Token("NAME", "ALL"),)), message)

    def _kind(self, node: Node) -> str | None:
        """Whether receivers are a list or a set."""
        if node.data == "call" and (function := self.names.functions.get(str(node.token(0)))) is not None:
            return function.result.name
        if node.data == "name" and (kind := self.names.variables.get(str(node.token(0)))) is not None:
            return kind.name
        return {"list_of": "list", "list": "list", "set_of": "set", "set": "set"}.get(node.data)

    _message_of: dict[str, str]

    def _type_of(self, node: Node) -> str:
        """The type of a message that is sent."""
        if node.data == "call" and node.token(0) in self.names.messages:
            return str(node.token(0))
        if node.data == "name" and str(node.token(0)) in self._message_of:
            return self._message_of[str(node.token(0))]
        raise self.refuse(node, "a message that is neither new nor a variable with a new message")

    def action(self, node: Node) -> list[str]:
        """The statements of an action. Its variables with messages have one type each."""
        self._message_of, self.renamed = {}, {}
        for found in node.find("assign"):
            value = found.node(1)
            if value.data == "call" and value.token(0) in self.names.messages:
                name, kind = str(found.token(0)), str(value.token(0))
                if self._message_of.setdefault(name, kind) != kind:
                    raise self.refuse(found, f"messages of several types in {name}")
        made = list(self.block(node))
        self.renamed = {}
        return made


def indented(lines: Iterator[str] | list[str], level: int = 1) -> Iterator[str]:
    """Lines in blocks."""
    for line in lines:
        yield "  " * level + line
