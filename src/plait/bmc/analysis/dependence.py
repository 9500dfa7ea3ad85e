"""Dependence of steps, and projections of a run on variables (Saissi 2019, sections 4.4.1 and 4.4.2).

Read and write sets are the exact cells that a step of the run read and wrote. The program counter of its process is in
both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.program.definition import Program, Property, ended_in, variables_of

Dependence = Callable[[Step, Step], bool]


def depends(first: Step, second: Step) -> bool:
    """Whether the second step depends on the first (Definition 3): it reads a cell that the first one writes."""
    return not first.writes.isdisjoint(second.reads)


def relevant_cells(program: Program, property_: Property) -> frozenset[Cell]:
    """F: the cells and the program counters that a property reads.

    In a program with atomic sections of several steps, F has all program counters: then no step can be omitted.
    """
    cells: set[Cell] = {(v, k) for v in variables_of(property_.condition) for k in range(v.cells)}
    if any(step.exclusive for code in program.processes for step in code.instructions):
        return frozenset(cells | set(range(len(program.processes))))
    return frozenset(cells | ended_in(property_.condition))


def projection(run: Sequence[Step], cells: Iterable[Cell], depends: Dependence = depends) -> list[int]:
    """The positions of the steps in the projection of a run on cells (Definition 4).

    From the end of the run: the projection keeps a step that writes one of the cells, or on which a later kept step
    depends.
    """
    wanted = frozenset(cells)
    kept: list[int] = []
    for i in reversed(range(len(run))):
        if not run[i].writes.isdisjoint(wanted) or any(depends(run[i], run[j]) for j in kept):
            kept.append(i)
    return kept[::-1]


def conflict(first: Step, second: Step) -> bool:
    """Whether the order of two steps matters: they access a common cell, and at least one of them writes it."""
    return not (
        first.writes.isdisjoint(second.reads)
        and first.writes.isdisjoint(second.writes)
        and first.reads.isdisjoint(second.writes)
    )


def execute(interpreter: Interpreter, state: State, steps: Iterable[Step]) -> list[Step] | None:
    """Take the same steps (processes and inputs) from a state. None: one of them is not enabled."""
    found: list[Step] = []
    for step in steps:
        taken = interpreter.step(state, step.process, step.inputs)
        if taken is None:
            return None
        found.append(taken)
        state = taken.state
    return found
