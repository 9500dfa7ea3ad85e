"""Whole global states and the transitions between them, made by running handlers on fresh copies."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

from plait import Clock, Message, ModelError, Pid, Process, Shared, System
from plait.model.process import Handler
from plait.model.quorum import Quorum
from plait.model.shared import reference
from plait.model.system import plays

Frozen = tuple[Any, ...]  # a value as a hashable tuple: its type, then its content
Entry = tuple[int, Frozen]  # a pending message: the position of its sender, and its content
Inbox = tuple[
    Entry, ...
]  # in canonical order: a sorted bag or set, a mailbox, or the queues one after the other by sender
Script = tuple[int, ...]  # which option each choice takes
ATOMS = frozenset({bool, int, float, str, bytes, type(None), Pid, type})
PLAIN = ATOMS - {float}  # those that are frozen as they are
CONTAINERS = frozenset({list, tuple, set, frozenset, dict})


class Slot(NamedTuple):
    status: str  # up, crashed, down or unborn
    fields: tuple[Frozen, ...] = ()
    inbox: Inbox = ()
    lead: int = 0  # with drift: how many ticks it is ahead of the slowest process


class State(NamedTuple):
    slots: tuple[Slot, ...]
    monitors: tuple[tuple[Frozen, ...], ...]
    budgets: tuple[float, ...]  # how many losses, duplications, and crashes of each fault may still happen
    shared: tuple[tuple[Frozen, ...], ...] = ()  # the fields of shared objects


class Transition(NamedTuple):
    kind: str
    process: int
    label: str
    consumed: Inbox
    choices: tuple[Frozen, ...]
    state: State | None  # None after a failure
    sends: tuple[Entry, ...] = ()  # receivers, and messages
    violates: str = "assertions"  # by a failure


class Fields:
    """The fields of shared objects in the state that user code sees at the moment: references lead here."""

    def __init__(self) -> None:
        self.values: dict[tuple[Pid, str], Any] = {}

    def load(self, system: System, state: State) -> None:
        cells = zip(system.cells, (field for fields in state.shared for field in fields), strict=True)
        self.values = {cell: thaw(field) for cell, field in cells}

    def frozen(self, system: System) -> tuple[tuple[Frozen, ...], ...]:
        ids = [shared.__dict__["_id"] for shared in system.shared]
        return tuple(tuple(freeze(v) for cell, v in self.values.items() if cell[0] == pid) for pid in ids)

    def read(self, shared: Pid, name: str) -> Any:
        return self.values[shared, name]

    def write(self, shared: Pid, name: str, value: Any) -> None:
        self.values[shared, name] = value


FIELDS = Fields()


def freeze(value: Any) -> Frozen:
    kind = type(value)
    if isinstance(value, Shared):
        return kind, value.__dict__["_id"]
    if is_atom(kind):
        return kind, plain(value)
    if isinstance(value, list | tuple):
        return kind, *map(freeze, tuple.__iter__(value) if isinstance(value, tuple) else value)
    if kind is deque:
        return kind, freeze(value.maxlen), *map(freeze, value)
    if kind is OrderedDict:  # the only dict whose order counts
        return kind, *map(freeze, value.items())
    if kind is defaultdict:
        return kind, freeze(value.default_factory), *sorted(map(freeze, value.items()), key=repr)
    if kind in (set, frozenset, dict, Counter):
        return kind, *sorted(map(freeze, value.items() if isinstance(value, dict) else value), key=repr)
    if hasattr(kind, "__dataclass_fields__") or kind is Clock:
        return kind, *(freeze(getattr(value, name)) for name in field_names(kind))
    raise ModelError(f"{value!r} is no model value")


def is_atom(kind: type) -> bool:
    """Whether values of this type have no parts."""
    return kind in ATOMS or issubclass(kind, enum.Enum | str | int | Fraction | Decimal)


def plain(value: Any) -> Any:
    """The content of an atom, such that different values have different contents, whatever their class says."""
    if isinstance(value, float | Decimal):
        return repr(value) if isinstance(value, float) else str(value)
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__add__(value, 0) if isinstance(value, int) and not isinstance(value, bool) else value


def thaw(frozen: Frozen) -> Any:
    """A fresh value: nothing in it is shared with any other state."""
    kind = frozen[0]
    if issubclass(kind, Shared):
        return reference(kind, frozen[1], FIELDS)
    if kind in CONTAINERS:
        return kind(thaw_each(frozen[1:]))
    if is_atom(kind):
        if kind in (float, Decimal):
            return kind(frozen[1])
        derived = kind not in ATOMS and type(frozen[1]) in (str, int)
        return type(frozen[1]).__new__(kind, frozen[1]) if derived else frozen[1]
    content = thaw_each(frozen[1:])
    if kind is deque:
        return deque(content[1:], content[0])
    if kind in (OrderedDict, Counter):
        return kind(dict(content))
    if kind is defaultdict:
        return defaultdict(content[0], content[1:])
    if issubclass(kind, tuple):
        return tuple.__new__(kind, content)
    value = kind.__new__(kind)
    for name, part in zip(field_names(kind), content, strict=True):
        object.__setattr__(value, name, part)  # as a frozen dataclass does it
    return value


def thaw_each(values: tuple[Frozen, ...]) -> list[Any]:
    """Fresh values. Most are plain: these need no call."""
    return [frozen[1] if frozen[0] in PLAIN else thaw(frozen) for frozen in values]


@functools.lru_cache(1000)  # and not all: random systems have classes of their own
def field_names(cls: Any) -> tuple[str, ...]:
    return cls.__plait_record__ if cls is Clock else tuple(field.name for field in dataclasses.fields(cls))


def freeze_fields(thing: Any) -> tuple[Frozen, ...]:
    return tuple(freeze(thing.__dict__[name]) for name in thing.__plait_fields__)


def make(cls: Any, fields: tuple[Frozen, ...], **more: Any) -> Any:
    thing = cls.__new__(cls)
    thing.__dict__.update(zip(cls.__plait_fields__, thaw_each(fields), strict=bool(fields)), **more)
    return thing


def make_process(system: System, state: State, index: int, **more: Any) -> Any:
    FIELDS.load(system, state)
    return make(system.classes[index], state.slots[index].fields, _id=system.pids[index], **more)


def make_message(system: System, entry: Entry) -> Message:
    message: Message = thaw(entry[1])
    message.__dict__["_sender"] = system.pids[entry[0]]
    return message


def edit(state: State, index: int, spend: int | None = None, **changes: Any) -> State:
    slots = (*state.slots[:index], state.slots[index]._replace(**changes), *state.slots[index + 1 :])
    return state._replace(slots=slots, budgets=tuple(b - (i == spend) for i, b in enumerate(state.budgets)))


def put(system: System, inbox: Inbox, entry: Entry) -> Inbox:
    if keeps(system) and entry in inbox:
        return inbox
    if system.network.full == "drop" and is_full(system, inbox, entry[0]):
        return inbox
    if system.network.kind == "mailbox":
        return (*inbox, entry)
    queues = system.network.kind == "fifo"  # sorting is stable: each sender's order stays
    return tuple(sorted((*inbox, entry), key=lambda e: (e[0], "" if queues else repr(e[1]))))


def is_full(system: System, inbox: Inbox, sender: int) -> bool:
    """Whether the channel from a sender has no room for another message."""
    capacity = system.network.capacity
    return capacity is not None and sum(entry[0] == sender for entry in inbox) >= capacity


def keeps(system: System) -> bool:
    """Whether delivery leaves the message where it is, so that an inbox is a set."""
    return system.network.kind == "duplicating" and system.network.duplications is None


def execute(
    system: System, state: State, index: int, handler: Handler, kind: str, consumed: Inbox = (), script: Script = ()
) -> Iterator[Transition]:
    """Run a handler on every combination of its choices: they follow a script, and then take the first option."""
    taken, choices, branches, sends, events, spawned = list(script), [], [], [], [], {}

    def choose(options: Iterable[Any]) -> Any:
        unsorted = isinstance(options, set | frozenset)
        values = sorted(options, key=lambda v: repr(freeze(v))) if unsorted else list(options)
        if len(choices) == len(taken):
            branches.extend((*taken, i) for i in range(1, len(values)))
            taken.append(0)
        chosen = values[taken[len(choices)]]
        choices.append(freeze(chosen))
        return chosen

    def spawn(role: type[Process], fields: dict[str, Any]) -> Pid:
        for i, slot in enumerate(state.slots):
            if system.classes[i] is role and slot.status == "unborn" and i not in spawned:
                spawned[i] = role(**fields)
                return system.pids[i]
        raise ModelError(f"spawn({role.__name__}): no free slot")

    may = SimpleNamespace(
        send=lambda to, message: sends.append((system.index[to], freeze(message))),
        announce=lambda event: events.append(freeze(event)),
        ids=lambda role: tuple(system.pids[i] for i in system.members(role)),
        choose=choose,
        spawn=spawn,
    )
    process = make_process(system, state, index, _run=may)
    messages = tuple(make_message(system, entry) for entry in consumed)
    try:
        handler.function(process, *([messages] if handler.quorum is not None else messages))
    except AssertionError:
        yield Transition(kind, index, handler.name, consumed, tuple(choices), None)
    except Exception as error:
        if isinstance(error, ModelError):
            raise
        yield Transition(kind, index, handler.name, consumed, tuple(choices), None, violates="no_exceptions")
    else:
        inbox = list(state.slots[index].inbox)
        for entry in () if keeps(system) else consumed:
            inbox.remove(entry)
        after = edit(state, index, fields=freeze_fields(process), inbox=tuple(inbox))
        after = after._replace(shared=FIELDS.frozen(system))
        for slot, newborn in spawned.items():
            after = edit(after, slot, status="up", fields=freeze_fields(newborn))
        possible, network = True, system.network
        if network.full == "block" and network.capacity is not None:
            counts = Counter(to for to, _ in sends)
            if any(count > network.capacity for count in counts.values()):
                raise ModelError(f"{handler.name} sends more than a channel holds")
        for to, message in sends:
            if after.slots[to].status != "crashed":
                possible &= network.full == "drop" or not is_full(system, after.slots[to].inbox, index)
                after = edit(after, to, inbox=put(system, after.slots[to].inbox, (index, message)))
        try:
            for event in events if possible else ():
                monitors = [make(type(m), fields) for m, fields in zip(system.monitors, after.monitors, strict=True)]
                for monitor in monitors:
                    monitor.observe(system.pids[index], thaw(event))
                after = after._replace(monitors=tuple(map(freeze_fields, monitors)))
            if possible:
                yield Transition(kind, index, handler.name, consumed, tuple(choices), after, tuple(sends))
        except LookupError:  # what the monitors of the random systems raise
            yield Transition(kind, index, handler.name, consumed, tuple(choices), None, violates="no_exceptions")
    for branch in branches:
        yield from execute(system, state, index, handler, kind, consumed, branch)


def initial_states(system: System) -> list[State]:
    """All initial states: the @init methods run one after the other, each with every combination of its choices."""
    network, spares = system.network, len(system.classes) - len(system.processes)
    losses = (math.inf if network.losses is None else network.losses) if network.lossy else 0
    state = State(
        (*(Slot("up", freeze_fields(p)) for p in system.processes), *[Slot("unborn")] * spares),
        tuple(map(freeze_fields, system.monitors)),
        (losses, network.duplications or 0, *(f.budget for f in system.faults)),
        tuple(map(freeze_fields, system.shared)),
    )
    states = [state]
    for index, process in enumerate(system.processes):
        for handler in (h for h in process.__plait_handlers__ if h.kind == "init"):
            started = [t.state for state in states for t in execute(system, state, index, handler, "init")]
            assert None not in started
            states = started  # type: ignore[assignment]
    return list(dict.fromkeys(states))


def initial(system: System) -> State:
    """The initial state of a system that has only one."""
    (state,) = initial_states(system)
    return state


def successors(system: System, state: State) -> Iterator[Transition]:
    yield from timeless(system, state)
    yield from ticks(system, state)


def timeless(system: System, state: State) -> Iterator[Transition]:
    """All transitions except ticks."""
    for index, (cls, slot) in enumerate(zip(system.classes, state.slots, strict=True)):
        if slot.status == "up":
            for handler in cls.__plait_handlers__:
                guards = guarded(system, state, index, handler)
                raised = [entries for entries, value in guards if value is None]
                for consumed in takes(system, state, index, handler, guards):
                    match accepted(system, state, index, handler, consumed):
                        case True:
                            yield from execute(system, state, index, handler, "step", consumed)
                        case None:
                            raised.append(consumed)
                for consumed in raised:
                    yield Transition("step", index, handler.name, consumed, (), None, violates="no_exceptions")
            for number, fault in enumerate(system.faults, 2):
                if state.budgets[number] and (not fault.roles or any(plays(cls, role) for role in fault.roles)):
                    down = edit(state, index, number, status="down", fields=reset(system, state, index))
                    after = down if fault.recovers else edit(state, index, number, status="crashed", inbox=())
                    yield Transition("crash", index, "crash", (), (), after)
        if slot.status == "down":
            back = edit(state, index, status="up")
            wake = next((h for h in cls.__plait_handlers__ if h.kind == "recovery"), None)
            simply = Transition("recover", index, "recover", (), (), back)
            yield from execute(system, back, index, wake, "recover") if wake else [simply]
        rests = {slot.inbox[:i] + slot.inbox[i + 1 :]: entry for i, entry in enumerate(slot.inbox)}
        for rest, lost in rests.items() if state.budgets[0] else ():
            yield Transition("lose", index, "lose", (lost,), (), edit(state, index, 0, inbox=rest))
        for entry in dict.fromkeys(slot.inbox) if state.budgets[1] else ():
            after = edit(state, index, 1, inbox=put(system, slot.inbox, entry))
            yield Transition("duplicate", index, "duplicate", (entry,), (), after)


def ticks(system: System, state: State) -> Iterator[Transition]:
    """The tick: of all processes at once, or with drift of each process that has clocks."""
    timed = [i for i, cls in enumerate(system.classes) if cls.__plait_clocks__]
    for index in timed:  # while an urgent step is enabled, there is none
        if not system.drift:
            after = state
            for other in timed:
                after = edit(after, other, fields=advanced(system, state, other))
        elif state.slots[index].lead == system.drift:
            continue
        else:
            after = edit(state, index, fields=advanced(system, state, index), lead=state.slots[index].lead + 1)
            if all(after.slots[i].lead for i in timed):  # the slowest one has caught up
                for other in timed:
                    after = edit(after, other, lead=after.slots[other].lead - 1)
        if after != state and not is_urgent(system, state):
            yield Transition("tick", index, "tick", (), (), after)
        if not system.drift:
            break


def rests(system: System, state: State) -> bool:
    """Whether time may go on for ever, and changes nothing. So a run may stay in the state."""
    timed = any(cls.__plait_clocks__ for cls in system.classes)
    return timed and not is_urgent(system, state) and next(ticks(system, state), None) is None


def is_urgent(system: System, state: State) -> bool:
    """Whether an urgent step is possible."""
    urgent = {(cls, handler.name) for cls in system.classes for handler in cls.__plait_handlers__ if handler.urgent}
    return bool(urgent) and any(
        t.kind == "step" and (system.classes[t.process], t.label) in urgent for t in timeless(system, state)
    )


def advanced(system: System, state: State, index: int) -> tuple[Frozen, ...]:
    """The fields after a tick: a clock that runs counts until it is above its bound. In a crashed process none runs."""
    cls, slot, after = system.classes[index], state.slots[index], []
    running = {"up": cls.__plait_clocks__, "down": cls.__plait_clocks__ & cls.__plait_durable__}.get(slot.status, set())
    for name, value in zip(cls.__plait_fields__, slot.fields, strict=False):
        if name in running:
            kind, (_, count), (_, runs), (_, bound) = value
            assert bound is not None, f"the bound of {cls.__name__}.{name} is not declared"
            value = (kind, (int, count + (runs and count <= bound)), (bool, runs), (int, bound))
        after.append(value)
    return tuple(after)


def moves(system: System, state: State, transitions: Iterable[Transition]) -> bool:
    """Whether a step leads out of the state, or time changes a clock. If not, the state is terminal."""
    time = any(advanced(system, state, i) != slot.fields for i, slot in enumerate(state.slots))
    return any(t.state != state and (counts(system, t) or (t.kind == "tick" and time)) for t in transitions)


def counts(system: System, t: Transition) -> bool:
    """Whether a state with this transition is not terminal: a step of a process, or a recovery that is assumed."""
    cls = system.classes[t.process]
    surely = any(one.recovers and plays(cls, one.role or Process) for one in system.fairness)
    return t.kind == "step" or (t.kind == "recover" and surely)


def is_for(system: System, handler: Handler, entry: Entry) -> bool:
    """Whether a handler is for a message: of one of its types, and for a quorum of its role."""
    of_role = handler.role is None or plays(system.classes[entry[0]], handler.role)
    return of_role and issubclass(entry[1][0], handler.messages)


def queues(inbox: Inbox) -> list[Inbox]:
    """The queue of each sender."""
    return [tuple(queue) for _, queue in itertools.groupby(inbox, lambda entry: entry[0])]


def guard(system: System, state: State, index: int, handler: Handler, *entries: Entry) -> bool | None:
    """The value of a guard; None if it raises an exception."""
    where: Any = handler.where or (lambda *_: True)
    try:
        return bool(where(make_process(system, state, index), *(make_message(system, entry) for entry in entries)))
    except ArithmeticError:  # what the guards of the random systems raise
        return None


def guarded(system: System, state: State, index: int, handler: Handler) -> list[tuple[Inbox, bool | None]]:
    """What the guard of a handler says about each message (about none, for an action)."""
    inbox = state.slots[index].inbox
    if handler.kind == "action":
        return [((), guard(system, state, index, handler))]
    found: list[tuple[Inbox, bool | None]] = []
    if system.network.kind == "mailbox":
        inbox = front(system, state, index)
    # A message of a queue can be taken only after, or with, those before it.
    for queue in queues(inbox) if system.network.kind == "fifo" else [(entry,) for entry in dict.fromkeys(inbox)]:
        for entry in queue[:1] if handler.distinct else queue:
            if not is_for(system, handler, entry):
                break
            value = guard(system, state, index, handler, entry)
            found.append(((entry,), value))
            if not value:
                break
    return found


def front(system: System, state: State, index: int) -> Inbox:
    """Of a mailbox, the first message that some handler takes, or whose guard raises; nothing if there is none."""
    handlers = [h for h in system.classes[index].__plait_handlers__ if h.kind == "message"]
    for entry in state.slots[index].inbox:
        for handler in handlers:
            if is_for(system, handler, entry) and guard(system, state, index, handler, entry) is not False:
                return (entry,)
    return ()


def accepted(system: System, state: State, index: int, handler: Handler, consumed: Inbox) -> bool | None:
    """The value of the guard over a whole set; None if it raises an exception."""
    if handler.accept is None:
        return True
    messages = tuple(make_message(system, entry) for entry in consumed)
    try:
        return bool(handler.accept(make_process(system, state, index), messages))
    except ArithmeticError:
        return None


def enabled(system: System, state: State, index: int, handler: Handler) -> Iterator[Inbox]:
    for consumed in takes(system, state, index, handler, guarded(system, state, index, handler)):
        if accepted(system, state, index, handler, consumed):
            yield consumed


def takes(
    system: System, state: State, index: int, handler: Handler, guards: list[tuple[Inbox, bool | None]]
) -> Iterator[Inbox]:
    """The sets of messages that a handler may take, as far as all but `accept` says."""
    quorum, possible = handler.size, [entries for entries, value in guards if value]
    if handler.quorum is None:
        yield from possible
    elif possible:
        least: Any = system.quorum_size(quorum) if isinstance(quorum, Quorum) else quorum
        least = least(make_process(system, state, index)) if callable(least) else least
        allowed = [entry for (entry,) in possible]
        for chosen in parts(system, state.slots[index].inbox, allowed, handler):
            values = {freeze(tuple(getattr(thaw(content), name) for name in handler.same)) for _, content in chosen}
            senders = {sender for sender, _ in chosen}
            if handler.distinct and len(senders) < len(chosen):
                continue
            if least <= len(chosen) <= handler.most(least) and len(values) == 1:
                yield chosen


def parts(system: System, inbox: Inbox, allowed: list[Entry], handler: Handler) -> Iterable[Inbox]:
    """All parts of an inbox that consist of allowed messages. Of a queue, the part is the first messages."""
    if system.network.kind == "fifo":
        beginnings = [[queue[:size] for size in range(len(queue) + 1)] for queue in queues(tuple(allowed))]
        return [tuple(itertools.chain(*each)) for each in itertools.product(*beginnings)]
    pool = allowed if handler.distinct else [entry for entry in inbox if entry in allowed]
    sizes = range(len(pool) + 1)
    return dict.fromkeys(itertools.chain.from_iterable(itertools.combinations(pool, size) for size in sizes))


def reset(system: System, state: State, index: int) -> tuple[Frozen, ...]:
    """The fields after a crash: durable ones stay, the others are as at the start (of a spawned one: the default)."""
    cls, now, first = system.classes[index], make_process(system, state, index), system.processes[index : index + 1]
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        start = first[0].__dict__[field.name] if first else default
        if start is not dataclasses.MISSING and field.name not in cls.__plait_durable__:
            now.__dict__[field.name] = start
    return freeze_fields(now)
