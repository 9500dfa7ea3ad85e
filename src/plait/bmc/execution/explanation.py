"""What a run shows, in words: the violated property, what each thread waits for, the accesses that race."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from plait.bmc.execution.hazards import next_instruction, races, waiting
from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.program.definition import (
    ASSERTIONS,
    BOUNDS,
    DEADLOCK,
    DIVISION,
    LEAKS,
    LIMITS,
    LOCKS,
    MEMORY,
    OVERFLOW,
    RACES,
    Instruction,
    ProcessCode,
    Program,
    Property,
    Require,
    Value,
    Variable,
)
from plait.bmc.program.source import Place
from plait.kernel.trace import Read, Wait
from plait.kernel.values import Data, text, to_data

SHARED = "shared"
"""The lane of the shared memory."""

SENTENCES = {
    ASSERTIONS: "an assertion fails",
    BOUNDS: "an index is out of range",
    DIVISION: "a divisor is 0",
    OVERFLOW: "a signed number overflows",
    LOCKS: "a lock or another synchronization object is misused",
    MEMORY: "a pointer is not valid, or memory that was never set is read",
    LEAKS: "a thread is left behind",
    DEADLOCK: "threads wait forever",
    RACES: "two threads access the same memory at the same time, and at least one of them writes it",
    LIMITS: "the run reaches a limit of the translation",
}
"""For each built-in property, what happens in a run that violates it."""

_HEAD = re.compile(r"^(always|final|reachable)\b\s*[^\s:]*\s*:\s*")
_MOST = 12
"""The maximal number of values in an explanation."""


def shown(variable: Variable) -> bool:
    """Whether traces show a variable. An intermediate value is shown only if the trace must say how it begins."""
    return not variable.hidden and (not variable.temporary or None in variable.initial)


def name_of(program: Program, variable: Variable) -> str:
    """The name of a variable as in the program: a local without its process.

    A local of a function that is called several times has a number: `i (2)`.
    """
    name = variable.name
    if variable.process is not None:
        own = f"{program.processes[variable.process].name}."
        name = name.removeprefix(own) if name.startswith(own) else name.rpartition(".")[2]
    return re.sub(r"#(\d+)$", r" (\1)", name)


def cell_text(program: Program, cell: Cell) -> str:
    """A cell as text, as in the program."""
    if isinstance(cell, int):
        return f"pc of {program.processes[cell].name}"
    variable, k = cell
    name = name_of(program, variable)
    return name if variable.size is None else f"{name}[{k}]"


def data_of(program: Program, variable: Variable, value: Value) -> Data:
    """A value as data. The owner of a lock is a process, or nobody: `free`."""
    if variable.lock and variable.kind == "int" and 0 <= value <= len(program.processes):
        return {"#enum": program.processes[value - 1].name if value else "free"}
    return to_data(value)


def label_of(code: ProcessCode, step: Instruction) -> str:
    """The text of a step: its statement. Starting and ending need not repeat the name of the process."""
    for act in ("starts", "ends"):
        if step.label == f"{code.name} {act}":
            return act
    return step.label


def place_of(program: Program, code: ProcessCode, step: Instruction) -> Place | None:
    """The place of a step, with its file. None: it is no statement of the program."""
    if code.spawned and step.location == 0 and label_of(code, step) == "starts":
        return None
    return step.place._replace(file=step.place.file or program.source.name)


def place_text(place: Place | None) -> str:
    """A place in words, without the folder of the file: `counter.c:14`. Empty if there is none."""
    return "" if place is None else f"{PurePath(place.file).name or place.file}:{place.line}"


def _where(program: Program, code: ProcessCode, step: Instruction) -> str:
    """A step in words: `at counter.c:14: x = x + 1`."""
    where, label = place_text(place_of(program, code, step)), label_of(code, step)
    return f"at {where}: {label}" if where and label else f"at {where}" if where else label


def condition_text(property_: Property) -> str:
    """The condition of a property as the user wrote it. Empty if it is not known.

    >>> from plait.bmc.load import parse_program
    >>> program = parse_program("int x = 0; process p { x = 1; } always small: x < 1;")
    >>> condition_text(program.properties[0])
    'x < 1'
    """
    return _HEAD.sub("", property_.place.text).strip().rstrip(";").strip()


def statement(program: Program, property_: Property) -> str:
    """What a run that decides a property shows: a sentence, with the text of the property."""
    name = property_.name
    if builtin(program, property_):
        said = SENTENCES.get(name, "a check fails")
        return f"{name}: {said}." if name in (DEADLOCK, RACES) else f"{name} is violated: {said}."
    condition = condition_text(property_)
    if property_.kind == "reachable":
        return f"{name} is reached: {condition} is true." if condition else f"{name} is reached."
    if not condition:
        return f"{name} is violated."
    ended = "all processes have ended, and " if property_.kind == "final" else ""
    return f"{name} is violated: {ended}{condition} is false."


def builtin(program: Program, property_: Property) -> bool:
    """Whether a property is one of Plait's checks, not one of the program."""
    return property_.name in (DEADLOCK, RACES) or program.flag(property_.name) is not None


