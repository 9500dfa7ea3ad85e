"""Whole global states and the transitions between them (DESIGN section 3), made by running handlers on fresh copies."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.network import Network
from plait.model.process import Handler, Process, Quorum
from plait.model.system import System, plays
from tests.oracle.values import Frozen, freeze, freeze_fields, make, thaw

Entry = tuple[int, Frozen]
"""A pending message: the position of its sender, and its content."""


class Slot(NamedTuple):
    """A process: up, crashed, down or unborn; its fields; its inbox in canonical order."""

    status: str
    fields: tuple[Frozen, ...] = ()
    inbox: tuple[Entry, ...] = ()


class State(NamedTuple):
    slots: tuple[Slot, ...]
    monitors: tuple[tuple[Frozen, ...], ...]
    losses: int | None
    duplications: int | None
    crashes: tuple[int, ...]
    """What is left of each fault's budget."""


class Transition(NamedTuple):
    kind: str
    process: int
    label: str
    consumed: tuple[Entry, ...]
    choices: tuple[Frozen, ...]
    state: State | None
    """None after a failed assertion."""


def make_process(system: System, state: State, index: int, **more: Any) -> Any:
    return make(system.classes[index], state.slots[index].fields, _id=system.pids[index], **more)


def make_message(system: System, entry: Entry) -> Message:
    message: Message = thaw(entry[1])
    message.__dict__["_sender"] = system.pids[entry[0]]
    return message


# -- inboxes: a sorted bag, a sorted set, or the queues one after the other by sender


def keeps(network: Network) -> bool:
    """Whether delivery leaves the message where it is, so that an inbox is a set."""
    return network.kind == "duplicating" and network.duplications is None


