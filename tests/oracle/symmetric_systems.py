"""Random small systems with symmetric roles, and some that only claim to be symmetric.

Workers start alike and treat process ids by equality only: they keep them in fields, sets, dicts, tuples, dataclasses, in
nestings of these and in messages, and send to them. They may create a child. A hub is alone in its role; guests are a second
symmetric role. In a *ring*, workers know who is next, and can be rotated only. A system with an *oddity* has one thing
that tells the workers apart, which may or may not ever matter. As in `random_systems.py`, a system is drawn as plain data,
a `Spec`, which is its name.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait.kernel.pid import Pid
from plait.model.faults import Crash
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.network import Network, duplicating, fifo, unordered
from plait.model.process import Process, action, durable, init, on
from plait.model.properties import Property
from plait.model.quorum import at_least
from plait.model.system import System
from tests.oracle.explorer import Exploration, explore


@dataclasses.dataclass(frozen=True)
class Mark:
    value: int
    who: frozenset[Pid]


class Note(Message):
    value: int
    about: Pid | None = None
    names: frozenset[Pid] = frozenset()


class Crowd(Monitor):
    """Who announced what, and who was last."""

    who: dict[Pid, frozenset[int]] = dataclasses.field(default_factory=dict)
    last: Pid | None = None
    odd: bool = False

    def observe(self, process: Pid, event: Any) -> None:
        if event is None:
            self.last = process if self.who[process] else None  # raises, if this is its first announcement
            return
        value, about = event
        self.who[process] = self.who.get(process, frozenset()) | {value}
        if not self.odd or process.index == 0:
            self.last = about or process


# -- what is drawn


class Op(NamedTuple):
    name: str
    number: int


class Rule(NamedTuple):
    trigger: str
    """'action', 'Note', 'Notes' for a quorum of two, or 'Sets' for sets of any size with a guard over the set."""
    guard: Op
    ops: tuple[Op, ...]


class Kind(NamedTuple):
    """A process class."""

    rules: tuple[Rule, ...]
    init: tuple[Op, ...]


class Spec(NamedTuple):
    worker: Kind
    hub: Kind
    guest: Kind
    workers: int
    guests: int
    children: bool
    """Whether a worker may create a child."""
    network: Network
    crashes: tuple[str, ...]
    """The roles of which one may crash, for ever or not."""
    monitored: bool
    properties: tuple[tuple[str, Op], ...]
    oddity: str
    """What tells workers apart, or 'none', or 'ring'."""
    form: str
    """The type of the field `store`."""


# -- from the data to the system


class Worker(Process): ...


class Hub(Process): ...


class Guest(Process): ...


class Child(Process):
    """Greets its parent, and counts the answers."""

    parent: Pid
    x: int
    greets: bool = True

    @action(when=lambda self: self.greets)
    def greet(self) -> None:
        self.greets = False
        self.send(self.parent, Note(self.x, self.id))

    @on(Note)
    def hear(self, m: Note) -> None:
        self.x = (self.x + 1) % 2


ROLES: dict[str, type[Process]] = {"Worker": Worker, "Hub": Hub, "Guest": Guest}
FIELDS: dict[str, tuple[Any, Any]] = {
    "fuel": (int, durable(1)),
    "quota": (int, durable(0)),
    "x": (int, 0),
    "friend": (Pid, None),
    "seen": (set, dataclasses.field(default_factory=set)),
    "table": (dict, durable(default_factory=dict)),
    "web": (dict, dataclasses.field(default_factory=dict)),
    "log": (tuple, ()),
    "mark": (Mark, None),
    "form": (str, durable("deque")),
    "store": (object, None),
}
STORES: dict[str, Callable[[], Any]] = {
    "deque": lambda: deque(maxlen=2),
    "Counter": Counter,
    "defaultdict": lambda: defaultdict(frozenset),
    "OrderedDict": OrderedDict,
}
"""First values of the field `store`, by form."""
SENDS = ("tell", "reply", "broadcast", "friendly", "pass on", "ask")
CHANGES = ("add", "add", "copy", "befriend", "elect", "see", "table", "log", "mark", "count", "swap", "weave", "learn")
CHANGES += ("store", "store")
ODD_STEPS = ("index", "first", "least", "order", "is first")
ODDITIES = (*ODD_STEPS, "initial", "init", "property", "monitor", "observe")


def following(self: Any) -> Pid:
    """The next worker in the ring."""
    ring: list[Pid] = list(self.ids(Worker))
    return ring[(ring.index(self.id) + 1) % len(ring)]


def perform(self: Any, op: Op, received: tuple[Any, ...], target: type[Process], oddity: str) -> None:
    """One operation of a handler."""
    n, senders = op.number, frozenset(m.sender for m in received)
    match op.name:
        case "add":
            self.x = (self.x + 1) % 3
        case "copy":
            self.x = sum(m.value for m in received) % 3
        case "befriend":
            self.friend = self.choose(senders) if senders else self.id
        case "elect":
            self.friend = following(self) if oddity == "ring" else self.choose(self.ids(Worker))
        case "see":
            self.seen ^= senders or {self.id}
        case "table":
            self.table.update({m.sender: m.value for m in received} or {self.id: self.x})
        case "log":
            self.log = (*self.log, senders or self.id)[-2:]
        case "mark":
            self.mark = Mark(self.x, senders)
        case "count":
            self.x = len(self.seen | self.table.keys()) % 3
        case "swap":
            self.friend = None if self.friend else self.id
        case "weave":
            self.web.update(
                {who: (self.friend, frozenset(self.seen), {self.id: self.x}) for who in senders or {self.id}}
            )
        case "learn":
            self.seen |= frozenset[Pid]().union(*(m.names for m in received))
        case "store":
            match self.form:
                case "deque":
                    self.store.append((senders or self.id, n % 2))
                case "Counter":
                    for who in senders or {self.id}:
                        self.store[who] = (self.store[who] + 1) % 2
                case "defaultdict":
                    for who in senders or {self.id}:
                        self.store[who] ^= {self.id}
                case "OrderedDict":
                    self.store.pop(senders, None)
                    self.store[senders] = self.friend
        case "spawn":
            if self.quota:
                self.quota -= 1
                self.friend = self.spawn(Child, parent=self.friend or self.id, x=self.x % 2)
        case "announce":
            self.announce((self.x, self.friend))
        case "fail":
            assert self.x != n % 3 or self.friend == self.id, "drawn to fail"
        case "announce again":
            self.announce(None)
        case "raise":
            self.x = 2 // (2 + self.x - n % 5)
        case "tell":
            self.send(self.ids(target), Note(self.x, self.friend, frozenset(self.seen)))
        case "reply":
            self.send(sorted(senders) or self.ids(Hub), Note(n % 2, self.friend))
        case "broadcast":
            self.broadcast(Worker, Note(n % 2), myself=n % 3 == 0)
        case "friendly":
            if self.friend:
                self.send(self.friend, Note(1, self.id))
        case "pass on":
            contents = {(m.value, m.about) for m in received}
            if len(contents) == 1:  # among different messages, to choose the first would not be symmetric
                ((value, about),) = contents
                self.send(about or self.id, Note(value))
        case "ask":
            one = following(self) if oddity == "ring" else self.choose(self.ids(Worker))
            self.send(one, Note(n % 2))
        case "odd":
            match oddity:
                case "index":
                    self.x = self.id.index % 3
                case "first":
                    self.friend = self.ids(Worker)[0]
                case "least":
                    self.friend = min({*self.ids(Worker)} - {self.id})
                case "order":
                    self.log = tuple(m.sender for m in received)[-2:]
                case "is first":
                    self.x = 2 if self.ids(Worker)[0] in senders else self.x


def action_guard(guard: Op, free: bool) -> Callable[[Any], Any]:
    n = guard.number % 3
    match guard.name:
        case "x is":
            return lambda self: self.x == n and (free or self.fuel > 0)
        case "friend":
            return lambda self: self.friend is not None and (free or self.fuel > 0)
        case "unseen":
            return lambda self: self.id not in self.seen and (free or self.fuel > 0)
        case "raises":
            return lambda self: 1 // (self.x != n) and (free or self.fuel > 0)
    return lambda self: free or self.fuel > 0


def message_guard(guard: Op, free: bool) -> Callable[[Any, Any], Any]:
    n = guard.number % 3
    match guard.name:
        case "x is":
            return lambda self, m: self.x == n and (free or self.fuel > 0)
        case "friend":
            return lambda self, m: self.friend != m.sender and (free or self.fuel > 0)
        case "unseen":
            return lambda self, m: m.sender not in self.seen and (free or self.fuel > 0)
        case "raises":
            return lambda self, m: 1 // (m.sender != self.friend) and (free or self.fuel > 0)
        case "value":
            return lambda self, m: (free or self.fuel > 0) and m.value >= n % 2
    return lambda self, m: free or self.fuel > 0


GUARDS = ("true", "true", "true", "x is", "friend", "unseen", "value", "raises")


def make_handler(rule: Rule, number: int, target: type[Process], oddity: str) -> Callable[..., Any]:
    free = not any(op.name in SENDS for op in rule.ops)

    def act(self: Any, received: tuple[Any, ...]) -> None:
        self.fuel -= not free
        for op in rule.ops:
            perform(self, op, received, target, oddity)

    if rule.trigger == "action":

        def acting(self: Any) -> None:
            act(self, ())

        acting.__name__ = f"action{number}"
        return action(when=action_guard(rule.guard, free))(acting)

    where = message_guard(rule.guard, free)
    if rule.trigger == "Note":

        def receiving(self: Any, m: Any) -> None:
            act(self, (m,))

        receiving.__name__ = f"receive{number}"
        return on(Note, where=where)(receiving)

    def gathering(self: Any, ms: Any) -> None:
        act(self, ms)

    gathering.__name__ = f"gather{number}"
    if rule.trigger == "Sets":

        def accept(self: Any, ms: Any) -> bool:
            return (sum(m.value for m in ms) + len(ms)) % 2 == 1 or self.friend in {m.sender for m in ms}

        return on(Note, where=where, quorum=at_least(1), accept=accept)(gathering)
    return on(Note, where=where, quorum=2)(gathering)


def make_class(role: str, kind: Kind, target: type[Process], oddity: str, form: str) -> type[Process]:
    namespace: dict[str, Any] = {"__annotations__": {}, "__module__": __name__}
    for name, (annotation, default) in FIELDS.items():
        namespace["__annotations__"][name] = annotation
        namespace[name] = default
    namespace["form"] = durable(form)
    namespace["store"] = dataclasses.field(default_factory=STORES[form])
    for number, rule in enumerate(kind.rules):
        handler = make_handler(rule, number, target, oddity)
        namespace[handler.__name__] = handler

    def starting(self: Any) -> None:
        for op in kind.init:
            perform(self, op, (), target, oddity)
        if oddity == "init" and self.id == Pid("AWorker", 0):
            self.send(self.ids(Hub), Note(2))

    namespace["starting"] = init(starting)
    return types.new_class(f"A{role}", (ROLES[role],), {}, lambda body: body.update(namespace))


def build(spec: Spec) -> System:
    """The system of a spec; the same every time."""
    worker = make_class("Worker", spec.worker, Hub, spec.oddity, spec.form)
    hub = make_class("Hub", spec.hub, Worker, "none", spec.form)
    guest = make_class("Guest", spec.guest, Worker, "none", spec.form)
    odd = Pid("AWorker", 0) if spec.oddity == "monitor" else None
    monitors = [Crowd(last=odd, odd=spec.oddity == "observe")] if spec.monitored else []
    workers: list[Process] = [
        worker(x=int(spec.oddity == "initial" and i == 0), quota=int(spec.children))  # type: ignore[call-arg]
        for i in range(spec.workers)
    ]
    return System(
        [hub(), *workers, *(guest() for _ in range(spec.guests))],
        network=spec.network,
        faults=[Crash((ROLES[role],), 1, role == "Worker") for role in spec.crashes if role != "Guest" or spec.guests],
        monitors=monitors,
        spare={Child: spec.workers} if spec.children else None,
        properties=[make_property(i, kind, op, spec.oddity) for i, (kind, op) in enumerate(spec.properties)],
        symmetric=[Guest] * bool(spec.guests) if spec.oddity == "ring" else [Worker, *[Guest] * bool(spec.guests)],
        rotations=[Worker] if spec.oddity == "ring" else [],
        name=repr(spec),
    )


def make_property(number: int, kind: Any, op: Op, oddity: str) -> Property:
    n = op.number

    def predicate(s: Any) -> bool:
        if oddity == "property" and s[Worker][0].x == n % 3:
            return False
        match op.name:
            case "apart":
                return len({w.x for w in s[Worker]}) <= 1 + n % 2
            case "sum":
                return bool(sum(w.x for w in s[Worker]) != 1 + n % 4)
            case "friends":
                return len({w.friend for w in s[Worker]} - {None}) <= n % 2
            case "mutual":
                return not any(w.friend is not None and w.friend != w.id for w in s[Worker])
            case "hub":
                hub = s[Hub][0]
                return not (hub.x == n % 3 and len(hub.seen | hub.table.keys()) == 1 + n // 4)
            case "named":
                hub = s[Hub][0]
                return all(s[pid].x == hub.x for pid in hub.seen)
            case "stored":
                return all(len(w.store) <= n % 3 for w in s[Worker])
            case "pending":
                return bool(sum(m.value for m in s.messages) <= n % 3)
            case "crowd" if s.system.monitors:
                return s[Crowd].last is None or s[Crowd].last in s[Crowd].who
            case "crashed":
                return bool(sum(p.crashed for p in s.processes) <= n % 2)
        return True

    def unlike(s: Any) -> bool:
        return not predicate(s)

    return Property(f"{kind}{number}", kind, unlike if kind == "reachable" else predicate)


PREDICATES = ("apart", "apart", "sum", "friends", "mutual", "hub", "named", "stored", "pending", "crowd", "crashed")


# -- strategies

NUMBERS = st.integers(0, 7)
NETWORKS = (
    *(unordered(),) * 4,
    fifo(),
    duplicating(),
    unordered(losses=1),
    fifo(losses=1),
    duplicating(duplications=1),
)


def op(*names: str) -> st.SearchStrategy[Op]:
    return st.builds(Op, st.sampled_from(names), NUMBERS)


def rule(trigger: str, *body: st.SearchStrategy[Op]) -> st.SearchStrategy[Rule]:
    return st.builds(Rule, trigger=st.just(trigger), guard=op(*GUARDS), ops=st.tuples(*body))


CHANGE = op(*CHANGES, "announce", "announce again", "fail", "raise")
SEND = op(*SENDS)
ONCE = st.builds(Rule, trigger=st.just("action"), guard=st.just(Op("x is", 0)), ops=st.just((Op("add", 0),)))


def kinds(*first: st.SearchStrategy[Op]) -> st.SearchStrategy[Kind]:
    """A class; its handlers begin with what is given."""
    start = rule("action", *first, CHANGE, SEND) | rule("action", *first, SEND)
    heard = rule("Note", *first, CHANGE) | rule("Note", *first, CHANGE, CHANGE) | rule("Note", *first, CHANGE, SEND)
    gathered = rule("Notes", *first, CHANGE) | rule("Notes", *first, CHANGE, SEND) | rule("Sets", *first, CHANGE)
    return st.builds(
        Kind,
        rules=st.one_of(
            st.tuples(start),
            st.tuples(start, heard),
            st.tuples(heard),
            st.tuples(heard, ONCE),
            st.tuples(gathered),
            st.tuples(start, gathered),
        ),
        init=st.just(()) | st.tuples(op("see", "swap", "tell", "broadcast")),
    )


@functools.cache  # a strategy takes longer to make than to draw from
def specs_with(oddity: str, children: bool) -> st.SearchStrategy[Spec]:
    first = ["odd"] * (oddity in ODD_STEPS) + ["spawn"] * children
    return st.builds(
        Spec,
        worker=kinds(*(st.just(Op(name, 0)) for name in first)),
        hub=kinds(),
        guest=kinds(),
        workers=st.sampled_from((2, 3, 3, 2, 4)),
        guests=st.sampled_from((0, 0, 0, 2)),
        children=st.just(children),
        network=st.sampled_from(NETWORKS),
        crashes=st.sampled_from(((), (), (), ("Worker",), ("Guest",), ("Hub",))),
        monitored=st.just(True) if oddity in ("monitor", "observe") else st.booleans(),
        properties=st.lists(
            st.tuples(st.sampled_from(("always", "reachable", "final")), op(*PREDICATES)), min_size=1, max_size=2
        ).map(tuple),
        oddity=st.just(oddity),
        form=st.sampled_from(sorted(STORES)),
    )


def specs(oddities: tuple[str, ...] = ("none",)) -> st.SearchStrategy[Spec]:
    drawn = st.tuples(st.sampled_from(oddities), st.sampled_from((False, False, True)))
    return drawn.flatmap(lambda given: specs_with(*given))


def explored_systems(
    limit: int = 400, oddities: tuple[str, ...] = ("none",)
) -> st.SearchStrategy[tuple[System, Exploration]]:
    """Systems of at most `limit` states, with what the oracle found."""

    def explored(spec: Spec) -> tuple[System, Exploration]:
        system = build(spec)
        return system, explore(system, limit=limit)

    return specs(oddities).map(explored).filter(lambda pair: pair[1].complete)
