"""From runs to Traces, and replay of saved ones. Lanes are the processes, and `shared` for the shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from plait.bmc.analysis.dependence import execute, projection, relevant_cells
from plait.bmc.execution.explanation import (
    SHARED,
    cell_text,
    data_of,
    explanation,
    label_of,
    name_of,
    place_of,
    shown,
    values,
    waits,
)
from plait.bmc.execution.hazards import races, waiting
from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.program.definition import (
    DEADLOCK,
    RACES,
    Program,
    Property,
    Read,
    Require,
    Value,
    Variable,
)
from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Lane, Place, Snapshot, Trace, Why
from plait.kernel.values import Data, to_data

WIDTH = "--width"
"""The parameter of a trace for the number of bits of numbers."""
ASIDE = "not in the projection"
"""The note of a step that cannot influence the property."""
_MORE = 200
"""The maximal number of steps that are added to a run."""
_STALE = "the program has changed since the trace was saved: check the program again"


def lanes(program: Program) -> list[Lane]:
    """A lane for each process, and one for the memory."""
    found = [Lane(code.name, code.role) for code in program.processes]
    return [*found, Lane(SHARED, "memory", shared=True)]


def _starters(program: Program) -> dict[Variable, int]:
    """For each variable that starts a spawned process, the process."""
    found = {}
    for number, code in enumerate(program.processes):
        first = code.instructions[0].body[:1] if code.spawned and code.instructions else ()
        match first:
            case (Require(Read(variable, None)),):
                found[variable] = number
    return found


def snapshot(interpreter: Interpreter, state: State) -> Snapshot:
    """All values of a state, by lane, without intermediate values. A thread that has not been started is unborn."""
    program = interpreter.program
    fields: dict[str, dict[str, Data]] = {lane.name: {} for lane in lanes(program)}
    for variable in program.variables:
        if shown(variable):
            lane = SHARED if variable.process is None else program.processes[variable.process].name
            at = interpreter.offsets[variable]
            cells = [data_of(program, variable, value) for value in state.values[at : at + variable.cells]]
            fields[lane][name_of(program, variable)] = cells[0] if variable.size is None else cells
    unborn = {
        program.processes[number].name: "unborn"
        for variable, number in _starters(program).items()
        if not state.values[interpreter.offsets[variable]]
    }
    return Snapshot(fields=fields, status=unborn)


def _field(program: Program, cell: Cell) -> str:
    """A cell as events name it: the shared memory is a lane of its own."""
    common = not isinstance(cell, int) and cell[0].process is None
    return f"{SHARED}.{cell_text(program, cell)}" if common else cell_text(program, cell)


def event(interpreter: Interpreter, before: State, taken: Step, note: str | None = None) -> Event:
    """The event of a step: its statement, the shared cells that it read and wrote with their values."""
    program = interpreter.program
    code = program.processes[taken.process]
    changed: dict[str, tuple[Data, Data]] = {}
    started: list[str] = []
    notes = [note] if note else []
    starters = _starters(program)
    for variable, k in _cells(taken.writes):
        at = interpreter.offsets[variable] + k
        old, new = before.values[at], taken.state.values[at]
        if variable.hidden:
            notes.append(taken.failure or "")
        elif variable in starters and new and not old:
            started.append(program.processes[starters[variable]].name)
        elif shown(variable) and (variable.process is None or old != new):
            pair = (data_of(program, variable, old), data_of(program, variable, new))
            changed[_field(program, (variable, k))] = pair
    reads = [(v, k) for v, k in _cells(taken.reads) if shown(v)]
    step = code.instructions[taken.location]
    place = place_of(program, code, step)
    return Event(
        lane=code.name,
        kind="step",
        label=label_of(code, step),
        state=snapshot(interpreter, taken.state),
        choices=[to_data(i) for i in taken.inputs],
        spawned=started,
        read=[_field(program, cell) for cell in reads],
        changed=changed,
        note="; ".join(notes) or None,
        values={
            _field(program, (v, k)): data_of(program, v, before.values[interpreter.offsets[v] + k])
            for v, k in reads
            if v.process is None
        },
        place=msgspec.UNSET if place is None else Place(place.file, place.line),
    )


def _cells(cells: frozenset[Cell]) -> list[tuple[Variable, int]]:
    """The cells of variables, by name."""
    return sorted((c for c in cells if not isinstance(c, int)), key=lambda c: (c[0].name, c[1]))


def trace(
    interpreter: Interpreter,
    target: str,
    parameters: Mapping[str, str | Value],
    property_: Property,
    start: State,
    run: Sequence[Step],
    *,
    full: bool = False,
) -> Trace:
    """The projection of a run that decides a property. With `full`, the whole run, with possible steps after it.

    A deadlock and a data race are properties of all threads, so their runs are whole. The same holds for programs with
    atomic sections of several steps: without some of its steps, such a run may not be a run.
    """
    program = interpreter.program
    whole, kept = list(run), set(range(len(run)))
    if not _complete(program, property_):
        cells = relevant_cells(program, property_)
        needed = set(projection(run, cells))
        if full:
            whole += expansion(interpreter, run[-1].state if run else start, cells)
            kept = needed
        elif len(needed) < len(run):
            shorter = execute(interpreter, start, [run[i] for i in sorted(needed)])
            if shorter is not None and interpreter.evaluate(property_.bad, shorter[-1].state if shorter else start):
                whole, kept = shorter, set(range(len(shorter)))
    events = []
    before = start
    for i, taken in enumerate(whole):
        events.append(event(interpreter, before, taken, ASIDE if i not in kept else None))
        before = taken.state
    if interpreter.width is not None:
        parameters = dict(parameters) | {WIDTH: interpreter.width}
    omitted = 0 if full else len(run) - len(whole)
    return Trace(
        target=target,
        parameters=dict(parameters),
        property=property_.name,
        lanes=lanes(program),
        messages=[],
        initial=snapshot(interpreter, start),
        events=events,
        explanation=explanation(interpreter, property_, whole, before, omitted),
        why=_why(interpreter, property_, whole, before, kept),
        waiting=waits(interpreter, before) if property_.name == DEADLOCK else [],
    )


def _complete(program: Program, property_: Property) -> bool:
    """Whether every step of a run belongs to its trace."""
    exclusive = any(step.exclusive for code in program.processes for step in code.instructions)
    return exclusive or property_.name in (DEADLOCK, RACES)


def _why(
    interpreter: Interpreter, property_: Property, run: Sequence[Step], state: State, kept: set[int]
) -> Why | None:
    """The values that the property read in the last state, and the steps that can influence them."""
    cells: set[Cell] = set()
    if property_.name not in (DEADLOCK, RACES):
        interpreter.evaluate(property_.bad, state, cells)
    reads = values(interpreter, cells, state, run)
    steps = sorted(kept) if len(kept) < len(run) else []
    return Why(clauses=[], reads=reads, steps=steps) if reads or steps else None


def expansion(interpreter: Interpreter, state: State, cells: frozenset[Cell]) -> list[Step]:
    """Further steps of the processes, in turn, that do not write these cells, until no new state is reached."""
    found: list[Step] = []
    seen = {state}
    moved = True
    while moved and len(found) < _MORE:
        moved = False
        for process in range(len(interpreter.program.processes)):
            if not interpreter.ready(state, process):
                continue
            inputs = next(iter(interpreter.inputs(state, process)), None)
            taken = None if inputs is None else interpreter.step(state, process, inputs)
            if taken is None or taken.state in seen or not taken.writes.isdisjoint(cells):
                continue
            found.append(taken)
            state = taken.state
            seen.add(state)
            moved = True
    return found


def replay(program: Program, saved: Trace) -> Iterator[Event]:
    """Execute a saved trace again. Each event is compared with the saved one."""
    width = saved.parameters.get(WIDTH)
    interpreter = Interpreter(program, width if isinstance(width, int) else None)
    if [lane.name for lane in saved.lanes] != [lane.name for lane in lanes(program)]:
        raise TraceError("the processes of the trace are not those of the program", hint=_STALE)
    numbers = {code.name: p for p, code in enumerate(program.processes)}
    state = _start(interpreter, saved.initial)
    for number, then in enumerate(saved.events, 1):
        process = numbers.get(then.lane)
        if process is None:
            raise TraceError(f"step {number}: the program has no process {then.lane}", hint=_STALE)
        taken = interpreter.step(state, process, [_value(c) for c in then.choices])
        if taken is None:
            raise TraceError(f"step {number}: {then.lane} can no longer take this step", hint=_STALE)
        now = event(interpreter, state, taken, then.note)
        if (now.label, now.state) != (then.label, then.state):
            raise TraceError(f"step {number}: the step of {then.lane} differs from the trace", hint=_STALE)
        state = taken.state
        yield then
    if not _decides(interpreter, saved.property or "", state):
        raise TraceError(f"the last state of the trace no longer decides {saved.property}", hint=_STALE)


def _decides(interpreter: Interpreter, name: str, state: State) -> bool:
    """Whether a state decides the property of that name."""
    if name == DEADLOCK:
        return bool(waiting(interpreter, state))
    if name == RACES:
        return any(True for _ in races(interpreter, state))
    property_ = interpreter.program.find(name)
    if property_ is None:
        raise TraceError(f"the program no longer has the property {name!r}", hint=_STALE)
    return bool(interpreter.evaluate(property_.bad, state))


def _value(data: Data) -> Value:
    if isinstance(data, bool | int):
        return data
    if isinstance(data, dict) and isinstance(data.get("#bigint"), str):
        return int(data["#bigint"])
    raise TraceError(f"{data!r} is not a value of a program", hint="give a trace that plait bmc saved")


def _start(interpreter: Interpreter, initial: Snapshot) -> State:
    """The initial state of a saved trace: the trace says which values the free variables have."""
    program = interpreter.program
    found: dict[Variable, list[Value]] = {}
    for variable in program.variables:
        known = [value for value in variable.initial if value is not None]
        if len(known) == len(variable.initial):
            found[variable] = known
            continue
        lane = SHARED if variable.process is None else program.processes[variable.process].name
        data = initial.fields.get(lane, {}).get(name_of(program, variable))
        cells = data if isinstance(data, list) else [data]
        if data is None or len(cells) != variable.cells:
            raise TraceError(f"the trace has no value for {variable.name}", hint=_STALE)
        found[variable] = [_value(cell) for cell in cells]
    state = interpreter.initial(found)
    if snapshot(interpreter, state) != initial or not interpreter.starts(state):
        raise TraceError("the initial state of the trace is not an initial state of the program", hint=_STALE)
    return state
