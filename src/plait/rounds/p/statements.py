"""Functions of P, translated to methods in Python.

A function that may end in `goto` or `raise` returns what to do next: `("goto", state, payload)` or `("raise", event,
payload)`, or None. A function that may wait in a `receive` is translated by `receives.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plait.rounds.p import syntax as s
from plait.rounds.p.expressions import Code, Scope, parameter_type
from plait.rounds.p.lexer import Place
from plait.rounds.p.value_types import ANY, BOOL, EVENT, INT, MACHINE, NOTHING, STRING, ValueType

LINE = "\0"
"""Separates a line of Python from the number of the line of P that it is for."""


def marked(lines: Iterator[str] | list[str], line: int) -> Iterator[str]:
    """Lines with the line of P that they are for; lines that have one keep it."""
    for made in lines:
        yield made if LINE in made else f"{made}{LINE}{line}"


def indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    """Lines as a block."""
    for line in lines:
        yield f"    {line}"


class Body:
    """The translation of one function."""

    def __init__(self, scope: Scope, function: s.Function, title: str) -> None:
        self.scope, self.function, self.title = scope, function, title
        self.text, self.names = scope.text, scope.names
        self.result = self.names.resolve(function.result)
        self.temporaries = 0
        self.loops: list[Loop] = []
        scope.local = {}
        for variable in function.parameters:
            self.declare(variable)

    def declare(self, variable: s.Variable) -> str:
        """Make a variable of the function known, and return its Python name."""
        if variable.name in self.scope.local:
            raise self.text.error(variable.place, f"the variable {variable.name} is declared twice", "rename one")
        name = self.names.local(variable.name)
        while name in {python for python, _ in self.scope.local.values()}:
            name += "_"
        self.scope.local[variable.name] = (name, self.names.resolve(variable.type))
        return name

    def method(self) -> Iterator[str]:
        """The method."""
        parameters = [self.scope.local[variable.name][0] for variable in self.function.parameters]
        yield f"def {self.title}({', '.join(['self', *parameters])}):{LINE}{self.function.place.line}"
        lines = [f"{self.declare(v)} = {self.default(v)}" for v in self.function.variables]
        lines += self.statement(self.function.body)
        if self.result != NOTHING:
            lines.append(
                f"assert False, {f'{self.text.where(self.function.place)}: the function ends without a value'!r}"
            )
        yield from marked(indented(lines or ["pass"]), self.function.place.line)

    def default(self, variable: s.Variable) -> str:
        return self.names.default(self.names.resolve(variable.type))

    def error(self, place: Place, message: str, hint: str | None = None) -> Exception:
        return self.text.error(place, message, hint)

    def temporary(self) -> str:
        self.temporaries += 1
        return f"temporary{self.temporaries}_"

    def nested(self, node: s.Statement) -> list[str]:
        """A statement as a block."""
        return list(indented(list(self.statement(node)) or ["pass"]))

    def check_order(self, node: s.Statement) -> None:
        """Refuse an expression that reads a variable of the machine before it calls a function that changes the variable."""
        expressions = [part for part in node.parts() if isinstance(part, s.Expression)]
        if isinstance(node, s.Assign):
            expressions = [
                node.value,
                *(index.index for index in node.target.find(s.Index) if isinstance(index, s.Index)),
            ]
        calls = [call for part in expressions for call in part.find(s.Call) if isinstance(call, s.Call)]
        if isinstance(node, s.Insert | s.Remove):
            expressions.append(node.target)
        for call in calls:
            inside = {name for argument in call.arguments for name in argument.find(s.Name)}
            changed = self.scope.changes(call.function)
            for name in (name for part in expressions for name in part.find(s.Name) if name not in inside):
                assert isinstance(name, s.Name)
                if name.name in changed and name.name not in self.scope.local and name.place < call.place:
                    raise self.error(
                        call.place,
                        f"{call.function} changes {name.name}, which is read before in the same statement",
                        "call the function in a statement of its own: x = f(…);",
                    )

    def statement(self, node: s.Statement) -> Iterator[str]:
        self.check_order(node)
        lines: Iterator[str] = getattr(self, f"_{type(node).__name__.lower()}")(node)
        yield from marked(lines, node.place.line)

    # -- control -----------------------------------------------------------------------------------------------------------

    def _block(self, node: s.Block) -> Iterator[str]:
        for statement in node.statements:
            yield from self.statement(statement)

    def condition(self, node: s.Expression) -> str:
        return self.scope.of(node, BOOL, "a condition")

    def _if(self, node: s.If) -> Iterator[str]:
        yield f"if {self.condition(node.condition)}:"
        yield from self.nested(node.then)
        if node.otherwise is not None:
            yield "else:"
            yield from self.nested(node.otherwise)

    def _while(self, node: s.While) -> Iterator[str]:
        yield f"while {self.condition(node.condition)}:"
        self.loops.append(Loop())
        yield from self.nested(node.body)
        self.loops.pop()

    def foreach(self, node: s.Foreach) -> tuple[str, str]:
        """The variable of a loop, and the elements that it takes."""
        variable = self.scope.variable(node.name)
        if variable is None:
            raise self.names.unknown(node.place, "variable", node.name, [*self.scope.local, *self.scope.fields])
        code = self.scope.expression(node.collection)
        if code.kind.name not in ("seq", "set"):
            raise self.error(node.place, f"foreach needs a seq or a set, not {code.kind}", "use keys(…) of a map")
        self.scope.check(node.place, code.kind.of[0], variable.kind, f"the variable {node.name}")
        elements = self.scope.ordered(code) if code.kind.name == "set" else self.scope.kept(code)
        return variable.text, elements

    def _foreach(self, node: s.Foreach) -> Iterator[str]:
        variable, elements = self.foreach(node)
        one = self.temporary()
        yield f"for {one} in {elements}:"
        yield f"    {variable} = {one}"
        self.loops.append(Loop())
        yield from self.nested(node.body)
        self.loops.pop()

    def _break(self, node: s.Break) -> Iterator[str]:
        yield from self._leave_loop(node.place, "break")

    def _continue(self, node: s.Continue) -> Iterator[str]:
        yield from self._leave_loop(node.place, "continue")

    def _leave_loop(self, place: Place, word: str) -> Iterator[str]:
        if not self.loops:
            raise self.error(place, f"{word} outside of a loop", "remove it")
        loop = self.loops[-1]
        if loop.start is None:
            yield word
        else:
            yield f"point = {loop.end if word == 'break' else loop.start}"
            yield "continue"

    def _return(self, node: s.Return) -> Iterator[str]:
        yield f"return {self.returned(node)}"

    def returned(self, node: s.Return) -> str:
        if node.value is None:
            if self.result != NOTHING:
                raise self.error(node.place, f"{self.function.name} must return a value of the type {self.result}")
            return "None"
        if self.result == NOTHING:
            raise self.error(node.place, "this function has no result, and returns a value", "declare the type")
        return self.scope.stored(node.value, self.result, "the result")

    # -- assignments -------------------------------------------------------------------------------------------------------

    def _assign(self, node: s.Assign) -> Iterator[str]:
        kind = self._target_kind(node.target)
        if isinstance(node.value, s.Call) and node.value.function in self.scope.jumping:
            raise self.error(
                node.place, f"{node.value.function} may end in goto or raise, and returns a value", "separate the two"
            )
        value = self.scope.stored(node.value, kind, "the variable")
        yield from self._store(node.target, value)

    def _target_kind(self, target: s.Expression) -> ValueType:
        base = target
        while isinstance(base, s.Field | s.Item | s.Index):
            base = base.of
        if not isinstance(base, s.Name) or self.scope.variable(base.name) is None:
            raise self.error(base.place, "only variables can be assigned", "declare it: var name: type;")
        if isinstance(target, s.Index):
            of = self.scope.expression(target.of).kind
            if of.name == "map":
                return of.of[1]
            if of.name != "seq":
                raise self.error(target.place, f"an element of a value of the type {of} cannot be assigned")
        return self.scope.expression(target).kind

    def _store(self, target: s.Expression, value: str) -> Iterator[str]:
        """Assign a value. Values are immutable, so a part of a variable changes by replacing the variable."""
        base, path = target, list[s.Field | s.Item | s.Index]()
        while isinstance(base, s.Field | s.Item | s.Index):
            path.insert(0, base)
            base = base.of
        assert isinstance(base, s.Name)
        variable = self.scope.variable(base.name)
        assert variable is not None
        if not path:
            yield f"{variable.text} = {value}"
            return
        if not re.fullmatch(r"[\w.]+", value):
            kept = self.temporary()
            yield f"{kept} = {value}"
            value = kept
        keys: list[str] = []
        for part in path:
            if isinstance(part, s.Index):
                keys.append(self.temporary())
                yield f"{keys[-1]} = {self.scope.expression(part.index).text}"
            else:
                keys.append("")
        yield f"{variable.text} = {self._replaced(variable, path, keys, value)}"

    def _replaced(self, whole: Code, path: list[s.Field | s.Item | s.Index], keys: list[str], value: str) -> str:
        """A value in which the part at the end of a path is replaced."""
        if not path:
            return value
        part, kind = path[0], whole.kind
        if isinstance(part, s.Index):
            where = self.scope.where(part.place)
            self._check_key(part, kind)
            if kind.name == "map":
                inner = Code(f"look_up({whole.text}, {keys[0]}, {where})", kind.of[1], False)
                return f"{{**{whole.text}, {keys[0]}: {self._replaced(inner, path[1:], keys[1:], value)}}}"
            inner = Code(f"item({whole.text}, {keys[0]}, {where})", kind.of[0], False)
            return f"with_item({whole.text}, {keys[0]}, {self._replaced(inner, path[1:], keys[1:], value)}, {where})"
        name, of = self.scope.field(part, kind)
        items = []
        for attribute in self.names.attributes(kind):
            old = f"{whole.text}.{attribute}"
            new = self._replaced(Code(old, of, False), path[1:], keys[1:], value)
            items.append(new if attribute == name else old)
        return f"{self.names.tuple_class(kind)}({', '.join(items)})"

    def _check_key(self, part: s.Index, kind: ValueType) -> None:
        found = self.scope.expression(part.index).kind
        self.scope.check(part.place, found, INT if kind.name == "seq" else kind.of[0], "the index")

    def _insert(self, node: s.Insert) -> Iterator[str]:
        self._target_kind(node.target)
        code, where = self.scope.expression(node.target), self.scope.where(node.place)
        kind = code.kind
        if kind.name == "set":
            if node.index is not None:
                raise self.error(node.place, "a pair is added to a set", "write += ((a, b)) for a tuple")
            value = self.scope.stored(node.value, kind.of[0], "an element of the set")
            yield from self._store(node.target, f"{code.text} | {{{value}}}")
            return
        if kind.name not in ("seq", "map"):
            raise self.error(node.place, f"+= needs a collection, not {kind}", "use =")
        if node.index is None:
            what = "(index, value)" if kind.name == "seq" else "(key, value)"
            raise self.error(node.place, f"+= on a {kind.name} needs two values", f"write += {what}")
        value = self.scope.stored(node.value, kind.of[-1], f"an element of the {kind.name}")
        if kind.name == "map":
            key = self.scope.stored(node.index, kind.of[0], "the key")
            yield from self._store(node.target, f"added({code.text}, {key}, {value}, {where})")
        else:
            index = self.scope.of(node.index, INT, "the index")
            yield from self._store(node.target, f"inserted({code.text}, {index}, {value}, {where})")

    def _remove(self, node: s.Remove) -> Iterator[str]:
        self._target_kind(node.target)
        code, where = self.scope.expression(node.target), self.scope.where(node.place)
        kind = code.kind
        match kind.name:
            case "set":
                value = self.scope.of(node.value, kind.of[0], "an element of the set")
                yield from self._store(node.target, f"{code.text} - {{{value}}}")
            case "map":
                key = self.scope.of(node.value, kind.of[0], "the key")
                yield from self._store(node.target, f"without_key({code.text}, {key})")
            case "seq":
                index = self.scope.of(node.value, INT, "the index")
                yield from self._store(node.target, f"without_item({code.text}, {index}, {where})")
            case _:
                raise self.error(node.place, f"-= needs a collection, not {kind}", "use =")

    # -- actions -----------------------------------------------------------------------------------------------------------

    def _assert(self, node: s.Assert) -> Iterator[str]:
        where = self.text.where(node.place)
        message = repr(f"{where}: the assertion fails")
        if node.message is not None:
            text = self.scope.of(node.message, STRING, "the message")
            message = f"{f'{where}: '!r} + {text}"
        condition = self.scope.of(node.condition, BOOL, "an assertion")
        if self.scope.is_spec and self.result == NOTHING and not self.title.startswith("exit_"):
            yield f"if not {condition}:"
            yield f'    return ("fail", {message})'
        else:
            yield f"assert {condition}, {message}"

    def _print(self, node: s.Print) -> Iterator[str]:
        code = self.scope.expression(node.message)
        if next(node.message.find(s.Call, s.New, s.Choose), None) is not None:
            yield code.text

    def _do(self, node: s.Do) -> Iterator[str]:
        if isinstance(node.call, s.New):
            yield self.scope.expression(node.call).text
        elif node.call.function in self.scope.jumping:
            only_fails = node.call.function in self.scope.failing and self.title.startswith("with_")
            if not only_fails:
                self.jumps(node.place, f"a call of {node.call.function}, which may end in goto or raise,")
            yield f"jump = {self.scope.call(node.call).text}"
            yield "if jump is not None:"
            yield "    return jump"
        else:
            yield self.scope.call(node.call).text

    def event(self, node: s.Expression, payload: tuple[s.Expression, ...], what: str) -> tuple[str, str]:
        """An event and its payload."""
        if isinstance(node, s.Name) and self.scope.variable(node.name) is None and node.name in self.names.events:
            kind = self.names.resolve(self.names.events[node.name].type)
            text = self.scope.expression(node).text
            return text, self.scope.payload(node.place, payload, kind, f"the event {node.name}")
        text = self.scope.of(node, EVENT, f"the event of {what}")
        if not (isinstance(node, s.Name) and node.name == "halt"):
            text = f"occurring({text}, {self.scope.where(node.place)})"
        return text, self.scope.payload(node.place, payload, ANY, "the event")

    def only_machines(self, place: Place, what: str) -> None:
        if self.scope.is_spec:
            raise self.error(place, f"a spec cannot {what}: it only observes", f"{what} in a machine")

    def _send(self, node: s.Send) -> Iterator[str]:
        self.only_machines(node.place, "send")
        machine = self.scope.of(node.machine, MACHINE, "the target of a send")
        event, payload = self.event(node.event, node.payload, "a send")
        if not isinstance(node.machine, s.This):
            machine = f"target({machine}, {self.scope.where(node.place)})"
        yield f"self.post_({machine}, {event}, {payload})"

    def _announce(self, node: s.Announce) -> Iterator[str]:
        self.only_machines(node.place, "announce")
        event, payload = self.event(node.event, node.payload, "an announce")
        yield f"self.post_(None, {event}, {payload})"

    def jumps(self, place: Place, what: str) -> None:
        """Refuse a jump where it would not end the handler."""
        if self.result != NOTHING:
            raise self.error(place, f"{what} in a function that returns a value", "separate the two")
        if self.title.startswith(("exit_", "with_")):
            raise self.error(place, f"{what} in an exit function or after with", "do it in an entry function")

    def _raise(self, node: s.Raise) -> Iterator[str]:
        self.jumps(node.place, "raise")
        event, payload = self.event(node.event, node.payload, "a raise")
        yield f'return ("raise", {event}, {payload})'

    def _goto(self, node: s.Goto) -> Iterator[str]:
        self.jumps(node.place, "goto")
        states = {state.name: state for state in self.scope.machine.states}
        if node.state not in states:
            raise self.names.unknown(node.place, "state", node.state, states)
        kind = parameter_type(self.names, self.scope.machine, states[node.state].entry)
        payload = self.scope.payload(node.place, node.payload, kind, f"the state {node.state}")
        yield f'return ("goto", {node.state!r}, {payload})'

    def _receive(self, node: s.Receive) -> Iterator[str]:
        raise self.error(
            node.place, "receive in a function that cannot wait", "receive in an entry function or a handler"
        )


class Loop:
    """A loop. If it is split because something in it waits, the points of its start and its end."""

    def __init__(self, start: int | None = None, end: int | None = None) -> None:
        self.start, self.end = start, end
