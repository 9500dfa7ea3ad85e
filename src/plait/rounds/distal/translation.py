"""The translation of a Distal text to a Plait model in Python (docs/reference/distal.md has the semantics and the proof).

Each `upon` becomes one handler that consumes its messages. The text is translated repeatedly, until nothing new is learned
about the types of variables and about which variables a process must remember.
"""

from __future__ import annotations

import dataclasses
import keyword
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from plait.kernel.errors import ModelError
from plait.kernel.extras import needs
from plait.rounds.distal.expressions import BUILTIN, Function, Names, Scope, tidy
from plait.rounds.distal.parser import HERE, Node, Text, parse
from plait.rounds.distal.value_types import INT, NAMED, PID, ValueType

with needs("rounds"):
    from lark import Token

RESERVED = {"m", "messages", "s", "outputs", "nobody", "self", "n", "phases", "ALL", "mbox", "timeout", "id", "Node"}
RESERVED |= {"send", "broadcast", "ids", "announce", "choose", "spawn", "pid", "start", "Message", "Process", "System"}
RESERVED |= {"Pid", "View", "Any", "action", "always", "init", "on", "reachable", "tagged"}
RESERVED |= {"all", "any", "chr", "int", "len", "bool", "max", "min", "ord", "range", "str", "tuple"}


@dataclasses.dataclass
class Upon:
    """An upon, and what its action reads."""

    node: Node
    message: Token | None
    """None for a timeout."""
    guard: Node | None
    times: Node | None
    body: Node
    name: str


_LINE = "\0"
"""Separates a line of Python from the number of its line in the text."""


def translate(source: str, file: str, name: str) -> tuple[str, list[int]]:
    """The Python source of a model function of this name, and for each of its lines the line of the text."""
    made, numbers = [], [1]
    for line in _Translation(Text(source, file), name).module().split("\n"):
        code, marked, number = line.partition(_LINE)
        made.append(code)
        numbers.append(int(number) if marked else numbers[-1])
    return "\n".join(made), numbers[1:]


