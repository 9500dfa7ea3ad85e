"""What the reachable states of a system exercise, in the most obvious way: look at all of them, and note what is seen."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from plait import System
from tests.oracle.explorer import Exploration
from tests.oracle.relation import initial_states, is_for, make_message, make_process, successors, thaw

Place = tuple[str, str]


@dataclasses.dataclass
class Seen:
    steps: dict[Place, set[Any]] = dataclasses.field(default_factory=dict)
    guards: dict[Place, set[bool]] = dataclasses.field(default_factory=dict)
    sent: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    taken: set[tuple[str, str]] = dataclasses.field(default_factory=set)


def coverage(system: System, explored: Exploration) -> Seen:
    """What all states do."""
    seen = Seen()
    names = [cls.__name__ for cls in system.classes]
    for index, process in enumerate(system.processes):
        for handler in (h for h in process.__plait_handlers__ if h.kind == "init"):
            seen.steps.setdefault((names[index], handler.name), set()).add(index)
    for state in initial_states(system):
        for index, slot in enumerate(state.slots):
            seen.sent |= {(type(thaw(message)).__name__, names[index]) for _, message in slot.inbox}
    for state in explored.seen:
        for index, slot in enumerate(state.slots):
            if slot.status == "up":
                look(system, state, index, seen)
        for t in successors(system, state):
            if t.kind not in ("step", "recover") or t.label == "recover":
                continue
            place, fields = (names[t.process], t.label), state.slots[t.process].fields
            seen.steps.setdefault(place, set()).add((t.process, fields, frozenset(Counter(t.consumed).items())))
            seen.taken |= {(type(thaw(m)).__name__, names[t.process]) for _, m in t.consumed}
            if t.state is not None:
                seen.sent |= {(type(thaw(m)).__name__, names[to]) for to, m in t.sends}
    return seen


def look(system: System, state: Any, index: int, seen: Seen) -> None:
    """Evaluate the guards of a process."""
    cls, queues = system.classes[index], state.slots[index].inbox
    heads = queues
    if system.network.kind == "fifo":
        heads = tuple(e for i, e in enumerate(queues) if i == 0 or queues[i - 1][0] != e[0])
    for handler in cls.__plait_handlers__:
        where: Any = handler.where
        if where is None:
            continue
        values = seen.guards.setdefault((cls.__name__, handler.name), set())
        if handler.kind == "action":
            values.add(bool(where(make_process(system, state, index))))
        inbox = heads if handler.distinct else queues  # a set may take several messages of a queue
        for entry in inbox if handler.messages else ():
            message = make_message(system, entry)
            if is_for(system, handler, entry):
                values.add(bool(where(make_process(system, state, index), message)))
