"""Projections of a run on variables (Saissi 2019, sections 4.4.1 and 4.4.2): who depends on whom, and what that leaves.

Read and write sets are those of the steps as they were taken, cell by cell; the program counter of its process is in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.language.program import Program, Property, ended_in, variables_of

Dependence = Callable[[Step, Step], bool]


def depends(first: Step, second: Step) -> bool:
    """Whether the second step depends on the first (Definition 3): it reads what that writes."""
    return not first.writes.isdisjoint(second.reads)


def relevant_cells(program: Program, property_: Property) -> frozenset[Cell]:
    """F: the cells of the variables, and the program counters, that a property reads."""
    cells: set[Cell] = {(v, k) for v in variables_of(property_.condition) for k in range(v.cells)}
    return frozenset(cells | ended_in(property_.condition))


def projection(run: Sequence[Step], cells: Iterable[Cell], depends: Dependence = depends) -> list[int]:
    """The places of the steps that are in the projection of a run on cells (Definition 4).

    From the end: a step is in it if it writes one of the cells, or if a later one that is in it depends on it.
    """
    wanted = frozenset(cells)
    kept: list[int] = []
    for i in reversed(range(len(run))):
        if not run[i].writes.isdisjoint(wanted) or any(depends(run[i], run[j]) for j in kept):
            kept.append(i)
    return kept[::-1]


def conflict(first: Step, second: Step) -> bool:
    """Whether the order of two steps matters to somebody: they touch a common cell, and one writes it."""
    return not (
        first.writes.isdisjoint(second.reads)
        and first.writes.isdisjoint(second.writes)
        and first.reads.isdisjoint(second.writes)
    )


def execute(interpreter: Interpreter, state: State, steps: Iterable[Step]) -> list[Step] | None:
    """Take the same steps (processes and inputs) from a state; None if one of them is not enabled."""
    found: list[Step] = []
    for step in steps:
        taken = interpreter.step(state, step.process, step.inputs)
        if taken is None:
            return None
        found.append(taken)
        state = taken.state
    return found
