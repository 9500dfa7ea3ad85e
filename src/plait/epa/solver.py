"""The reversibility formula of Saissi 2019 (section 5.4.3) for Z3. No other file of this package uses Z3.

Each event has an integer: its time. Program order, creation, joins and barriers are inequalities. Two critical sections
of one lock are a disjunction. `decide` handles one pair of synchronisation events that vector clocks and lock closure
left open. `formula_decides` is the whole formula of Saissi 2019 with its disjunction over all dependent pairs. Tests
and benchmarks compare the fast check with it. `smtlib.py` writes the same formula for other solvers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from plait.epa.events import Event, Section, structure
from plait.kernel.deadline import interruptible
from plait.kernel.extras import needs

with needs("epa"):
    import z3  # type: ignore[import-untyped]


class Answer(NamedTuple):
    """Whether the order can be reversed (None: Z3 did not decide in time), and a schedule that reverses it."""

    reversible: bool | None
    schedule: list[int] | None = None


def decide(
    threads: Sequence[int],
    before: Sequence[Sequence[int]],
    sections: Sequence[Section],
    early: int,
    late: int,
    *,
    timeout: float = 60.0,
) -> Answer:
    """Whether the event `late` can occur before `early`. `threads`: the thread of each event, in observed order."""
    solver = _solver(timeout)
    times = [z3.Int(f"x{i}") for i in range(len(threads))]
    last: dict[int, int] = {}
    for i, thread in enumerate(threads):
        if thread in last:
            solver.add(times[last[thread]] < times[i])
        last[thread] = i
        solver.add(*(times[source] < times[i] for source in before[i]))
    solver.add(*_exclusions(sections, times))
    solver.add(times[late] < times[early])
    result = interruptible(solver.check, solver.ctx.interrupt)
    if result == z3.sat:
        model = solver.model()
        value = [model.eval(t, model_completion=True).as_long() for t in times]
        return Answer(True, sorted(range(len(times)), key=lambda i: (value[i], i)))
    return Answer(False if result == z3.unsat else None)


def _solver(timeout: float) -> z3.Solver:
    solver = z3.Solver()
    solver.set("timeout", int(timeout * 1000))
    solver.set("ctrl_c", False)  # Ctrl-C is for Python: Z3 would take it and answer "unknown"
    return solver


def _exclusions(sections: Sequence[Section], times: Sequence[Any]) -> list[Any]:
    """Two sections of one lock do not overlap if one of them is exclusive."""
    found = []
    for i, (lock, thread, exclusive, acquire, release) in enumerate(sections):
        for other_lock, other_thread, other_exclusive, other_acquire, other_release in sections[i + 1 :]:
            if lock != other_lock or thread == other_thread or not (exclusive or other_exclusive):
                continue
            first = times[release] < times[other_acquire] if release is not None else z3.BoolVal(False)
            second = times[other_release] < times[acquire] if other_release is not None else z3.BoolVal(False)
            if release is not None or other_release is not None:
                found.append(z3.Or(first, second))
    return found


def formula_decides(steps: Sequence[Event], *, benign_same_value: bool = False, timeout: float = 600.0) -> bool | None:
    """Whether the formula Φ ∧ R is satisfiable: two dependent events can occur in reversed order."""
    times = [z3.Int(f"x{i}") for i in range(len(steps))]
    solver = _solver(timeout)
    edges, sections = structure(steps)
    solver.add(*(times[a] < times[b] for a, b in edges))
    solver.add(*_exclusions(sections, times))
    reversed_pairs = []
    for j, late in enumerate(steps):
        for i in range(j):
            if steps[i].depends(late, benign_same_value=benign_same_value):
                reversed_pairs.append(times[j] <= times[i])
    if not reversed_pairs:
        return False
    solver.add(z3.Or(reversed_pairs))
    result = interruptible(solver.check, solver.ctx.interrupt)
    return None if result == z3.unknown else bool(result == z3.sat)