class _Translation:
    def __init__(self, text: Text, name: str) -> None:
        self.text, self.name = text, name
        self.names = Names(constants={"n": INT, "phases": INT})
        self.phases: dict[str, str] = {}
        self.defaults: dict[str, str] = {"n": "3", "phases": "2"}
        self.upons: list[Upon] = []
        self.properties: list[Node] = []
        prelude = Text((HERE / "prelude.distal").read_text(encoding="utf-8"), "prelude.distal")
        for function in parse(prelude, start="prelude").nodes():
            self._function(function, prelude)
        self.own: set[str] = set()
        for node in parse(text).nodes():
            getattr(self, f"_{node.data}")(node)
        for action in (self.init, *(upon.body for upon in self.upons)):
            for found in action.find("assign", "add"):
                self.names.variables.setdefault(str(found.token(0)), None)
        self.names.used = dict.fromkeys(sorted(self.own))
        self.names.outputs = any(
            True for action in (self.init, *(upon.body for upon in self.upons)) for _ in action.find("output")
        )

    # -- declarations ------------------------------------------------------------------------------------------------

    def _fresh(self, name: Token, *taken: object) -> None:
        if name in RESERVED or name in BUILTIN or keyword.iskeyword(name) or str(name).startswith("_"):
            raise self.text.error(name, f"'{name}' is a reserved name", "choose another name")
        if any(name in group for group in taken):  # type: ignore[operator]
            raise self.text.error(name, f"'{name}' is declared twice", "choose another name")

    def _kind(self, node: Node) -> ValueType:
        if node.data == "list_type":
            return ValueType("list", self._kind(node.node(0)))
        name = node.token(0)
        if name not in NAMED:
            raise self.text.error(
                name, f"there is no type '{name}'", f"there are: {', '.join(NAMED)} and lists: [text]"
            )
        return NAMED[name]

    def _message(self, node: Node) -> None:
        name = node.token(0)
        self._fresh(name, self.names.messages)
        if not name[0].isupper():
            raise self.text.error(
                name, f"the message type '{name}' must begin with a capital letter", f"write {name.capitalize()}"
            )
        found: dict[str, ValueType] = {}
        for field in node.nodes():
            phase, kind, label = field.children[0], field.node(1), field.token(2)
            self._fresh(label, found, {"sender"})
            found[str(label)] = self._kind(kind)
            if phase is not None:
                if name in self.phases or found[str(label)] != INT:
                    raise self.text.error(label, "a message has one phase, of type int")
                self.phases[str(name)] = str(label)
        self.names.messages[str(name)] = found
        if self.phases and len(self.phases) < len(self.names.messages):
            raise self.text.error(
                name, "either all message types have a phase, or none", "mark the field: phase int ballot;"
            )

    def _parameter(self, node: Node) -> None:
        kind, name, value = node.node(0), node.token(1), node.node(2)
        if name in ("n", "phases"):
            kind_of = INT
        else:
            self._fresh(name, self.names.constants)
            kind_of = self._kind(kind)
        scope = Scope(Names(), self.text, myself=False)
        self.defaults[str(name)] = tidy(scope.of(value, kind_of, f"the value of {name}"))
        self.names.constants[str(name)] = kind_of

    def _function(self, node: Node, text: Text | None = None) -> None:
        result, name, formals, body = node.node(0), node.token(1), node.children[2], node.node(3)
        if text is None:
            self._fresh(name, self.own)
            self.own.add(str(name))
        parameters: dict[str, ValueType] = {}
        for formal in formals.nodes() if isinstance(formals, Node) else ():
            kind, label = formal.node(0), formal.token(1)
            self._fresh(label, parameters)
            parameters[str(label)] = self._kind(kind)
        mailbox = next((str(found.token(2)) for found in body.find("select")), None)
        self.names.functions[str(name)] = Function(
            node, text or self.text, parameters, self._kind(result), body, mailbox
        )

    def _init(self, node: Node) -> None:
        self.init = node.nodes()[0]

    def _loop(self, node: Node) -> None:
        taken: dict[str, int] = {}
        for upon in node.nodes():
            trigger, guard, times, body = upon.node(0), upon.children[1], upon.children[2], upon.node(3)
            message = trigger.token(0) if trigger.data == "on_message" else None
            if message is not None and message not in self.names.messages:
                known = ", ".join(self.names.messages) or "none"
                raise self.text.error(
                    message, f"there is no message type '{message}'", f"declare it with type …; there are: {known}"
                )
            label = f"upon_{_snake(message or 'timeout')}"
            taken[label] = taken.get(label, 0) + 1
            if taken[label] > 1:
                label += f"_{taken[label]}"
            count = times.node(0) if isinstance(times, Node) else None
            if count is not None and message is None:
                raise self.text.error(upon, "a timeout cannot have times", "leave times out")
            self.upons.append(Upon(upon, message, guard if isinstance(guard, Node) else None, count, body, label))

    def _property(self, node: Node) -> None:
        self._fresh(node.token(1), [known.token(1) for known in self.properties])
        self.properties.append(node)

    # -- the module --------------------------------------------------------------------------------------------------

    def module(self) -> str:
        while True:
            before = (dict(self.names.variables), set(self.names.live), dict(self.names.used))
            body = "\n".join(self._lines())
            if before == (self.names.variables, self.names.live, self.names.used):
                return body + "\n"

    def _lines(self) -> Iterator[str]:
        handlers = [*self._start(), *(line for upon in self.upons for line in self._handler(upon))]
        properties = list(self._properties())
        functions = [line for name in list(self.names.used) for line in self._method(name)]
        yield f'"""{self.name}, translated from {Path(self.text.file).name} by `plait rounds import`."""'
        yield ""
        yield "from __future__ import annotations"
        yield ""
        yield f"from plait import {', '.join(self._imports(functions))}"
        yield "from plait.model.view import View"
        for message, fields in self.names.messages.items():
            yield from ("", "")
            if message in self.phases:
                yield f'@tagged(phase="{self.phases[message]}", round="{message}")'
            yield f"class {message}(Message):"
            yield f'    """{message} of {self.name}."""'
            yield from ("", *(f"    {field}: {kind.python}" for field, kind in fields.items()))
        yield from ("", "", "class Node(Process):", f'    """A process of {self.name}."""', "")
        for constant, kind in self.names.constants.items():
            yield f"    {constant}: {kind.python}"
        for variable, found in self.names.variables.items():
            if variable in self.names.live and variable != "outputs":
                yield f"    {variable}: {(found or INT).python} = {(found or INT).default}"
        if self.names.outputs:
            outputs = self.names.variables.get("outputs") or ValueType("list")
            yield f"    outputs: {outputs.python} = ()"
            yield '    """What output() was called with, in order."""'
        yield from (f"    {line}" if line else "" for line in [*functions, *handlers])
        yield from ("", "")
        signature = ", ".join(f"{n}: {k.python} = {self.defaults[n]}" for n, k in self.names.constants.items())
        yield f"def {self.name}({signature}) -> System:"
        yield f'    """{self.name}: n processes, and a bound on the phases."""'
        yield from (f"    {line}" if line else "" for line in properties)
        yield ""
        given = ", ".join(f"{constant}={constant}" for constant in self.names.constants)
        yield "    return System("
        yield f"        [Node({given}) for _ in range(n)],"
        labels = [str(p.token(1)) for p in self.properties] or (["agreement"] if self.names.outputs else [])
        yield f"        properties=[{', '.join(labels)}],"
        if self.phases:
            consumed = {str(upon.message) for upon in self.upons}
            rounds = ", ".join(f'"{m}"' for m in self.names.messages if m in consumed)
            yield f"        rounds=[{rounds}],"
        yield f'        name="{self.name}",'
        yield "    )"

    def _imports(self, functions: list[str]) -> list[str]:
        """The names of Plait that the module imports."""
        live = [self.names.variables.get(name) for name in self.names.live]
        declared = [kind for fields in self.names.messages.values() for kind in fields.values()]
        names = {"Message", "Process", "System", "init", "on"}
        names |= {"Pid"} if "Pid" in "".join([*functions, *(k.python for k in [*live, *declared] if k)]) else set()
        names |= {"action"} if any(upon.message is None for upon in self.upons) else set()
        names |= {"tagged"} if self.phases else set()
        names |= {str(node.children[0]) for node in self.properties}
        names |= {"always"} if self.names.outputs and not self.properties else set()
        return sorted(names, key=lambda name: (name[0].islower(), name))

    def _method(self, name: str) -> Iterator[str]:
        function = self.names.functions[name]
        scope = Scope(self.names, function.text, received=function.mailbox, local=function.parameters)
        scope.own_m = False
        try:
            body = scope.of(function.body, function.result, f"the result of {name}")
        except ModelError as error:
            if name in self.own:
                raise
            raise ModelError(
                error.message,
                hint=f"the prelude's {name} does not fit this text: define function … {name}(…) in the text",
            ) from None
        parameters = [f"{n}: {kind.python}" for n, kind in function.parameters.items()]
        if function.mailbox:
            parameters.insert(0, f"messages: tuple[{function.mailbox}, ...]")
        yield ""
        label = self.names.method(name)
        line = function.body.line if name in self.own else 1
        yield from _marked([f"def {label}({', '.join(['self', *parameters])}) -> {function.result.python}:"], line)
        yield f"    return {tidy(body)}"

    def _start(self) -> Iterator[str]:
        yield from ("", "@init", "def start(self) -> None:")
        scope = Scope(self.names, self.text)
        yield from _indent(self._statements(self.init, scope))

    def _handler(self, upon: Upon) -> Iterator[str]:
        guard, inner = self._guard(upon), upon.body
        scope = Scope(self.names, self.text, received=upon.message and str(upon.message))
        yield ""
        words = self.text.of(upon.node).partition(" do ")[0]
        if upon.message is None:
            only = inner.node(0)
            if len(inner.children) == 1 and only.data == "conditional" and len(only.children) == 2:
                # If the action would do nothing, there is no step.
                guard, inner = _both(guard, Scope(self.names, self.text).condition(only.node(0))), only.node(1)
            decorator = f"@action(when=lambda self: {tidy(guard)})" if guard != "True" else "@action"
            yield from _marked([decorator], upon.node.line)
            yield f"def {upon.name}(self) -> None:"
        else:
            scope.local["m"] = ValueType(str(upon.message))
            body = list(self._statements(inner, scope))
            options = [str(upon.message)]
            if upon.times is not None:
                options.append(f"quorum=lambda self: {self._quorum(upon)}")
                if scope.fields:
                    for field, place in scope.fields.items():
                        if field == "sender":
                            raise self.text.error(
                                place, "with times, m.sender is ambiguous", "select a message from mbox"
                            )
                    options.append(f"same={list(scope.fields)}")
            if guard != "True":
                options.append(f"where=lambda self, m: {tidy(guard)}")
            decorator = f"@on({', '.join(options)})"
            wrapped = ["@on(", *(f"    {option}," for option in options), ")"]
            yield from _marked([decorator] if len(decorator) <= 112 else wrapped, upon.node.line)
            many = upon.times is not None
            argument = f"messages: tuple[{upon.message}, ...]" if many else f"m: {upon.message}"
            yield f"def {upon.name}(self, {argument}) -> None:"
            yield f'    """Line {upon.node.line}: {words}."""'
            if scope.selections and not many:
                yield "    messages = (m,)"
            if many and scope.fields:
                yield "    m = messages[0]"
            yield from _indent(iter(body))
            return
        yield f'    """Line {upon.node.line}: {words}."""'
        yield from _indent(self._statements(inner, scope))

    def _guard(self, upon: Upon) -> str:
        """The guard, and that no earlier upon takes the same message: the order in the text breaks ties."""
        guard = self._test(upon)
        for earlier in self.upons[: self.upons.index(upon)]:
            if earlier.message != upon.message:
                continue
            if earlier.times is not None and upon.times is not None:
                raise self.text.error(
                    upon.node, f"a second upon {upon.message} with times", "combine the two: one upon with an if"
                )
            test = self._test(earlier)
            if earlier.times is not None:  # a single message is not enough, unless its quorum is 1
                test = f"({self._quorum(earlier)}) <= 1 and ({test})"
            guard = _both(guard, f"not ({test})")
        return guard

    def _test(self, upon: Upon) -> str:
        if upon.guard is None:
            return "True"
        local = {} if upon.message is None else {"m": ValueType(str(upon.message))}
        return Scope(self.names, self.text, local=local).condition(upon.guard)

    def _quorum(self, upon: Upon) -> str:
        """The smallest number greater than the value of `times`."""
        scope, times = Scope(self.names, self.text), upon.times
        assert times is not None
        if times.data == "binary" and times.children[1] == "/":
            one, other = scope.of(times.node(0), INT, "times"), scope.of(times.node(2), INT, "times")
            return tidy(f"({one}) // ({other}) + 1")
        return tidy(f"({scope.of(times, INT, 'times')}) + 1")

    # -- statements --------------------------------------------------------------------------------------------------

    def _statements(self, node: Node, scope: Scope) -> Iterator[str]:
        for statement in node.nodes():
            lines = getattr(self, f"_do_{statement.data}")(statement, scope, *statement.children)
            yield from _marked(lines, statement.line)

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
        self.names.variables[str(name)] = scope.same(name, owner.kind, ValueType("list", code.kind), f"{name}.add")
        yield f"{scope.variable(name)} += ({tidy(code.text)},)"

    def _assignable(self, name: Token, scope: Scope) -> None:
        if name in self.names.constants or name in RESERVED:
            raise self.text.error(name, f"'{name}' cannot be assigned", "choose another name for the variable")
        if keyword.iskeyword(name) or str(name).startswith(("_", "upon_")):
            raise self.text.error(name, f"'{name}' is a reserved name", "choose another name for the variable")

    def _do_send(self, node: Node, scope: Scope, to: Node, message: Node) -> Iterator[str]:
        text = self._message_of(message, scope)
        if _is_all(to):
            yield f"self.broadcast(Node, {text})"
            return
        yield f"self.send({tidy(scope.of(to, PID, 'whom to send to'))}, {text})"

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
        self.names.variables["outputs"] = scope.same(value, known, ValueType("list", code.kind), "the output")
        self.names.live.add("outputs")
        yield f"self.outputs += ({tidy(code.text)},)"

    def _do_conditional(
        self, node: Node, scope: Scope, condition: Node, yes: Node, no: Node | None = None
    ) -> Iterator[str]:
        yield f"if {tidy(scope.condition(condition))}:"
        before, mine = set(scope.fresh), scope.own_m
        yield from _indent(self._statements(yes, scope))
        after_yes, mine_yes = scope.fresh, scope.own_m
        scope.fresh, scope.own_m = before, mine
        if no is not None:
            yield "else:"
            yield from _indent(self._statements(no, scope))
        scope.fresh, scope.own_m = scope.fresh & after_yes, scope.own_m and mine_yes

    # -- properties --------------------------------------------------------------------------------------------------

    def _properties(self) -> Iterator[str]:
        for node in self.properties:
            kind, name, formula = node.token(0), node.token(1), node.node(2)
            text = Scope(self.names, self.text, myself=False).condition(formula)
            doc = self.text.of(formula)
            yield from (
                "",
                f"@{kind}",
                f"def {name}(s: View) -> bool:",
                f'    """{doc}."""',
                f"    return {tidy(text)}",
            )
        if not self.properties and self.names.outputs:
            outputs = self.names.variables.get("outputs")
            log = outputs is not None and outputs.element is not None and outputs.element.name == "list"
            test = "x[: len(y)] == y[: len(x)]" if log else "x == y"
            doc = "Of any two outputs one is a prefix of the other." if log else "All outputs are the same."
            loops = "for p in s[Node] for q in s[Node] for x in p.outputs for y in q.outputs"
            yield from ("", "@always", "def agreement(s: View) -> bool:", f'    """{doc}"""')
            yield f"    return all({test} {loops})"


def _name(token: Token) -> Node:
    return Node("name", (token,), token.line or 1, token.column or 1)


def _is_all(node: Node) -> bool:
    return node.data == "name" and node.children[0] == "ALL"


def _both(one: str, other: str) -> str:
    """The conjunction of two conditions."""
    return other if one == "True" else f"({one}) and ({other})"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _marked(lines: Iterable[str], line: int) -> Iterator[str]:
    """Lines of Python with the number of their line in the text; lines that have a number keep it."""
    for number, made in enumerate(lines):
        yield made if number or _LINE in made else f"{made}{_LINE}{line}"


def _indent(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield f"    {line}" if line else ""
