"""Execute a recorded Trace on the oracle's transition relation, so that a reported run is known to be a real run."""

from __future__ import annotations

import json
from typing import Any

from plait.kernel.trace import Event, Snapshot, Trace
from plait.kernel.values import to_data
from plait.model.system import System
from tests.oracle.explorer import initials
from tests.oracle.relation import Entry, State, Transition, make, successors, thaw


def replay(system: System, trace: Trace) -> State | None:
    """The state at the end of the trace; None if it ends in a failure. AssertionError if it is no run."""
    states: set[State | None] = {s for s in initials(system) if agrees(system, s, trace, trace.initial)}
    assert states, "the initial states differ"
    for number, event in enumerate(trace.events):
        last = number == len(trace.events) - 1
        candidates = {
            t.state
            for s in states
            if s is not None
            for t in successors(system, s)
            if matches(system, t, trace, event) and (last or t.state is not None)
        }
        states = {s for s in candidates if s is None or agrees(system, s, trace, event.state)}
        assert states, f"event {number} ({event.lane}: {event.kind} {event.label}) is not possible, or ends elsewhere"
    return states.pop() if len(states) == 1 else next(s for s in states if s is not None)


def matches(system: System, t: Transition, trace: Trace, event: Event) -> bool:
    """Whether a transition is the recorded one, by who did what with which messages and choices."""
    lane = "time" if t.kind == "tick" and not system.drift else repr(system.pids[t.process])
    if (t.kind, lane) != (event.kind, event.lane):
        return False
    if t.kind == "step" and t.label != event.label:
        return False
    taken = sorted(shown(recorded(trace, i)) for i in event.consumed)
    if (t.kind == "step" or taken) and taken != sorted(shown(content(system, entry)) for entry in t.consumed):
        return False
    return shown(event.choices) == shown([to_data(thaw(choice)) for choice in t.choices])


def agrees(system: System, state: State | None, trace: Trace, snapshot: Snapshot) -> bool:
    """Whether a state is the recorded one."""
    assert state is not None
    for pid, cls, slot in zip(system.pids, system.classes, state.slots, strict=True):
        lane = repr(pid)
        fields = {name: to_data(value) for name, value in vars(make(cls, slot.fields)).items()}
        fields |= {"(lead)": slot.lead} if system.drift and cls.__plait_clocks__ else {}
        there = (snapshot.status.get(lane, "up"), snapshot.fields.get(lane, {}))
        if shown(there) != shown((slot.status, fields)):
            return False
        pending = [recorded(trace, i) for i in snapshot.pending.get(lane, [])]
        if queues(system, pending) != queues(system, [content(system, entry) for entry in slot.inbox]):
            return False
    for monitor, values in zip(system.monitors, state.monitors, strict=True):
        data = snapshot.monitors[type(monitor).__name__]
        observed = {name: value for name, value in data.items() if name != "#type"}
        if shown(observed) != shown({n: to_data(v) for n, v in vars(make(type(monitor), values)).items()}):
            return False
    cells = dict(zip(system.cells, (field for fields in state.shared for field in fields), strict=True))
    for (shared, name), value in cells.items():
        if shown(snapshot.fields[repr(shared)][name]) != shown(to_data(thaw(value))):
            return False
    limits = (system.network.losses, system.network.duplications, *(fault.budget for fault in system.faults))
    budgets = [left for left, limit in zip(state.budgets, limits, strict=True) if limit is not None]
    return list(snapshot.budgets.values()) == budgets


def queues(system: System, messages: list[tuple[str, Any]]) -> list[str]:
    """An inbox as text: by sender for queues, else without any order."""
    if system.network.kind == "fifo":
        return [shown(m) for m in sorted(messages, key=lambda m: m[0])]
    return sorted(map(shown, messages))


def recorded(trace: Trace, number: int) -> tuple[str, Any]:
    """Sender and content of a message of the trace."""
    sent = next(m for m in trace.messages if m.id == number)
    return sent.sender, {"#type": sent.type, **sent.fields}


def content(system: System, entry: Entry) -> tuple[str, Any]:
    return repr(system.pids[entry[0]]), to_data(thaw(entry[1]))


def shown(data: Any) -> str:
    return json.dumps(data, sort_keys=True)