def put(network: Network, inbox: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    if keeps(network) and entry in inbox:
        return inbox
    if network.kind == "fifo":
        return tuple(sorted((*inbox, entry), key=lambda e: e[0]))  # stable: each sender's order stays
    return tuple(sorted((*inbox, entry), key=lambda e: (e[0], repr(e[1]))))


def take(network: Network, inbox: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    return inbox if keeps(network) else without(inbox, inbox.index(entry))


def without(inbox: tuple[Entry, ...], position: int) -> tuple[Entry, ...]:
    return inbox[:position] + inbox[position + 1 :]


def deliverable(network: Network, inbox: tuple[Entry, ...]) -> list[Entry]:
    """The distinct messages that may be taken now, by sender."""
    if network.kind == "fifo":
        return [entry for i, entry in enumerate(inbox) if i == 0 or inbox[i - 1][0] != entry[0]]
    return list(dict.fromkeys(inbox))


# -- one run of a handler


class Run:
    """What a running handler may ask for (`plait.model.process.Run`); choices follow a script, then take the first."""

    def __init__(self, system: System, state: State, script: tuple[int, ...]) -> None:
        self.system, self.state, self.script = system, state, script
        self.taken: tuple[int, ...] = ()
        self.alternatives: list[tuple[int, ...]] = []
        self.choices: tuple[Frozen, ...] = ()
        self.sends: list[tuple[int, Frozen]] = []
        self.events: list[Frozen] = []
        self.spawned: dict[int, Process] = {}

    def send(self, to: Pid, message: Message) -> None:
        self.sends.append((self.system.index[to], freeze(message)))

    def announce(self, event: Any) -> None:
        self.events.append(freeze(event))

    def choose(self, options: Iterable[Any]) -> Any:
        unsorted = isinstance(options, set | frozenset)
        values = sorted(options, key=lambda v: repr(freeze(v))) if unsorted else list(options)
        if not values:
            raise ModelError("choose() was given no options")
        position = len(self.taken)
        if position == len(self.script):
            self.alternatives += [(*self.taken, i) for i in range(1, len(values))]
            self.script = (*self.script, 0)
        self.taken = self.script[: position + 1]
        chosen = values[self.taken[-1]]
        self.choices = (*self.choices, freeze(chosen))
        return chosen

    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid:
        for i in range(len(self.system.processes), len(self.system.classes)):
            if self.system.classes[i] is role and self.state.slots[i].status == "unborn" and i not in self.spawned:
                self.spawned[i] = role(**fields)
                return self.system.pids[i]
        raise ModelError(f"spawn({role.__name__}): no free slot")

    def ids(self, role: type[Process]) -> tuple[Pid, ...]:
        return tuple(self.system.pids[i] for i in self.system.members(role))


def execute(
    system: System, state: State, index: int, handler: Handler, kind: str, consumed: tuple[Entry, ...] = ()
) -> Iterator[Transition]:
    """Run a handler on every combination of its choices."""
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        run = Run(system, state, scripts.pop())
        process = make_process(system, state, index, _run=run)
        messages = tuple(make_message(system, entry) for entry in consumed)
        arguments = [messages] if handler.quorum is not None else messages
        after: State | None
        try:
            handler.function(process, *arguments)
        except AssertionError:
            after = None
        else:
            after = effects(system, state, index, process, run, consumed)
        yield Transition(kind, index, handler.name, consumed, run.choices, after)
        scripts += run.alternatives


def effects(system: System, state: State, index: int, process: Process, run: Run, consumed: tuple[Entry, ...]) -> State:
    """Consume, change the fields, spawn, send, and tell the monitors."""
    inbox = state.slots[index].inbox
    for entry in consumed:
        inbox = take(system.network, inbox, entry)
    state = edit(state, index, fields=freeze_fields(process), inbox=inbox)
    for slot, newborn in run.spawned.items():
        state = edit(state, slot, status="up", fields=freeze_fields(newborn))
    for to, message in run.sends:
        if state.slots[to].status != "crashed":
            state = edit(state, to, inbox=put(system.network, state.slots[to].inbox, (index, message)))
    for event in run.events:
        monitors = [make(type(m), fields) for m, fields in zip(system.monitors, state.monitors, strict=True)]
        for monitor in monitors:
            monitor.observe(system.pids[index], thaw(event))
        state = state._replace(monitors=tuple(map(freeze_fields, monitors)))
    return state


def edit(state: State, index: int, **changes: Any) -> State:
    slots = (*state.slots[:index], state.slots[index]._replace(**changes), *state.slots[index + 1 :])
    return state._replace(slots=slots)


# -- the transition relation


def initial(system: System) -> State:
    slots = [Slot("up", freeze_fields(p)) for p in system.processes]
    slots += [Slot("unborn")] * (len(system.classes) - len(system.processes))
    network = system.network
    state = State(
        tuple(slots),
        tuple(map(freeze_fields, system.monitors)),
        network.losses if network.lossy else None,
        network.duplications if network.kind == "duplicating" else None,
        tuple(fault.budget for fault in system.faults),
    )
    for index, process in enumerate(system.processes):
        for handler in process.__plait_handlers__:
            if handler.kind == "init":
                (only,) = execute(system, state, index, handler, "init")
                if only.state is None or any(s.status == "up" for s in only.state.slots[len(system.processes) :]):
                    raise ModelError("an @init method neither fails nor spawns")
                state = only.state
    return state


def successors(system: System, state: State) -> Iterator[Transition]:
    for index, slot in enumerate(state.slots):
        if slot.status == "up":
            yield from steps(system, state, index)
            yield from crashes(system, state, index)
        if slot.status == "down":
            yield from recoveries(system, state, index)
        yield from network_steps(system, state, index)


def steps(system: System, state: State, index: int) -> Iterator[Transition]:
    for handler in system.classes[index].__plait_handlers__:
        if handler.kind == "action":
            if handler.where is None or handler.where(make_process(system, state, index)):
                yield from execute(system, state, index, handler, "step")
        elif handler.kind == "message":
            for consumed in message_sets(system, state, index, handler):
                yield from execute(system, state, index, handler, "step", consumed)


def message_sets(system: System, state: State, index: int, handler: Handler) -> Iterator[tuple[Entry, ...]]:
    """The sets of messages that a handler may take: of distinct senders, and equal in the `same` fields."""

    def matches(entry: Entry) -> bool:
        message = make_message(system, entry)
        of_role = not isinstance(handler.quorum, Quorum) or plays(system.classes[entry[0]], handler.quorum.role)
        right_type = handler.message is not None and isinstance(message, handler.message)
        where = handler.where or (lambda self, m: True)
        return of_role and right_type and bool(where(make_process(system, state, index), message))

    def value(entry: Entry) -> Frozen:
        return freeze(tuple(getattr(thaw(entry[1]), name) for name in handler.same))

    size = quorum_size(system, state, index, handler)
    candidates = [e for e in deliverable(system.network, state.slots[index].inbox) if matches(e)]
    for chosen in itertools.combinations(candidates, size):
        if len({sender for sender, _ in chosen}) == size and len(set(map(value, chosen))) == 1:
            yield chosen


def quorum_size(system: System, state: State, index: int, handler: Handler) -> int:
    quorum = handler.quorum
    if quorum is None:
        return 1
    if isinstance(quorum, Quorum):
        return system.quorum_size(quorum)
    size = quorum if isinstance(quorum, int) else quorum(make_process(system, state, index))
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= len(system.classes):
        raise ModelError(f"{handler.name}: a quorum of {size!r}")
    return size


def crashes(system: System, state: State, index: int) -> Iterator[Transition]:
    for number, fault in enumerate(system.faults):
        left = state.crashes[number]
        if left > 0 and (not fault.roles or any(plays(system.classes[index], role) for role in fault.roles)):
            if fault.recovers:
                after = edit(state, index, status="down", fields=reset(system, state, index))
            else:
                after = edit(state, index, status="crashed", inbox=())
            budgets = (*state.crashes[:number], left - 1, *state.crashes[number + 1 :])
            yield Transition("crash", index, "crash", (), (), after._replace(crashes=budgets))


def reset(system: System, state: State, index: int) -> tuple[Frozen, ...]:
    """The fields after a crash: durable ones stay, the others are as at the start (of a spawned one: the default)."""
    cls = system.classes[index]
    now = make_process(system, state, index)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name not in cls.__plait_durable__:
            if index < len(system.processes):
                now.__dict__[field.name] = system.processes[index].__dict__[field.name]
            elif field.default is not dataclasses.MISSING:
                now.__dict__[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                now.__dict__[field.name] = field.default_factory()
    return freeze_fields(now)


def recoveries(system: System, state: State, index: int) -> Iterator[Transition]:
    back = edit(state, index, status="up")
    handler = next((h for h in system.classes[index].__plait_handlers__ if h.kind == "recovery"), None)
    if handler is None:
        yield Transition("recover", index, "recover", (), (), back)
    else:
        yield from execute(system, back, index, handler, "recover")


def network_steps(system: System, state: State, index: int) -> Iterator[Transition]:
    network, inbox = system.network, state.slots[index].inbox
    if network.lossy and state.losses != 0:
        left = None if state.losses is None else state.losses - 1
        for rest, lost in {without(inbox, i): inbox[i] for i in range(len(inbox))}.items():
            after = edit(state, index, inbox=rest)._replace(losses=left)
            yield Transition("lose", index, "lose", (lost,), (), after)
    if state.duplications:
        for entry in dict.fromkeys(inbox):
            after = edit(state, index, inbox=put(network, inbox, entry))._replace(duplications=state.duplications - 1)
            yield Transition("duplicate", index, "duplicate", (entry,), (), after)
