"""Deadlock: a state in which processes wait for each other, as an expression."""

from __future__ import annotations

from plait.bmc.analysis.preconditions import FALSE, both, either, enabled
from plait.bmc.program.arithmetic import negate
from plait.bmc.program.definition import At, Ended, Expr, Not, ProcessCode, Program


def deadlocked(program: Program) -> Expr:
    """Whether a state is a deadlock. No process can continue, and one that is required has not ended.

    Every process has ended, or is not started (a spawned process whose first step is not enabled), or it waits: its
    step is not enabled and `waits`. A process also waits while another one is in an atomic section. At least one
    required process has started and not ended.

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
    return both(either(missing), *resting)


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
