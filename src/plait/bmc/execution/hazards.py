"""Deadlocks and data races of a state, by definition: what the threads wait for, and which accesses conflict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.program.definition import Instruction, Value, Variable
from plait.kernel.errors import UsageError


class Race(NamedTuple):
    """Two processes whose next steps access the same cell, and whether each of them writes it."""

    processes: tuple[int, int]
    cell: tuple[Variable, int]
    writes: tuple[bool, bool]


def next_instruction(interpreter: Interpreter, state: State, process: int) -> Instruction | None:
    """The next step of a process, enabled or not. None: it has ended, or it is stuck after a failed check."""
    code = interpreter.program.processes[process]
    at = state.locations[process]
    return code.instructions[at] if at < code.end else None


def next_steps(interpreter: Interpreter, state: State, process: int) -> Iterator[Step]:
    """The enabled steps of a process, one for each choice of the environment."""
    step = next_instruction(interpreter, state, process)
    if step is None:
        return
    choices: Iterator[Sequence[Value]]
    try:
        choices = iter(list(interpreter.inputs(state, process)))
    except UsageError:
        # Any number: one is enough to know what the step accesses.
        choices = iter([[False if domain.kind == "bool" else domain.low or 0 for domain in step.inputs]])
    for inputs in choices:
        taken = interpreter.step(state, process, inputs)
        if taken is not None:
            yield taken


def waiting(interpreter: Interpreter, state: State) -> list[int]:
    """The processes that wait forever, if the state is a deadlock; else none.

    In a deadlock, every process has ended, was never started, or waits, perhaps for another one to leave an atomic
    section; and a process waits without which the program is not over. Or processes wait for each other's locks in a circle.
    """
    return _all_waiting(interpreter, state) or _circle(interpreter, state)


def _circle(interpreter: Interpreter, state: State) -> list[int]:
    """Processes that wait for each other in a circle, each for a lock that the next one holds; else none."""
    holders: dict[int, int] = {}
    for process in range(len(interpreter.program.processes)):
        step = next_instruction(interpreter, state, process)
        if step is not None and step.owner is not None:
            holder = int(interpreter.evaluate(step.owner, state)) - 1
            if holder >= 0 and not any(True for _ in next_steps(interpreter, state, process)):
                holders[process] = holder
    for process in holders:
        circle = [process]
        while (following := holders.get(circle[-1])) is not None and following not in circle:
            circle.append(following)
        if following == process:
            return sorted(circle)
    return []


def _all_waiting(interpreter: Interpreter, state: State) -> list[int]:
    found = []
    for process, code in enumerate(interpreter.program.processes):
        step = next_instruction(interpreter, state, process)
        if any(True for _ in next_steps(interpreter, state, process)):
            return []
        if state.locations[process] == code.end or (code.spawned and state.locations[process] == 0):
            continue
        if step is None or (not step.waits and interpreter.ready(state, process)):
            return []
        found.append(process)
    needed = any(interpreter.program.processes[process].required for process in found)
    return found if needed else []


def races(interpreter: Interpreter, state: State) -> Iterator[Race]:
    """The conflicting accesses that are possible in a state at the same time."""
    program = interpreter.program
    ready: list[tuple[int, Instruction, set[Cell], set[Cell]]] = []
    for process in range(len(program.processes)):
        step = next_instruction(interpreter, state, process)
        taken = list(next_steps(interpreter, state, process))
        if step is not None and taken:
            reads = set().union(*(t.reads for t in taken))
            writes = set().union(*(t.writes for t in taken))
            ready.append((process, step, reads | writes, writes))
    for number, (p, first, used, written) in enumerate(ready):
        for q, second, others, changed in ready[number + 1 :]:
            if first.synchronizes and second.synchronizes:
                continue
            both = ((used & changed) | (written & others)) - set(range(len(program.processes)))
            for cell in sorted(both, key=_order):
                if not isinstance(cell, int) and cell[0].process is None and not cell[0].hidden:
                    yield Race((p, q), cell, (cell in written, cell in changed))


def _order(cell: Cell) -> tuple[str, int]:
    return ("", cell) if isinstance(cell, int) else (cell[0].name, cell[1])
