"""The phase structure and the rounds of a protocol as readable Python (Sequentialization, sections 4.3 and 4.4).

UNFOLD (Fig. 9) nests the handlers, once per round of a phase: after one of them, only handlers of a later round can
run. The others are dead code there. Then each round is cut out (Fig. 10): its SEND part has the sends of earlier rounds
for it, guarded by a flag; its UPDATE part has the reactions to its messages.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from plait.kernel.errors import UsageError
from plait.kernel.verdict import PhaseStructure, RoundHandler
from plait.model.process import Process
from plait.model.system import System
from plait.rounds.calendar import Calendar
from plait.rounds.text.upon import Upon, sends, upons

_INDENT = "    "


def structure_text(system: System) -> str:
    """The phase structure and the rounds, class by class."""
    Calendar(system)
    if not system.processes:
        raise UsageError(f"{system.name} has no processes", hint="give a model with processes")
    parts = []
    for cls in dict.fromkeys(system.classes):
        found = upons(system, cls, "action", "message")
        live, dead = _count(system, found)
        parts += [
            f"# {cls.__name__}: the phase structure ({_count_of(system)}, unfolded once per round; "
            f"{live} of {live + dead} copies of handlers can run)",
            "while True:",
            *_unfolded(system, found, -1, 1),
            "",
            "",
            f"# {cls.__name__}: the rounds",
            *_rounds(system, cls, found),
        ]
    return "\n".join(parts).rstrip() + "\n"


def phase_structure(system: System) -> PhaseStructure:
    """The rounds of a phase and the handlers, for a picture."""
    Calendar(system)
    handlers = [
        RoundHandler(cls.__name__, upon.name, upon.takes, list(upon.sends), upon.handler.kind == "init")
        for cls in dict.fromkeys(system.classes)
        for upon in upons(system, cls, "init", "action", "message")
    ]
    return PhaseStructure(list(system.rounds), handlers)


def _alive(found: list[Upon], context: int) -> list[Upon]:
    """The handlers that can run later in a phase: messages of an earlier round are stale, and must not be sent."""
    return [u for u in found if u.clock > context]


def _count(system: System, found: list[Upon]) -> tuple[int, int]:
    """The number of copies of handlers that stay, and of those that dead-code elimination removes."""
    live = dead = 0
    pending = [(-1, 1)]
    while pending:
        context, height = pending.pop()
        if height > len(system.rounds):
            continue
        stay = _alive(found, context) if height > 1 else found
        live, dead = live + len(stay), dead + len(found) - len(stay)
        pending += [(u.ends, height + 1) for u in stay if u.ends >= 0]
    return live, dead


def _unfolded(system: System, found: list[Upon], context: int, height: int) -> list[str]:
    """One iteration of the loop: new messages, then the handlers that can run, each with the next iteration in it."""
    pad = _INDENT * height
    stay = _alive(found, context) if height > 1 else found
    if height > len(system.rounds) or not stay:
        return [f"{pad}continue  # with the next phase"]
    lines = [f"{pad}mbox = havoc()"]
    for number, upon in enumerate(stay):
        lines.append(f"{pad}{'elif' if number else 'if'} {upon.guard}:  # {upon.name}{_about(system, upon)}")
        lines += _indented(upon.body, height + 1)
        if upon.takes is None and not upon.sends:
            continue
        if upon.leaves:
            lines.append(f"{pad}{_INDENT}# if it sends for the next phase, the next phase begins")
        lines += _unfolded(system, found, upon.ends, height + 1)
    return lines


def _about(system: System, upon: Upon) -> str:
    takes = f", takes {system.rounds[upon.takes]}" if upon.takes is not None else ""
    made = f", sends {', '.join(system.rounds[r] for r in upon.sends)}" if upon.sends else ""
    return takes + made


def _indented(body: list[ast.stmt], height: int) -> list[str]:
    text = "\n".join(ast.unparse(statement) for statement in body)
    return [_INDENT * height + line for line in text.splitlines()]


def _rounds(system: System, cls: type[Process], found: list[Upon]) -> Iterator[str]:
    for upon in upons(system, cls, "init"):
        yield f"def {upon.name}(self):  # before the first phase"
        yield from _updated(system, cls, upon)
        yield ""
        found = [upon, *found]
    for number, name in enumerate(system.rounds):
        yield f"def {_snake(name)}_send(self):  # SEND of round {name}"
        lines = [line for upon in found if number in upon.sends for line in _sent(system, cls, upon, number)]
        yield from lines or [f"{_INDENT}pass"]
        yield ""
        yield f"def {_snake(name)}_update(self, mbox):  # UPDATE of round {name}"
        lines = []
        for upon in found:
            if upon.takes == number:
                lines.append(f"{_INDENT}{'elif' if lines else 'if'} {upon.guard}:  # {upon.name}")
                if upon.argument is not None:
                    lines.append(f"{_INDENT * 2}{upon.argument} = mbox.chosen")
                lines += [_INDENT + line for line in _updated(system, cls, upon)]
        yield from lines or [f"{_INDENT}pass"]
        yield ""
    silent = [upon for upon in found if upon.handler.kind == "action" and not upon.sends]
    if silent:
        yield "def any_time(self):  # in each SEND part, and after a receipt: steps that send nothing"
        for upon in silent:
            yield f"{_INDENT}if {upon.guard}:  # {upon.name}, or not"
            yield from _indented(upon.body, 2)
        yield ""


def _sent(system: System, cls: type[Process], upon: Upon, number: int) -> Iterator[str]:
    """What a handler adds to the SEND part of a round."""
    if upon.handler.kind == "action":
        yield f"{_INDENT}if {upon.guard}:  # {upon.name}, or not"
        yield from _indented(upon.body, 2)
        return
    phase = " in the previous phase" if upon.takes is not None and number <= upon.takes else ""
    flag, kept = f"self.f_{upon.name}", _kept(system, cls, upon)
    yield f"{_INDENT}if {flag}:  # {upon.name} has run{phase}"
    if kept:
        yield f"{_INDENT * 2}{kept} = {flag}"
    yield from _indented(_cut(system, cls, upon.body, number, keep=True) or [ast.Pass()], 2)
    if number == max(upon.sends):
        yield f"{_INDENT * 2}{flag} = False"


def _updated(system: System, cls: type[Process], upon: Upon) -> list[str]:
    """What a handler does except sending. The flag says that it ran, and keeps what its sends need."""
    rest = _cut(system, cls, upon.body, None, keep=False)
    lines = _indented(rest, 1)
    if upon.sends:
        lines.append(f"{_INDENT}self.f_{upon.name} = {_kept(system, cls, upon) or 'True'}")
    return lines or [f"{_INDENT}pass"]


def _kept(system: System, cls: type[Process], upon: Upon) -> str:
    """The arguments and local variables of a handler that its sends need: `(m, bit)`."""
    local = {upon.argument} | {name for node in upon.body for name in _names(node, ast.Store)}
    needed: set[str] = set()
    for number in upon.sends:
        for part in _cut(system, cls, upon.body, number, keep=True):
            needed |= _names(part, ast.Load) - _names(part, ast.Store)
    names = sorted(needed & local)
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})" if names else ""


def _names(node: ast.AST, use: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, use)}


def _count_of(system: System) -> str:
    return "1 round" if len(system.rounds) == 1 else f"{len(system.rounds)} rounds"


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name)).replace(" ", "_")


class _Cutter(ast.NodeTransformer):
    """Keeps the statements that send (in a round), or the others."""

    def __init__(self, system: System, cls: type[Process], number: int | None, keep: bool) -> None:
        self._system, self._cls, self._number, self._keep = system, cls, number, keep

    def _sends(self, node: ast.AST) -> bool:
        rounds = set(sends(node, self._cls, self._system))
        return bool(rounds) if self._number is None else self._number in rounds

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                kept = [self.statement(s) for s in value]
                rest: list[ast.stmt] = [s for s in kept if s is not None]
                setattr(node, field, rest or ([ast.Pass()] if field == "body" else []))
        return node

    def statement(self, node: ast.stmt) -> ast.stmt | None:
        """The statement, what is left of it, or nothing."""
        if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try):
            if self._keep and not self._sends(node):
                return None
            self.generic_visit(node)
            empty = isinstance(node, ast.If) and not node.orelse and isinstance(node.body[0], ast.Pass)
            return None if empty else node
        return node if self._sends(node) == self._keep else None


def _cut(system: System, cls: type[Process], body: list[ast.stmt], number: int | None, *, keep: bool) -> list[ast.stmt]:
    cutter = _Cutter(system, cls, number, keep)
    found = [cutter.statement(copy.deepcopy(statement)) for statement in body]
    return [statement for statement in found if statement is not None]
