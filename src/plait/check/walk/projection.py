"""The state graph, collapsed to what a person wants to see: some fields, some processes, or an expression.

The engine builds the graph of all states, and joins states that agree on the chosen places (`rust/src/live/projection.rs`).
An expression is evaluated once for each combination of the values that it reads: the states of a node agree on all that
it reads, so it has the same value in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from plait._native import Counters, Transition
from plait.check.explain.tracing import state_fields
from plait.check.options import Options
from plait.check.runner import Runner
from plait.check.walk.expression import Expression, Read, contents
from plait.check.walk.run import Run, keys_of
from plait.kernel.errors import UsageError
from plait.kernel.trace import TIME
from plait.kernel.values import text, to_data
from plait.model.system import System

MOST_COMBINATIONS = 20_000
"""Combinations of values that an expression may read."""
_LONGEST = 120
"""Characters of a label."""
Place = tuple[str, int, int]


class Chosen(msgspec.Struct, forbid_unknown_fields=True):
    """What tells the nodes of a graph apart. Without a choice, each state is a node."""

    fields: list[str] = []
    """`Role.field`, `Lane.field`, `Monitor.field`; `Lane.status` and `Lane.inbox`, too."""
    lanes: list[str] = []
    """Processes and shared objects, with all their fields."""
    expression: str | None = None


class Node(msgspec.Struct, frozen=True):
    """States that agree."""

    id: int
    label: str
    count: int
    initial: bool
    terminal: int
    violating: int
    run: Run
    """A shortest run to one of them."""


class Edge(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """Transitions of one handler between the states of two nodes."""

    source: int
    target: int
    label: str
    count: int


class Collapsed(msgspec.Struct, frozen=True):
    """A state graph, collapsed."""

    nodes: list[Node]
    edges: list[Edge]
    complete: bool
    states: int
    seconds: float
    note: str | None = None


def collapsed(
    runner: Runner,
    chosen: Chosen,
    options: Options,
    most: int,
    *,
    before: Run | None = None,
    progress: Callable[[Counters], object] | None = None,
) -> Collapsed:
    """The graph from the initial states of the engine on. `before` is the run that leads to its initial state."""
    system = runner.system
    expression = None
    if chosen.expression is not None:
        if chosen.fields or chosen.lanes:
            raise UsageError("the projection has an expression and fields", hint="give one of them")
        expression = Expression(system, runner.tabulation, chosen.expression)
    named = named_places(system, chosen)
    values: dict[bytes, int] = {}
    labels: list[str] = []
    known: set[Place] = set()

    def numbered(states: list[list[int]], cut: bool) -> tuple[list[Place], list[int | None]]:
        assert expression is not None
        if cut:
            raise UsageError(
                f"{expression.text} reads values that differ in more than {MOST_COMBINATIONS:,} ways",
                hint="write an expression that reads fewer fields",
            )
        found, more = [], set()
        for state in states:
            content, reads = expression.content(*contents(runner, state))
            more |= {_place(read) for read in reads} - known
            found.append(content)
        known.update(more)
        if more:
            return sorted(more), []
        numbers: list[int | None] = []
        for content in found:
            if content not in values and len(values) < most:
                values[content] = len(values)
                labels.append(text(to_data(runner.tabulation.codec.decode(content))))
            numbers.append(values.get(content))
        return [], numbers

    always = [number for number, prop in enumerate(system.properties) if prop.kind == "always"][:60]
    nodes, edges, cut, report = runner.engine.projected(
        options,
        places=[] if expression is not None else [place for _, place in named],
        always=always,
        most=MOST_COMBINATIONS if expression is not None else most,
        numbered=numbered if expression is not None else None,
        progress=progress,
    )
    initial = {tuple(state): number for number, (state, _) in enumerate(runner.initial)}
    made = []
    for number, (start, path, count, is_initial, terminal, violating) in enumerate(nodes):
        run = _run(runner, before, initial, start, path)
        last = path[-1].state if path else start
        label = labels[number] if expression is not None else _label(runner, chosen, named, last)
        made.append(Node(number, _short(label), count, is_initial, terminal, violating, run))
    joined: dict[tuple[int, int, str], int] = {}
    for source, target, process, kind, handler, count in edges:
        key = (source, target, _edge_label(system, process, kind, handler))
        joined[key] = joined.get(key, 0) + count
    notes = []
    if cut:
        notes.append(f"only {most:,} nodes are shown: choose fewer fields")
    if report.bound is not None:
        notes.append(f"the graph is not complete: the search ended by its limit ({report.bound})")
    return Collapsed(
        made,
        [Edge(source, target, label, count) for (source, target, label), count in joined.items()],
        complete=not notes,
        states=report.counters.states,
        seconds=report.counters.seconds,
        note="; ".join(notes) or None,
    )


def named_places(system: System, chosen: Chosen) -> list[tuple[str, Place]]:
    """The chosen places, each with its name."""
    every = _places(system)
    if not chosen.fields and not chosen.lanes:
        return list(every.items())
    found: dict[str, Place] = {}
    lanes = {name.partition(".")[0] for name in every}
    for lane in chosen.lanes:
        if lane not in lanes:
            raise UsageError(f"the model has no process {lane!r}", hint=f"it has: {', '.join(sorted(lanes))}")
        own = {name: place for name, place in every.items() if name.startswith(f"{lane}.") and place[0] != "inbox"}
        found |= own
    for wanted in chosen.fields:
        owner, _, field = wanted.partition(".")
        roles = zip(system.pids, system.classes, strict=True)
        members = [owner, *(repr(pid) for pid, cls in roles if owner in {base.__name__ for base in cls.__mro__})]
        fitting = {f"{one}.{field}": every[f"{one}.{field}"] for one in members if f"{one}.{field}" in every}
        if not fitting:
            raise UsageError(
                f"the model has no field {wanted!r}", hint="write Role.field, Process0.field or Monitor.field"
            )
        found |= fitting
    return list(found.items())


def _places(system: System) -> dict[str, Place]:
    """All places of a state by name."""
    found: dict[str, Place] = {}
    for index, (pid, cls) in enumerate(zip(system.pids, system.classes, strict=True)):
        if system.faults or index >= len(system.processes):
            found[f"{pid!r}.status"] = ("field", index, 0)
        for number, name in enumerate(cls.__plait_fields__, 1):
            found[f"{pid!r}.{name}"] = ("field", index, number)
        found[f"{pid!r}.inbox"] = ("inbox", index, 0)
    for index, cell in enumerate(system.cells, len(system.classes)):
        found[str(cell)] = ("field", index, 1)
    for index, monitor in enumerate(system.monitors):
        for number, name in enumerate(monitor.__plait_fields__):
            found[f"{type(monitor).__name__}.{name}"] = ("monitor", index, number)
    return found


def _place(read: Read) -> Place:
    kind, index, number = read
    if kind == "status":
        return "field", index, 0
    return kind, index, number + 1 if kind == "field" else number


def _run(
    runner: Runner,
    before: Run | None,
    initial: dict[tuple[int, ...], int],
    start: Sequence[int],
    path: Sequence[Transition],
) -> Run:
    keys = tuple(keys_of(runner, start, path))
    if before is not None:
        return Run(before.initial, (*before.steps, *keys))
    return Run(initial.get(tuple(start), 0), keys)


def _label(runner: Runner, chosen: Chosen, named: Sequence[tuple[str, Place]], state: Sequence[int]) -> str:
    """The values of the chosen fields in a state."""
    if not chosen.fields and not chosen.lanes:
        return ""
    system, tabulation = runner.system, runner.tabulation
    locals_, inboxes, monitors, _ = runner.engine.components(state)
    fields = state_fields(runner, state)
    parts = []
    for name, (kind, index, number) in named:
        owner, _, field = name.partition(".")
        if kind == "inbox":
            value = text([to_data(message) for message in tabulation.inbox_value(inboxes[index])])
        elif kind == "monitor":
            value = text(to_data(tabulation.monitor_value(index, monitors[index]).__dict__[field]))
        elif number == 0 and index < len(system.classes):
            value = tabulation.local_value(index, locals_[index])[0]
        else:
            value = text(fields[owner].get(field))
        parts.append(f"{name} = {value}")
    return "\n".join(parts)


def _short(label: str) -> str:
    return "\n".join(line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…" for line in label.split("\n")[:40])


def _edge_label(system: System, process: int, kind: str, handler: int | None) -> str:
    cls = system.classes[process]
    if handler is not None:
        return f"{cls.__name__}.{cls.__plait_handlers__[handler].name}"
    return TIME if kind == "tick" else f"{kind} {cls.__name__}"
