"""The text of a sequential program in Distal: Algorithm 1, as upons of one process.

Each step of the program is an upon of a timeout with a name, so the order in the text decides nothing. A step that does
not belong to the round of the program (an action that sends in another round) sets `dead_`; such states are no states of
the program. A step that breaks a condition of section 4.2 sets `broken_`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.rounds.distal.declarations import Upon
from plait.rounds.distal.layout import formatted
from plait.rounds.distal.module import text_of
from plait.rounds.distal.parser import Node, Text
from plait.rounds.distal.translation import Translation
from plait.rounds.distal.value_types import INT, ValueType
from plait.rounds.emit.description import Description
from plait.rounds.emit.distal.rewriting import Rewriting, indented

_HEAD = """\
// {title}
//
// Made by `plait rounds emit {origin} --to distal`. One process runs all processes; their variables are lists.
// In each round:
//   SEND    one process after another runs actions whose messages belong to this round, or none of them
//   UPDATE  one process after another runs upons on messages of this round; messages that it does not take are lost
// States with dead_ are none of the program. round_based is violated if the protocol is not round-based.

"""


def distal_text(described: Description) -> str:
    """The text of the file."""
    system = described.system
    module = sys.modules[system.classes[0].__module__]
    file = getattr(module, "__file__", None) or ""
    if not file.endswith(".distal"):
        raise ModelError(
            f"{system.name} is not written in Distal, which --to distal needs",
            hint="give a FILE.distal, or use --to python",
        )
    if not described.assumed.free:
        raise ModelError(
            f"--assume {described.assumed}: --to distal supports no network assumption",
            hint="use --to python or --to c",
        )
    return _Program(described, Translation(Text(text_of(Path(file)), file), system.name)).text()


class _Program:
    """Writes one program."""

    def __init__(self, described: Description, translation: Translation) -> None:
        translation.module()  # infers the types of variables
        self.described, self.translation = described, translation
        self.names, self.declared = translation.names, translation.declared
        if self.names.spare is not None or self.names.rounds:
            what = "processes that are created" if self.names.spare is not None else "rounds that are fields"
            raise ModelError(f"{described.system.name}: --to distal does not support {what}", hint="use --to python")
        self.values = vars(described.system.processes[0])
        self.numbers = {name: number for number, name in enumerate(described.rounds, 1)}
        places = {name: self._place(name) for name in self.names.messages}
        self.rewriting = Rewriting(self.names, self.declared.text, places)
        for upon in self.declared.upons:
            if upon.outer is not None or upon.timer is not None:
                raise self.rewriting.refuse(upon.node, "nested upons, and timeouts with names")

    def _place(self, message: str) -> str:
        """The number of the round of the message sent_, counted through all phases."""
        if message not in self.numbers:
            return "last_ + 1"
        phase = self.declared.phases.get(message)
        return f"(sent_{message}.{phase} - 1) * {len(self.numbers)} + {self.numbers[message]}"

    def text(self) -> str:
        """The whole text, laid out."""
        described = self.described
        steps = [line for upon in self.declared.upons for line in self._steps(upon)]
        names = [line.split("(")[1].split(")")[0] for line in steps if line.startswith("upon timeout(")]
        lines = [*self._declarations(), "", "init", *indented(self._init([*names, "next"])), "while true do"]
        lines += indented([*steps, *self._next()])
        lines += ["", *self._properties()]
        head = _HEAD.format(title=described.title, origin=described.origin)
        return formatted(head + "\n".join(lines) + "\n", "the sequential program")

    # -- declarations ----------------------------------------------------------------------------------------------------

    def _declarations(self) -> list[str]:
        lines = []
        for record, fields in self.names.records.items():
            lines.append(f"type {record} = record {{ {' '.join(f'{kind} {f};' for f, kind in fields.items())} }}")
        for message, fields in self.names.messages.items():
            both = "".join(f" {kind} {f};" for f, kind in fields.items())
            lines.append(f"type {message} = record {{ int sender_;{both} }}")
            lines.append(f"type Mail{message} = record {{ int to; {message} body; }}")
        lines += ["", "constant int n = 1;", f"constant int size_ = {len(self.described.processes)};"]
        lines.append(f"constant int last_ = {self.described.last};")
        for name, kind in self.names.constants.items():
            if name != "n":
                lines.append(f"constant {kind} {name} = {_literal(self.values[name])};")
        lines.append("")
        for message in self.names.messages:
            lines.append(f"function [{message}] none_{message}() = ε;")
            lines.append(f"function [Mail{message}] no_mail_{message}() = ε;")
        for name, kind in self._variables().items():
            if kind.element is not None:
                lines.append(f"function {kind} start_{name}() = {_default(kind)};")
        for name in self.names.used:
            function = self.names.functions[name]
            if function.text is not self.declared.text:
                self.rewriting.text = function.text
            given = [f"[{function.mailbox}] got_"] if function.mailbox else []
            given += [f"{kind} l_{parameter}" for parameter, kind in function.parameters.items()]
            self.rewriting.bound = set(function.parameters)
            body = self.rewriting.expression(function.body)
            self.rewriting.bound, self.rewriting.text = set(), self.declared.text
            lines.append(f"function {function.result} f_{name}({', '.join(given)}) = {body};")
        return lines

    def _init(self, timeouts: list[str]) -> list[str]:
        every = "for i_ in [0 .. size_ - 1]"
        lines = ['turn_ = 0; place_ = 1; part_ = "send"; first_ = 0; latest_ = 0;']
        lines += ["dead_ = false; broken_ = false;", f"clock_ = [0 {every}];"]
        for name, kind in self._variables().items():
            first = f"start_{name}()" if kind.element is not None else _default(kind)
            lines.append(f"s_{name} = [{first} {every}];")
        for message in self.names.messages:
            lines.append(f"mail_{message} = no_mail_{message}(); heard_{message} = none_{message}();")
        lines += ["for p_ in [0 .. size_ - 1] do", "  turn_ = p_; latest_ = 0;"]
        lines += indented(self.rewriting.action(self.declared.init))
        lines += ["  clock_[turn_] = 2 * latest_;", "turn_ = 0; first_ = 0; latest_ = 0;"]
        return [*lines, *(f"start timeout({name});" for name in timeouts)]

    def _variables(self) -> dict[str, ValueType]:
        """The variables of a process, with their types."""
        found = {name: kind or INT for name, kind in self.names.variables.items() if name in self.names.live}
        if self.names.outputs:
            found["outputs"] = self.names.variables.get("outputs") or ValueType("list", INT)
        return found

    # -- the steps of the protocol ---------------------------------------------------------------------------------------

    def _steps(self, upon: Upon) -> list[str]:
        if upon.message is None:
            return self._action(upon)
        lines = self._on(upon)
        if upon.until:  # it may also run with no messages, in the round in which it sends
            conditions = [c for c in self._conditions(upon)[0] if c]
            body = [f"{self._got(upon)} = none_{upon.message}();", *self._body(upon)]
            lines += self._sending(f"{upon.name}_alone", conditions, body)
        return lines

    def _conditions(self, upon: Upon, message: str = "x_") -> tuple[list[str], list[str], list[str]]:
        """What is asked of the process, of each message, and of all messages."""
        mine: list[str] = []
        each: list[str] = []
        all_: list[str] = []
        self.rewriting.message = message
        for part in upon.conjuncts:
            where = all_ if _uses(part, self.names, mailbox=True) else each if _uses(part, self.names) else mine
            where.append(self.rewriting.condition(part))
        self.rewriting.message = "msg_"
        return mine, each, all_

    def _action(self, upon: Upon) -> list[str]:
        mine = self._conditions(upon)[0]
        index = self.declared.upons.index(upon)
        for earlier in self.declared.upons[:index]:
            if earlier.message is None:
                mine.append(f"¬({_and(self._conditions(earlier)[0])})")
        return self._sending(upon.name, mine, self.rewriting.action(upon.body))

    def _got(self, upon: Upon) -> str:
        return f"got_{upon.message}"

    def _body(self, upon: Upon) -> list[str]:
        """The action of an upon."""
        self.rewriting.message, self.rewriting.got = f"msg_{upon.message}", self._got(upon)
        made = self.rewriting.action(upon.body)
        self.rewriting.message, self.rewriting.got = "msg_", "got_"
        return made

    def _sending(self, name: str, conditions: list[str], body: list[str]) -> list[str]:
        """An action: in the SEND part of the round in which it sends; if it sends nothing, in every part."""
        return [
            f"upon timeout({name}) with {_and(['¬dead_', *conditions])} do",
            *indented([f"start timeout({name});", "first_ = 0; latest_ = 0;", *body]),
            '  if first_ > 0 ∧ (part_ ≠ "send" ∨ (first_ ≠ place_ ∧ (first_ ≤ last_ ∨ place_ ≤ last_))) then',
            "    dead_ = true;",
            *indented(_CLOCK),
        ]

    def _on(self, upon: Upon) -> list[str]:
        """The steps of an upon that takes messages."""
        kind = str(upon.message)
        boxed = self.translation.mailboxes.get(kind, [])
        if len(boxed) > 1:
            raise self.rewriting.refuse(upon.node, f"several upons {kind} that read the mailbox")
        mine, each, all_ = self._conditions(upon)
        for earlier in self.declared.upons[: self.declared.upons.index(upon)]:
            if earlier.message == kind:
                before, of_m, _ = self._conditions(earlier)
                few = f"({self._quorum(earlier)}) <= 1" if earlier.times is not None else "true"
                each.append(f"¬({_and([few, *before, *of_m])})")
        got, msg = self._got(upon), f"msg_{kind}"
        matching = f"[x_ for x_ in heard_{kind} with {_and(each)}]"
        if upon.times is None and not boxed:
            found, taken = matching, [f"{msg} = choose({{0}});", f"{got} = [{msg}];"]
        elif boxed:
            least = "0 <= length(t_)" if upon.until else f"length(t_) >= {self._quorum(upon)}"
            tests = [least, *(test.replace("got_", "t_") for test in all_)]
            found, taken = f"[t_ for t_ in subsets({matching}) with {_and(tests)}]", [f"{got} = choose({{0}});"]
            taken += [f"{msg} = {got}[0];"] if _uses(upon.body, self.names) and not upon.until else []
        else:
            read = sorted({str(part.token(1)) for part in upon.body.find("access") if _is_m(part.node(0))})
            agree = [f"(forall y_ in t_: y_.{field} = t_[0].{field})" for field in read]
            found = f"[t_ for t_ in subsets_of({matching}, {self._quorum(upon)}) with {_and(agree)}]"
            taken = [f"{got} = choose({{0}});", *([f"{msg} = {got}[0];"] if read else [])]
        here = f'part_ = "update" ∧ (place_ - 1) mod {len(self.numbers)} = {self.numbers[kind] - 1}'
        body = [
            f"start timeout({upon.name});",
            "first_ = 0; latest_ = 0;",
            *(line.replace("{0}", found) for line in taken),
            f"heard_{kind} = [x_ for x_ in heard_{kind} with ¬(x_ in {got})];",
            f"if length({got}) > 0 then",
            "  broken_ = broken_ ∨ clock_[turn_] > 2 * place_ + 1;",
            "  clock_[turn_] = max(clock_[turn_], 2 * place_ + 1);",
            *self._body(upon),
            "if first_ > 0 ∧ first_ ≤ place_ then",
            f"  dead_ = length({got}) = 0; broken_ = broken_ ∨ length({got}) > 0;",
            *_CLOCK,
        ]
        guard = _and([here, "¬dead_", *mine, f"length({found}) > 0"])
        return [f"upon timeout({upon.name}) with {guard} do", *indented(body)]

    def _quorum(self, upon: Upon) -> str:
        times = upon.times
        if times is None:
            return "1"
        if times.data == "binary" and times.children[1] == "/":
            one, other = self.rewriting.expression(times.node(0)), self.rewriting.expression(times.node(2))
            return f"({one} div {other} + 1)"
        text = self.rewriting.expression(times)
        return f"({text})" if upon.exactly else f"({text} + 1)"

    def _next(self) -> list[str]:
        """The end of a turn. When a turn of UPDATE begins, the process hears the messages of the round."""
        rounds = len(self.numbers)
        lines = [
            'upon timeout(next) with part_ ≠ "end" ∧ ¬dead_ do',
            "  start timeout(next);",
            *(f"  heard_{message} = none_{message}();" for message in self.numbers),
            "  if turn_ + 1 < size_ then",
            "    turn_ = turn_ + 1;",
            "  else",
            "    turn_ = 0;",
            '    if part_ = "update" then',
            '      part_ = "send"; place_ = place_ + 1;',
            "    else",
            '      part_ = if place_ ≤ last_ then "update" else "end";',
            '  if part_ = "update" then',
        ]
        for message, number in self.numbers.items():
            phase = self.declared.phases.get(message)
            same = f" ∧ x_.body.{phase} = (place_ - 1) div {rounds} + 1" if phase else ""
            mine = f"x_.to = turn_{same}"
            lines += [
                f"    if (place_ - 1) mod {rounds} = {number - 1} then",
                f"      heard_{message} = [x_.body for x_ in mail_{message} with {mine}];",
                f"      mail_{message} = [x_ for x_ in mail_{message} with ¬({mine})];",
            ]
        return lines

    def _properties(self) -> list[str]:
        lines = ["always round_based: forall run_: run_.dead_ or not run_.broken_;"]
        self.rewriting.processes = {"run_"}
        for node in self.declared.properties:
            kind, name = node.token(0), node.token(1)
            formula = self.rewriting.condition(node.node(2))
            if kind == "always":
                lines.append(f"always {name}: forall run_: run_.dead_ or {formula};")
            else:
                lines.append(f"reachable {name}: exists run_: not run_.dead_ and {formula};")
        if not self.declared.properties and self.names.outputs:
            kind_ = self.names.variables.get("outputs")
            log = kind_ is not None and kind_.element is not None and kind_.element.name == "list"
            test = "prefix(x_, y_) or prefix(y_, x_)" if log else "x_ = y_"
            pairs = "forall p_ in run_.s_outputs: forall q_ in run_.s_outputs: forall x_ in p_: forall y_ in q_: "
            lines.append(f"always agreement: forall run_: run_.dead_ or ({pairs}{test});")
        return lines


_CLOCK = [
    "if latest_ > last_ ∧ clock_[turn_] > 2 * last_ + 1 ∧ 2 * latest_ > clock_[turn_] then",
    "  dead_ = true;",
    "clock_[turn_] = max(clock_[turn_], 2 * latest_);",
    "first_ = 0; latest_ = 0;",
]
"""After a step. A process that is past the last phase does not go on to another round."""


def _and(parts: list[str]) -> str:
    return " ∧ ".join(f"({part})" for part in parts) or "true"


def _is_m(node: Node) -> bool:
    return node.data == "name" and node.children[0] == "m"


def _uses(node: Node, names: Any, *, mailbox: bool = False) -> bool:
    """Whether an expression or an action uses m, or the mailbox."""
    if node.data == "mailbox":
        return mailbox
    if mailbox and node.data == "call":
        function = names.functions.get(str(node.token(0)))
        if function is not None and function.mailbox is not None:
            return True
    if not mailbox and node.data == "access" and _is_m(node.node(0)):
        return True
    return any(_uses(part, names, mailbox=mailbox) for part in node.nodes())


def _literal(value: object) -> str:
    """A value as Distal writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Pid):
        return f"process({value.index})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_literal, value)))}}}"
    return str(value)


def _default(kind: ValueType) -> str:
    """The value of a variable before it is assigned."""
    known = {"int": "0", "bool": "false", "text": '""', "list": "ε", "set": "{}", "pid": "nobody"}
    return known.get(kind.name, "none")
