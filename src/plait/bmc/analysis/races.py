"""Data races: a state in which two processes access the same cell next, as an expression.

Both steps are enabled, at least one of them writes the cell, and at least one is not a synchronization. The accesses of
a process to a variable are grouped by their kind. So the expression grows with the number of locations, not with the
number of pairs of locations.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from plait.bmc.analysis.preconditions import FALSE, TRUE, both, effects, either
from plait.bmc.program.arithmetic import operation
from plait.bmc.program.definition import At, Choice, Expr, Instruction, Not, Program, Variable, accesses


class AccessKind(NamedTuple):
    """A kind of access: a write or a read, plain or a synchronization; for arrays, the n-th one of its step."""

    writes: bool
    plain: bool
    number: int

    def conflicts(self, other: AccessKind) -> bool:
        """Whether two accesses of these kinds are a race, if the cells are the same."""
        return (self.writes or other.writes) and (self.plain or other.plain)


class Port(NamedTuple):
    """The accesses of one kind of a process to a variable."""

    when: Expr
    at: Expr | None
    """The index."""


def racing(program: Program) -> Expr:
    """Whether a state has a data race.

    >>> from plait.bmc import parse_program
    >>> racing(parse_program("int x = 0, y = 0; process p { x = 1; } process q { y = 1; }"))
    Constant(value=False)
    """
    wanted = _wanted(program)
    ports = [_ports(code.instructions, wanted) for code in program.processes]
    found: list[Expr] = []
    for variable in (v for v in program.variables if v in wanted):
        users = [per_process[variable] for per_process in ports if variable in per_process]
        for one, two in itertools.combinations(users, 2):
            for (kind, port), (other_kind, other) in itertools.product(one.items(), two.items()):
                if kind.conflicts(other_kind):
                    found.append(both(port.when, other.when, _same(port.at, other.at)))
    inside = [
        At(p, step.location) for p, code in enumerate(program.processes) for step in code.instructions if step.exclusive
    ]
    races = either(found)
    return both(Not(either(inside)), races) if inside and races != FALSE else races


def _same(one: Expr | None, two: Expr | None) -> Expr:
    return TRUE if one is None or two is None else operation("==", one, two)


def _wanted(program: Program) -> set[Variable]:
    """The shared variables that can have a race: two processes access them, one writes, one does not synchronize."""
    users: dict[Variable, set[int]] = {}
    written: set[Variable] = set()
    plain: set[Variable] = set()
    for p, code in enumerate(program.processes):
        for step in code.instructions:
            reads, writes = accesses(step.body)
            written |= writes
            if not step.synchronizes:
                plain |= reads | writes
            for variable in reads | writes:
                users.setdefault(variable, set()).add(p)
    return {
        v for v in written & plain if len(users[v]) > 1 and v.process is None and not v.hidden
    }  # fmt: skip


def _ports(steps: tuple[Instruction, ...], wanted: set[Variable]) -> dict[Variable, dict[AccessKind, Port]]:
    """The accesses of a process, by variable and kind."""
    found: dict[Variable, dict[AccessKind, list[tuple[At, Expr, Expr | None]]]] = {}
    for step in steps:
        # While a process is inside of an atomic section, no step of another process is enabled.
        if step.exclusive or wanted.isdisjoint(set().union(*accesses(step.body))):
            continue
        here = At(step.process, step.location)
        count: dict[tuple[Variable, bool], int] = {}
        for effect in effects(step, wanted):
            for touch in effect.touches:
                key = (touch.variable, touch.writes)
                number = count.get(key, 0) if touch.at is not None else 0
                count[key] = number + 1
                kind = AccessKind(touch.writes, not step.synchronizes, number)
                accessed = (here, both(effect.enabled, touch.when), touch.at)
                found.setdefault(touch.variable, {}).setdefault(kind, []).append(accessed)
    return {v: {kind: _port(those) for kind, those in kinds.items()} for v, kinds in found.items()}


def _port(those: list[tuple[At, Expr, Expr | None]]) -> Port:
    when = either([both(here, condition) for here, condition, _ in those])
    at = those[-1][2]
    for here, _, other in reversed(those[:-1]):
        if other is not None and at is not None and other != at:
            at = Choice(here, other, at)
    return Port(when, at)
