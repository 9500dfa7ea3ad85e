"""From runs to Traces, and replay of saved ones. Lanes are the processes, and `shared` for the shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plait.bmc.analysis.dependence import execute, projection, relevant_cells
from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.program.definition import Program, Property, Value, Variable
from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Lane, Snapshot, Trace
from plait.kernel.values import Data, to_data

SHARED = "shared"
WIDTH = "--width"
"""The parameter of a trace for the number of bits of numbers."""
_MORE = 200
"""The maximal number of steps that are added to a run."""
_STALE = "the program has changed since the trace was saved: check the program again"


def lanes(program: Program) -> list[Lane]:
    """A lane for each process, and one for the memory."""
    found = [Lane(code.name, code.role) for code in program.processes]
    return [*found, Lane(SHARED, "memory", shared=True)]


def _short(variable: Variable) -> str:
    return variable.name if variable.process is None else variable.name.rpartition(".")[2]


def snapshot(interpreter: Interpreter, state: State) -> Snapshot:
    """All values of a state, by lane."""
    program = interpreter.program
    fields: dict[str, dict[str, Data]] = {lane.name: {} for lane in lanes(program)}
    for variable in program.variables:
        if not variable.hidden:
            lane = SHARED if variable.process is None else program.processes[variable.process].name
            fields[lane][_short(variable)] = to_data(interpreter.shown(state, variable))
    return Snapshot(fields=fields)


def cell_text(program: Program, cell: Cell) -> str:
    """A cell as text, as in the program."""
    if isinstance(cell, int):
        return f"pc of {program.processes[cell].name}"
    variable, k = cell
    return _short(variable) if variable.size is None else f"{_short(variable)}[{k}]"


def _place(program: Program, cell: Cell) -> str:
    """A cell as events name it: the shared memory is a lane of its own."""
    shared = not isinstance(cell, int) and cell[0].process is None
    return f"{SHARED}.{cell_text(program, cell)}" if shared else cell_text(program, cell)


def event(interpreter: Interpreter, before: State, taken: Step, note: str | None = None) -> Event:
    """The event of a step."""
    program = interpreter.program
    code = program.processes[taken.process]
    changed: dict[str, tuple[Data, Data]] = {}
    notes = [note] if note else []
    for cell in sorted((c for c in taken.writes if not isinstance(c, int)), key=lambda c: (c[0].name, c[1])):
        variable, k = cell
        at = interpreter.offsets[variable] + k
        if variable.hidden:
            notes.append(taken.failure or "")
        elif before.values[at] != taken.state.values[at]:
            changed[_place(program, cell)] = (to_data(before.values[at]), to_data(taken.state.values[at]))
    step = code.instructions[taken.location]
    return Event(
        lane=code.name,
        kind="step",
        label=step.label,
        state=snapshot(interpreter, taken.state),
        choices=[to_data(i) for i in taken.inputs],
        read=sorted(_place(program, c) for c in taken.reads if not isinstance(c, int)),
        changed=changed,
        note="; ".join(notes) or None,
    )


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
    """The projection of a run that decides a property. With `full`, the whole run, with possible steps after it."""
    program = interpreter.program
    cells = relevant_cells(program, property_)
    kept = set(projection(run, cells))
    if full:
        whole = [*run, *expansion(interpreter, run[-1].state if run else start, cells)]
    else:
        shorter = execute(interpreter, start, [run[i] for i in sorted(kept)])
        assert shorter is not None, "a projection is a run (Saissi 2019, Theorem 5)"
        whole, kept = shorter, set(range(len(shorter)))
    events = []
    before = start
    for i, taken in enumerate(whole):
        aside = "not in the projection" if i not in kept else None
        events.append(event(interpreter, before, taken, aside))
        before = taken.state
    if interpreter.width is not None:
        parameters = dict(parameters) | {WIDTH: interpreter.width}
    found = "is reached" if property_.kind == "reachable" else "is violated"
    shown = sorted({cell_text(program, c) for c in cells if isinstance(c, int) or not c[0].hidden})
    about = f"on {', '.join(shown[:12])}{', …' if len(shown) > 12 else ''}" if shown else f"on {property_.name}"
    steps = "1 step" if len(kept) == 1 else f"{len(kept)} steps"
    return Trace(
        target=target,
        parameters=dict(parameters),
        property=property_.name,
        lanes=lanes(program),
        messages=[],
        initial=snapshot(interpreter, start),
        events=events,
        explanation=f"{property_.name} {found}. The projection {about} has {steps}.",
    )


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
    property_ = program.find(saved.property or "")
    if property_ is None:
        raise TraceError(f"the program no longer has the property {saved.property!r}", hint=_STALE)
    if not interpreter.evaluate(property_.bad, state):
        raise TraceError(f"the last state of the trace no longer decides {property_.name}", hint=_STALE)


def _value(data: Data) -> Value:
    if isinstance(data, bool | int):
        return data
    if isinstance(data, dict) and isinstance(data.get("#bigint"), str):
        return int(data["#bigint"])
    raise TraceError(f"{data!r} is not a value of a program", hint="give a trace that plait bmc saved")


def _start(interpreter: Interpreter, initial: Snapshot) -> State:
    values: dict[Variable, list[Value]] = {}
    for variable in interpreter.program.variables:
        if variable.hidden:
            values[variable] = [False]
            continue
        lane = SHARED if variable.process is None else interpreter.program.processes[variable.process].name
        data = initial.fields.get(lane, {}).get(_short(variable))
        cells = data if isinstance(data, list) else [data]
        if data is None or len(cells) != variable.cells:
            raise TraceError(f"the trace has no value for {variable.name}", hint=_STALE)
        values[variable] = [_value(cell) for cell in cells]
    state = interpreter.initial(values)
    if not interpreter.starts(state):
        raise TraceError("the initial state of the trace is not an initial state of the program", hint=_STALE)
    return state
