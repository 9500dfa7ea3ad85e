"""The translation of a Distal text to a Plait model in Python (docs/reference/distal.md has the semantics and the proof).

The text is translated repeatedly, until nothing new is learned about the types of variables and about which variables a
process must remember.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plait.kernel.errors import ModelError
from plait.rounds.distal.declarations import Declarations, snake
from plait.rounds.distal.expressions import tidy
from plait.rounds.distal.names import HELPERS, Received
from plait.rounds.distal.parser import Text
from plait.rounds.distal.scope import Scope
from plait.rounds.distal.statements import LINE, indent, marked
from plait.rounds.distal.upons import Upons
from plait.rounds.distal.value_types import INT, ValueType


def translate(source: str, file: str, name: str, *, places: bool = False) -> tuple[str, list[int]]:
    """The Python source of a model function of this name, and for each of its lines the line of the text.

    With `places`, expressions are marked with their places in the text: see `positions.py`.
    """
    made, numbers = [], [1]
    for line in Translation(Text(source, file), name, places=places).module().split("\n"):
        code, found, number = line.partition(LINE)
        made.append(code)
        numbers.append(int(number) if found else numbers[-1])
    return "\n".join(made), numbers[1:]


class Translation(Upons):
    """A text and its module."""

    def __init__(self, text: Text, name: str, *, places: bool = False) -> None:
        super().__init__(Declarations(text))
        self.name = name
        self.places = places
        self.names.used = dict.fromkeys(sorted(self.declared.own))

    def module(self) -> str:
        """The module, with the numbers of lines."""
        while True:
            before = (dict(self.names.variables), set(self.names.live), dict(self.names.used), set(self.names.helpers))
            body = "\n".join(self._lines())
            if before == (self.names.variables, self.names.live, self.names.used, self.names.helpers):
                if self.places == self.names.marked:
                    return body + "\n"
                self.names.marked = True

    def _lines(self) -> Iterator[str]:
        names, declared = self.names, self.declared
        handlers = [*self._start()]
        for kind, upons in self.mailboxes.items():
            handlers += self.hearing(kind, upons)
        handlers += [line for upon in declared.upons for line in self.handler(upon)]
        properties = list(self._properties())
        functions = [line for name in list(names.used) for line in self._method(name)]
        rest = [*self._messages(), *self._node([*functions, *handlers]), "", "", *self._model(properties)]
        yield f'"""{self.name}, translated from {Path(self.text.file).name} by `plait rounds import`."""'
        yield ""
        yield "from __future__ import annotations"
        yield ""
        used = "\n".join(rest)
        typing = [n for n in ("Any", "ClassVar", "NamedTuple") if n in used or (n == "Any" and names.helpers)]
        if "_subsets" in names.helpers:
            yield "import itertools"
        if typing:
            yield f"from typing import {', '.join(typing)}"
            yield ""
        yield f"from plait import {', '.join(self._imports(used))}"
        yield "from plait.model.view import View"
        for helper in sorted(names.helpers):
            yield from ("", "", *(f"{line}{LINE}0" for line in HELPERS[helper].rstrip("\n").split("\n")))
        yield from marked(rest[:1], 1)
        yield from rest[1:]

    def _imports(self, used: str) -> list[str]:
        """The names of Plait that the module imports."""
        found = {"Message", "Process", "System", "init", "on"}
        found |= {name for name in ("Pid", "ModelError") if name in used}
        found |= {name for name in ("action", "tagged") if f"@{name}" in used}
        found |= {name for name in ("always", "reachable") if f"@{name}" in used}
        return sorted(found, key=lambda name: (name[0].islower(), name))

    def _messages(self) -> Iterator[str]:
        """The classes of records and messages."""
        names = self.names
        for record, fields in names.records.items():
            yield from ("", "", f"class {record}(NamedTuple):", f'    """{record} of {self.name}."""', "")
            yield from (f"    {field}: {kind.python}" for field, kind in fields.items())
        for message, fields in names.messages.items():
            rounds = names.rounds.get(message)
            for value in rounds.values if rounds else [None]:
                yield from ("", "")
                if message in self.declared.phases or rounds:
                    phase = self.declared.phases.get(message)
                    tag = [f'phase="{phase}"'] if phase else []
                    tag.append(f'round="{value or message}"')
                    yield f"@tagged({', '.join(tag)})"
                yield f"class {names.kind_of(message, value)}(Message):"
                yield f'    """{message} of {self.name}."""'
                yield ""
                if rounds and value is not None:
                    yield f"    {rounds.field}: ClassVar[str] = {value!r}"
                yield from (f"    {f}: {k.python}" for f, k in fields.items() if rounds is None or f != rounds.field)
        yield from self.heard()

    def _node(self, methods: list[str]) -> Iterator[str]:
        """The class of processes."""
        names = self.names
        yield from ("", "", "class Node(Process):", f'    """A process of {self.name}."""', "")
        for constant, kind in names.constants.items():
            yield f"    {constant}: {kind.python}"
        for variable, found in names.variables.items():
            if variable in names.live and variable != "outputs":
                yield f"    {variable}: {(found or INT).python} = {(found or INT).default}"
        for kind_, upons in self.mailboxes.items():
            yield f"    mbox_{snake(kind_)}: tuple[Heard{upons[0].message}, ...] = ()"
        if names.outputs:
            outputs = names.variables.get("outputs") or ValueType("list")
            yield f"    outputs: {outputs.python} = ()"
            yield '    """What output() was called with, in order."""'
        yield from indent(methods)

    def _model(self, properties: list[str]) -> Iterator[str]:
        """The function that makes the System."""
        names, declared = self.names, self.declared
        given = {n: kind for n, kind in names.constants.items() if n not in declared.computed}
        signature = ", ".join(f"{n}: {k.python} = {declared.defaults[n]}" for n, k in given.items())
        yield f"def {self.name}({signature}) -> System:"
        yield f'    """{self.name}: n processes, and a bound on the phases."""'
        outside = Scope(names, self.text, myself=False)
        for constant, node in declared.computed.items():
            code = outside.of(node, names.constants[constant], f"the value of {constant}")
            yield from marked([f"    {constant} = {tidy(code)}"], node.line)
        for node in declared.required:
            yield from marked([f"    if not ({tidy(outside.condition(node))}):"], node.line)
            place = f"{self.text.file}, line {node.line}: it requires {self.text.of(node)}"
            yield f'        raise ModelError({place!r}, hint="set other parameters: -p name=value")'
        yield from indent(properties)
        yield ""
        values = ", ".join(f"{constant}={constant}" for constant in names.constants)
        yield "    return System("
        yield f"        [Node({values}) for _ in range(n)],"
        labels = [str(p.token(1)) for p in declared.properties] or (["agreement"] if names.outputs else [])
        yield f"        properties=[{', '.join(labels)}],"
        if names.spare is not None:
            yield f"        spare={{Node: {tidy(outside.of(names.spare, INT, 'how many processes may be created'))}}},"
        if declared.phases or names.rounds:
            yield f"        rounds={self._rounds()},".replace("'", '"')
        yield f'        name="{self.name}",'
        yield "    )"

    def _rounds(self) -> list[str]:
        """The rounds in their order: those of which a message is consumed."""
        consumed = {self.kind(upon) for upon in self.declared.upons if upon.message is not None}
        found: dict[str, None] = {}
        for message in self.names.messages:
            rounds = self.names.rounds.get(message)
            for value in rounds.values if rounds else [None]:
                if self.names.kind_of(message, value) in consumed:
                    found.setdefault(value or message)
        return list(found)

    def _method(self, name: str) -> Iterator[str]:
        function = self.names.functions[name]
        received = None if function.mailbox is None else Received(function.mailbox)
        scope = Scope(self.names, function.text, received=received, local=dict(function.parameters))
        scope.own_m, scope.in_function = False, True
        try:
            body = scope.of(function.body, function.result, f"the result of {name}")
        except ModelError as error:
            if name in self.declared.own:
                raise
            raise ModelError(
                error.message,
                hint=f"the prelude's {name} does not fit this text: define function … {name}(…) in the text",
            ) from None
        parameters = [f"{n}: {kind.python}" for n, kind in function.parameters.items()]
        if function.mailbox:
            parameters.insert(0, "messages: tuple[Any, ...]")
        yield ""
        label = self.names.method(name)
        line = function.body.line if name in self.declared.own else 1
        yield from marked([f"def {label}({', '.join(['self', *parameters])}) -> {function.result.python}:"], line)
        yield f"    return {tidy(body)}"

    def _start(self) -> Iterator[str]:
        yield from ("", "@init", "def start(self) -> None:")
        yield from indent(self.block(self.declared.init, Scope(self.names, self.text, acts=True)))

    def _properties(self) -> Iterator[str]:
        for node in self.declared.properties:
            kind, name, formula = node.token(0), node.token(1), node.node(2)
            text = Scope(self.names, self.text, myself=False).condition(formula)
            yield ""
            yield from marked([f"@{kind}"], node.line)
            yield f"def {name}(s: View) -> bool:"
            yield f'    """{self.text.of(formula)}."""'.replace("\\", "\\\\")
            yield from marked([f"    return {tidy(text)}"], formula.line)
        if not self.declared.properties and self.names.outputs:
            outputs = self.names.variables.get("outputs")
            log = outputs is not None and outputs.element is not None and outputs.element.name == "list"
            test = "x[: len(y)] == y[: len(x)]" if log else "x == y"
            doc = "Of any two outputs one is a prefix of the other." if log else "All outputs are the same."
            loops = "for p in s[Node] for q in s[Node] for x in p.outputs for y in q.outputs"
            yield from ("", "@always", "def agreement(s: View) -> bool:", f'    """{doc}"""')
            yield f"    return all({test} {loops})"
