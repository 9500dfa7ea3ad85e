"""The text of a sequential program in P: the Distal text of `--to distal`, translated (`translation.py`, `ranging.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from plait.kernel.extras import needs
from plait.rounds.distal.parser import Node, Text
from plait.rounds.distal.translation import Translation
from plait.rounds.distal.value_types import BOOL, INT
from plait.rounds.emit.description import Description
from plait.rounds.emit.distal.program import distal_text
from plait.rounds.emit.p.ranging import Ranging

with needs("rounds"):
    from lark import Token

_HEAD = """\
// {title}
//
// Made by `plait rounds emit {origin} --to p`. One machine runs all processes; their variables are sequences.
// In each round:
//   SEND    one process after another runs actions whose messages belong to this round, or none of them
//   UPDATE  one process after another runs handlers on messages of this round; messages that it does not take are lost
// States with dead_ are none of the program. An assertion of round_based fails if the protocol is not round-based.
// Check it with `plait check FILE`, or with the P checker: the test is tcSequential.{reachable}
"""


def p_text(described: Description) -> str:
    """The text of the file."""
    text = Text(distal_text(described), "the sequential program")
    translation = Translation(text, "sequential")
    translation.module()  # infers the types of variables
    return _Program(described, translation).text()


class _Program(Ranging):
    """Writes one program."""

    def __init__(self, described: Description, translation: Translation) -> None:
        super().__init__(translation)
        self.described = described

    def text(self) -> str:
        """The whole text."""
        names, declared = self.names, self.declared
        wanted = [str(node.token(1)) for node in declared.properties if node.token(0) == "reachable"]
        told = f"\n// It says nothing about what is reachable: {', '.join(wanted)}." if wanted else ""
        lines = _HEAD.format(title=self.described.title, origin=self.described.origin, reachable=told).splitlines()
        lines.append("")
        for record, fields in names.records.items():
            lines.append(
                f"type {record} = ({', '.join(f'{self.field(f)}: {self.type(kind)}' for f, kind in fields.items())});"
            )
        lines += ["", "event eStep;", "", "machine Main {"]
        variables = {name: kind for name, kind in names.variables.items() if name in names.live}
        steps = [upon for upon in declared.upons if upon.timer is not None]
        lines += [
            f"  var {name}: {self.type(kind)};" for name, kind in variables.items() if not name.startswith("timeout_")
        ]
        lines += [
            "",
            "  start state Run {",
            "    entry {",
            "      Init();",
            "      Check();",
            "      send this, eStep;",
            "    }",
        ]
        lines += ["    on eStep do {", "      var enabled: seq[int];", "      var step: int;"]
        for number, upon in enumerate(steps):
            lines += [
                f"      if (Can_{upon.timer}()) {{",
                f"        enabled += (sizeof(enabled), {number});",
                "      }",
            ]
        lines += ["      if (sizeof(enabled) == 0) {", "        return;", "      }", "      step = choose(enabled);"]
        for number, upon in enumerate(steps):
            lines += [f"      if (step == {number}) {{", f"        Do_{upon.timer}();", "      }"]
        lines += ["      Check();", "      send this, eStep;", "    }", "  }"]
        bodies = [self._action("Init", declared.init)]
        for upon in steps:
            guard = self.of(upon.guard, BOOL) if upon.guard is not None else "true"
            bodies += [
                [f"fun Can_{upon.timer}(): bool {{", f"  return {guard};", "}"],
                self._action(f"Do_{upon.timer}", upon.body),
            ]
        bodies.append(self._check())
        bodies += [self._function(name) for name in names.functions if name in declared.own]
        for constant, node in declared.computed.items():
            kind = names.constants[constant]
            bodies.append([f"fun k_{constant}(): {self.type(kind)} {{", f"  return {self.of(node, kind)};", "}"])
        for body in [*bodies, *self.functions.values()]:
            lines += ["", *(f"  {line}" for line in body)] if body else []
        return "\n".join([*lines, "}", "", "test tcSequential [main=Main]: {Main};", ""])

    def _function(self, name: str) -> list[str]:
        function = self.names.functions[name]
        self.local = dict(function.parameters)
        body = self.of(function.body, function.result)
        self.local = {}
        given = ", ".join(f"{p}: {self.type(kind)}" for p, kind in function.parameters.items())
        return [f"fun {name}({given}): {self.type(function.result)} {{", f"  return {body};", "}"]

    def _check(self) -> list[str]:
        lines = ["fun Check() {"]
        for node in self.declared.properties:
            if node.token(0) == "always":
                lines.append(f'  assert {self.of(node.node(2), BOOL)}, "{node.token(1)}";')
        return [*lines, "}"]

    # -- statements ------------------------------------------------------------------------------------------------------

    def _action(self, name: str, node: Node) -> list[str]:
        """A function that runs an action."""
        own = {str(found.token(0)) for found in node.find("assign", "put", "add")} - self.names.live
        self.local = {name: self.names.variables[name] for name in sorted(own)}
        loops = {str(found.token(0)): found for found in node.find("each")}
        lines = list(self._block(node))
        declared = {**self.local, **{loop: self._loops[loop] for loop in loops}}
        self.local = {}
        return [
            f"fun {name}() {{",
            *(f"  var {n}: {self.type(kind)};" for n, kind in declared.items()),
            *(f"  {x}" for x in lines),
            "}",
        ]

    def _block(self, node: Node) -> Iterator[str]:
        for statement in node.nodes():
            yield from getattr(self, f"_do_{statement.data}")(statement, *statement.children)

    def _do_skip(self, node: Node) -> Iterator[str]:
        yield from ()

    def _do_timer(self, node: Node, *_: object) -> Iterator[str]:
        yield from ()

    def _do_assign(self, node: Node, name: Token, value: Node) -> Iterator[str]:
        yield f"{name} = {self.of(value, self.names.variables[str(name)])};"

    def _do_put(self, node: Node, name: Token, place: Node, value: Node) -> Iterator[str]:
        kind = self.names.variables[str(name)]
        yield f"{name}[{self.of(place, INT)}] = {self.of(value, kind and kind.element)};"

    def _do_conditional(self, node: Node, condition: Node, yes: Node, no: Node | None = None) -> Iterator[str]:
        yield f"if ({self.of(condition, BOOL)}) {{"
        yield from (f"  {line}" for line in self._block(yes))
        yield "}"
        if no is not None:
            yield "else {"
            yield from (f"  {line}" for line in self._block(no))
            yield "}"

    def _do_each(self, node: Node, name: Token, domain: Node, body: Node) -> Iterator[str]:
        over, kind = self.code(domain)
        self._loops[str(name)] = self.local[str(name)] = kind and kind.element
        yield f"foreach ({name} in {over}) {{"
        yield from (f"  {line}" for line in self._block(body))
        yield "}"
