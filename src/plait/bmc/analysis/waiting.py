"""Deadlock: a state in which processes wait for each other, as an expression."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from plait.bmc.analysis.preconditions import FALSE, both, either, enabled
from plait.bmc.program.arithmetic import negate, operation
from plait.bmc.program.definition import At, Constant, Ended, Expr, Instruction, Not, ProcessCode, Program

MOST_CIRCLES = 1000
"""If there are more circles of processes, the formula has no long ones. Enumeration finds circles of any length."""


def deadlocked(program: Program) -> Expr:
    """Whether a state is a deadlock. No process can continue, and one that is required has not ended; or
    processes wait for each other in a circle, whatever the others do (see `circular`).

    In the first case, every process has ended, or is not started (a spawned process whose first step is not enabled),
    or it waits: its step is not enabled and `waits`. A process also waits while another one is in an atomic section. At
    least one required process has started and not ended.

    >>> from plait.bmc import parse_program
    >>> deadlocked(parse_program("int x = 0; process p { x = 1; }"))
    Constant(value=False)
    """
    if not any(step.waits for code in program.processes for step in code.instructions):
        return FALSE
    resting = [_rests(program, p, code) for p, code in enumerate(program.processes)]
    missing = [
        both(Not(Ended(p)), negate(_unstarted(p, code))) for p, code in enumerate(program.processes) if code.required
    ]
    # The cheap conditions come first: most states are decided by them.
    return either([circular(program), both(either(missing), *resting)])


def circular(program: Program) -> Expr:
    """Whether processes wait for each other in a circle, each for a lock that the next one holds. A process that waits
    for its own lock is a circle of one.

    Only the owner of such a lock can release it. So these processes never continue.
    """
    locking = {
        p: steps
        for p, code in enumerate(program.processes)
        if (steps := [step for step in code.instructions if step.owner is not None])
    }
    alone = [
        both(At(p, step.location), _held(step, p), negate(enabled(step)))
        for p, steps in locking.items()
        for step in steps
    ]
    waits_for = {
        (p, q): either([both(At(p, step.location), _held(step, q)) for step in steps])
        for p, steps in locking.items()
        for q in locking
        if p != q
    }
    # Each process of a circle waits for another lock.
    locks = sum(v.cells for v in {step.owner.variable for steps in locking.values() for step in steps if step.owner})
    together = [
        both(*(waits_for[p, q] for p, q in zip(circle, (*circle[1:], circle[0]), strict=True)))
        for circle in _circles(list(locking), locks)
    ]
    return either([*alone, *together])


def _circles(processes: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """All circles of two to `most` processes, as long as these are few enough for a formula."""
    count = 0
    for length in range(2, min(most, len(processes)) + 1):
        count += math.perm(len(processes), length) // length
        if length > 2 and count > MOST_CIRCLES:
            return
        for first, *others in itertools.combinations(processes, length):
            yield from ((first, *order) for order in itertools.permutations(others))


def _held(step: Instruction, process: int) -> Expr:
    """Whether a process holds the lock that a step waits for."""
    assert step.owner is not None
    return operation("==", step.owner, Constant(process + 1))


def _unstarted(p: int, code: ProcessCode) -> Expr:
    if not code.spawned or not code.instructions:
        return FALSE
    return both(At(p, 0), negate(enabled(code.instructions[0])))


def _rests(program: Program, p: int, code: ProcessCode) -> Expr:
    """Whether a process has ended, is not started, or waits."""
    waiting = [
        both(At(p, step.location), negate(enabled(step)))
        for step in code.instructions
        if step.waits and not (code.spawned and step.location == 0)
    ]
    others = [
        At(q, step.location)
        for q, other in enumerate(program.processes)
        for step in other.instructions
        if step.exclusive and q != p
    ]
    excluded = both(either(others), Not(At(p, code.stuck)))
    return either([Ended(p), _unstarted(p, code), *waiting, excluded])