def explanation(interpreter: Interpreter, property_: Property, run: Sequence[Step], state: State, omitted: int) -> str:
    """Why a run decides a property, in lines. `state` is its last state; `omitted` steps of it are not shown."""
    program = interpreter.program
    lines = [statement(program, property_)]
    failed = [step for step in run if step.failure is not None]
    if property_.name == RACES:
        lines += _race(interpreter, state)
    elif program.flag(property_.name) is not None and failed:
        code = program.processes[failed[-1].process]
        step = code.instructions[failed[-1].location]
        said, reason = f"{code.name} {_where(program, code, step)}", failed[-1].failure
        # The statement of an assertion says it all, if it is the first one of the step.
        own = property_.name == ASSERTIONS and step.label and "(line " not in (reason or "")
        lines.append(said if own else f"{said}: {reason}")
    if omitted:
        steps = "1 step" if omitted == 1 else f"{omitted} steps"
        lines.append(f"{steps} that cannot influence this {'is' if omitted == 1 else 'are'} left out.")
    return "\n".join(lines)


def _race(interpreter: Interpreter, state: State) -> list[str]:
    """The two accesses of a data race."""
    program = interpreter.program
    found = next(races(interpreter, state), None)
    if found is None:
        return []
    lines = []
    for process, writes in zip(found.processes, found.writes, strict=True):
        step = next_instruction(interpreter, state, process)
        code = program.processes[process]
        where = "" if step is None else f" {_where(program, code, step)}"
        lines.append(f"{code.name} {'writes' if writes else 'reads'} {cell_text(program, found.cell)}{where}")
    return lines


def waits(interpreter: Interpreter, state: State) -> list[Wait]:
    """Who waits for what, if the state is a deadlock."""
    program = interpreter.program
    found = []
    for process in waiting(interpreter, state):
        step = next_instruction(interpreter, state, process)
        if step is None:
            continue
        code = program.processes[process]
        cells: set[Cell] = set()
        for action in step.body:
            if isinstance(action, Require):
                interpreter.evaluate(action.condition, state, cells)
        known = [f"{r.field} = {text(r.value)}" for r in values(interpreter, cells, state, ()) if r.lane == SHARED]
        reason = _where(program, code, step) + (f"  ({', '.join(known)})" if known else "")
        found.append(Wait(code.name, None, reason))
    return found


def values(interpreter: Interpreter, cells: set[Cell], state: State, run: Sequence[Step]) -> list[Read]:
    """The values of cells in the last state of a run, each with the step that wrote it last."""
    program = interpreter.program
    found = []
    for cell in sorted((c for c in cells if not isinstance(c, int)), key=lambda c: (c[0].name, c[1])):
        variable, k = cell
        if not shown(variable):
            continue
        lane = SHARED if variable.process is None else program.processes[variable.process].name
        value = state.values[interpreter.offsets[variable] + k]
        writer = next((i for i in reversed(range(len(run))) if cell in run[i].writes), None)
        found.append(Read(lane, cell_text(program, cell), data_of(program, variable, value), writer))
    return found[:_MOST]
