"""Random small systems, to compare the native engine with the oracle on.

A system is drawn as a `Spec`: plain data, shown in the system's name, from which `build` makes the system again. The
process classes are made from rules: a trigger, a guard, and a few operations that the handler performs. Every step that
could go on for ever costs fuel, a durable field that never grows, so that there are finitely many states.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait.kernel.pid import Pid
from plait.model.faults import Crash
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.network import Network, duplicating, fifo, mailbox, unordered
from plait.model.process import Process, action, durable, init, on, recovery
from plait.model.properties import Property, Quantified
from plait.model.quorum import at_least, everyone, majority, some
from plait.model.system import System
from tests.oracle.explorer import Exploration, explore


class Mode(enum.Enum):
    IDLE = 0
    BUSY = 1
    DONE = 2


@dataclasses.dataclass(frozen=True)
class Mark:
    value: Any
    who: Pid


class Note(Message):
    value: int


class Alarm(Note):
    """A handler of Note takes this too."""

    level: Mode = Mode.BUSY


class Digest(Message):
    value: int
    items: frozenset[int]
    about: tuple[Pid, Mode, dict[int, bool] | None] | None = None


MESSAGES: dict[str, type[Message]] = {"Note": Note, "Alarm": Alarm, "Digest": Digest}
MIXED = (None, 1, True, 1.0, "1", 0, False, (1,), [1], {1: True})


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3
    SHARE = 4


class Weight(int):
    def __repr__(self) -> str:
        return f"{int(self)} kg"


class Name(str):
    def __eq__(self, other: object) -> bool:  # capitals do not matter
        return str(self).lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(str(self).lower())


class Point(tuple[Any, ...]):
    def __new__(cls, x: Any, y: Any) -> Point:
        return super().__new__(cls, (x, y))


@dataclasses.dataclass
class Shape:
    at: Point


@dataclasses.dataclass
class Circle(Shape):
    radius: Fraction = Fraction(1, 2)


FORMS: dict[str, Callable[[], Any]] = {
    "deque": lambda: deque(maxlen=2),
    "Counter": Counter,
    "defaultdict": lambda: defaultdict(int),
    "OrderedDict": OrderedDict,
    "odd": lambda: (
        *(Right.READ | Right.SHARE, Right(0), Right.BOTH, Weight(1), Name("A"), Name("a"), Point(1, "x"), (1, "x")),
        *(Fraction(1), Decimal("1.0"), Decimal("1.00"), Circle(Point(1, 2)), Shape(Point(1, 2)), 1),
    ),
}
"""First values of the field `store`."""
OPTIONS: tuple[Any, ...] = ([0, 1], {0, 1, 2}, (1, 1), frozenset({2, 0}))


class Tally(Monitor):
    count: int = 0
    last: Any = None

    def observe(self, process: Pid, event: Any) -> None:
        if event[0] == "unknown":
            self.last = {0: "first", 2: "third"}[self.count]  # at other times it raises
        self.count = (self.count + 1) % 4
        self.last = event


class Crowd(Monitor):
    who: dict[Pid, set[int]] = dataclasses.field(default_factory=dict)

    def observe(self, process: Pid, event: Any) -> None:
        self.who.setdefault(process, set()).add(event[0])


# -- what is drawn


class Op(NamedTuple):
    name: str
    number: int


class Rule(NamedTuple):
    trigger: str
    """'action', or the message class."""
    quorum: str
    same: bool
    guard: Op
    ops: tuple[Op, ...]
    free: bool
    """Costs no fuel (where that leaves the space finite)."""
    accept: Op | None = None
    """A guard over the whole set."""
    distinct: bool = True
    also: str = ""
    """A second message class."""


class Kind(NamedTuple):
    """A process class."""

    rules: tuple[Rule, ...]
    init: tuple[Op, ...]
    recovery: tuple[Op, ...] | None
    durable: frozenset[str]


class Spec(NamedTuple):
    kinds: tuple[Kind, Kind, Kind]
    """Worker, Liar (plays Worker), Helper."""
    workers: tuple[tuple[int, int], ...]
    """Their initial x, and their fuel."""
    liars: int
    spares: int
    network: Network
    faults: tuple[tuple[tuple[str, ...], int, bool], ...]
    monitors: int
    properties: tuple[tuple[str, Op], ...]
    form: str
    """The first value of the field `store`."""


# -- from the data to the system


class Base(Process):
    """What all processes have. `quota` is how many children it may still have."""

    fuel: int = durable(1)
    quota: int = durable(0)
    ENOUGH = 1

    @property
    def load(self) -> int:
        return self.x + len(self.table)  # type: ignore[attr-defined, no-any-return]

    def differs(self, other: Any, n: int = 0) -> bool:
        return self.load != other.load + n or not self.runs()

    def runs(self) -> bool:
        return self.status == "up" and self.mode is not Mode.DONE  # type: ignore[attr-defined]


class Member(Base):
    """The role of workers and liars."""


FIELDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "x": (int, {"default": 0}),
    "mode": (Mode, {"default": Mode.IDLE}),
    "table": (dict, {"default_factory": dict}),
    "seen": (set, {"default_factory": set}),
    "log": (list, {"default_factory": list}),
    "mixed": (object, {"default": None}),
    "store": (object, {}),
}


class Cast(NamedTuple):
    """Whom operations may name."""

    helper: type[Process]
    workers: int
    spares: int
    form: str


def message(self: Any, number: int, received: tuple[Any, ...]) -> Message:
    value = (received[-1].value + 1) % 3 if received and number % 2 else self.x
    if number % 4 == 2:
        return Alarm(value, self.mode)
    if number % 4 == 3:
        return Digest(value, frozenset({value, 2}), (self.id, self.mode, {value: True}) if number > 3 else None)
    return Note(value)


def perform(self: Any, op: Op, received: tuple[Any, ...], cast: Cast) -> None:
    """One operation of a handler."""
    n = op.number
    match op.name:
        case "add":
            self.x = (self.x + 1 + n) % 3
        case "copy":
            self.x = received[0].value if received else n % 3
        case "mode":
            self.mode = list(Mode)[(self.mode.value + 1) % 3]
        case "table":
            self.table[received[0].sender if received else n % 2] = self.x
        case "seen":
            self.seen ^= {n % 3, self.id}
        case "log":
            self.log = [*self.log, Mark(self.x, self.id)][-2:]
        case "mixed":
            self.mixed = MIXED[n % len(MIXED)]
        case "store":
            change_store(self, n)
        case "choose":
            self.x = self.choose(OPTIONS[n % 4])
        case "choose twice":
            self.mode = self.choose([Mode.BUSY, Mode.DONE])
            if self.mode is Mode.DONE:
                self.mixed = self.choose({True, "1", (2, 3)})
        case "fail":
            assert self.x != n % 3, "drawn to fail"
        case "raise":
            self.x = 3 // (3 + self.x - n % 7)
        case "announce":
            self.announce((self.x, n % 2))
        case "announce unknown":
            self.announce(("unknown", n % 2))
        case "spawn":
            if self.quota > 0:
                self.quota -= 1
                child = self.spawn(cast.helper, x=self.x)
                if n % 2:
                    self.send(child, Note(n % 3))
        case "send":
            self.send(Pid("Worker", n % cast.workers), message(self, n, received))
        case "reply":
            self.send([m.sender for m in received] or self.id, message(self, n, received))
        case "broadcast":
            self.broadcast(Member, message(self, n, received), myself=n % 3 == 0)
        case "twice":
            self.send(Pid("Worker", n % cast.workers), Note(n % 2))
            self.send(Pid("Worker", n % cast.workers), Note(1))
        case "helper":
            if cast.spares:
                self.send(Pid("Helper", n % cast.spares), Note(self.x))
        case "nothing":
            pass


def change_store(self: Any, n: int) -> None:
    """Change the field `store`, which has a value of Python's library."""
    store = self.store
    if isinstance(store, deque):
        if n % 4 == 3:
            store.rotate()
        else:
            store.append((self.id, n % 2))  # the first one goes, if there are two
    elif isinstance(store, Counter):
        store[self.id] = (store[self.id] + store[n % 2] + n) % 3
    elif isinstance(store, defaultdict):
        store[self.id] = (store[n % 3] + 1) % 2  # to read a key adds it
    elif isinstance(store, OrderedDict):
        store[n % 3] = self.id
        store.move_to_end(n % 3, last=n < 6)
    else:
        self.mixed = copy.deepcopy(store[n % len(store)])


SENDS = ("send", "reply", "broadcast", "twice", "helper")
CHANGES = ("add", "add", "copy", "mode", "table", "seen", "log", "mixed", "store", "store", "choose", "choose twice")
UNUSUAL = (*("spawn",) * 5, "fail", "raise", "announce unknown", "nothing", "nothing")
EFFECTS = (*CHANGES, *SENDS, *SENDS, "announce", "announce", *UNUSUAL)


def holds(self: Any, guard: Op, received: Any = None) -> bool:
    n = guard.number
    match guard.name:
        case "x is":
            return bool(self.x == n % 3)
        case "x is not":
            return bool(self.x != n % 3)
        case "idle":
            return self.mode is not Mode.DONE
        case "value":
            return received is None or bool(received.value >= n % 2)
        case "equal":
            return received is None or bool(received.value != self.x)
        case "unseen":
            return received is None or received.sender not in self.table
        case "raises":
            return bool(1 % (1 + self.x - (n if received is None else received.value)) == n % 2)
    return True


GUARDS = ("true", "true", "true", "x is", "x is not", "idle", "value", "equal", "unseen", "raises")


def by_content(ms: tuple[Any, ...]) -> tuple[Any, ...]:
    """Messages of one sender come in an order of their content that the oracle does not know."""
    return tuple(sorted(ms, key=lambda m: (m.sender, m.value)))


def accepting(rule: Rule) -> Callable[[Any, Any], bool] | None:
    """The guard over the whole set."""
    if rule.accept is None:
        return None
    name, n = rule.accept

    def accept(self: Any, ms: Any) -> bool:
        total = sum(m.value for m in ms)
        match name:
            case "sum":
                return bool(total % 2 == n % 2)
            case "enough":
                return bool(total >= self.x)
            case "senders":
                return len({m.sender for m in ms}) > n % 2
            case "size":
                return len(ms) == 1 + (self.x + n) % 3
            case "raises":
                return bool(6 // (total - n % 4) != 3)
        return bool(self.x == total % 3)

    return accept


def make_handler(rule: Rule, number: int, cast: Cast, keeps: bool) -> Callable[..., Any]:
    """A handler; `keeps`: sending again changes nothing in the long run, so that sends may be free."""
    free = rule.free and (keeps or not any(op.name in SENDS for op in rule.ops))

    def act(self: Any, received: tuple[Any, ...]) -> None:
        self.fuel -= not free
        for op in rule.ops:
            perform(self, op, received, cast)

    def when(self: Any, m: Any = None) -> bool:
        return (free or self.fuel > 0) and holds(self, rule.guard, m)

    if rule.trigger == "action":

        def acting(self: Any) -> None:
            act(self, ())

        acting.__name__ = f"action{number}"
        return action(acting, when=when)  # type: ignore[no-any-return]

    if rule.quorum == "none":

        def receiving(self: Any, m: Any) -> None:
            act(self, (m,))

        receiving.__name__ = f"receive{number}"
        return on(MESSAGES[rule.trigger], where=when)(receiving)

    def gathering(self: Any, ms: Any) -> None:
        act(self, ms if rule.distinct else by_content(ms))

    gathering.__name__ = f"gather{number}"
    quorum = {
        "one": 1,
        "two": 2,
        "majority": majority(Member),
        "everyone": everyone(Member),
        "some": some(1, Member),
        "function": lambda self: 1 + self.x % 2,
        "any": at_least(1),
        "two or three": at_least(2, most=3),
        "more": at_least(majority(Member)),
        "function or more": at_least(lambda self: 1 + self.x % 2),
    }[rule.quorum]
    kinds = [MESSAGES[name] for name in (rule.trigger, rule.also) if name]
    options: Any = {"same": ("value",) if rule.same else (), "accept": accepting(rule), "distinct": rule.distinct}
    return on(*kinds, where=when, quorum=quorum, **options)(gathering)


def make_class(name: str, base: type[Process], kind: Kind, cast: Cast, keeps: bool, **role: Any) -> type[Process]:
    """A process class with the drawn fields and handlers."""
    namespace: dict[str, Any] = {"__annotations__": {}, "__module__": __name__}
    for field, (annotation, default) in FIELDS.items():
        # A spawned process has a field without a default, which a crash can't reset.
        given = {} if name == "Helper" and field == "x" else default
        if field == "store":
            given = {"default_factory": FORMS[cast.form]}
        namespace["__annotations__"][field] = annotation
        namespace[field] = dataclasses.field(**given, metadata={"durable": field in kind.durable})
    for number, rule in enumerate(kind.rules):
        handler = make_handler(rule, number, cast, keeps)
        namespace[handler.__name__] = handler

    def starting(self: Any) -> None:
        for op in kind.init:
            perform(self, op, (), cast)

    def waking(self: Any) -> None:
        for op in kind.recovery or ():
            perform(self, op, (), cast)

    namespace["starting"] = init(starting)
    if kind.recovery is not None:
        namespace["waking"] = recovery(waking)
    return types.new_class(name, (base,), role, lambda body: body.update(namespace))


def build(spec: Spec) -> System:
    """The system of a spec; the same every time."""
    keeps = spec.network.kind == "duplicating" and spec.network.duplications is None
    cast = Cast(Base, len(spec.workers), spec.spares, spec.form)  # helpers have no children
    helper = make_class("Helper", Base, spec.kinds[2], cast, keeps)
    cast = cast._replace(helper=helper)
    worker = make_class("Worker", Member, spec.kinds[0], cast, keeps)
    liar = make_class("Liar", Base, spec.kinds[1], cast, keeps, role=Member)
    roles: dict[str, type[Process]] = {"Member": Member, "Helper": helper, "Liar": liar}
    processes: list[Process] = [
        worker(x=x, fuel=fuel, quota=spec.spares if i == 0 else 0)  # type: ignore[call-arg]
        for i, (x, fuel) in enumerate(spec.workers)
    ]
    processes += [liar(x=1, fuel=1) for _ in range(spec.liars)]  # type: ignore[call-arg]
    return System(
        processes,
        network=spec.network,
        faults=[Crash(tuple(roles[r] for r in names), budget, back) for names, budget, back in spec.faults],
        monitors=[Tally(), Crowd()][: spec.monitors],
        properties=[make_property(i, kind, op, helper) for i, (kind, op) in enumerate(spec.properties)],
        spare={helper: spec.spares} if spec.spares else None,
        name=repr(spec),
    )


def make_property(number: int, kind: Any, op: Op, helper: type[Process]) -> Property:
    """A property; most predicates hold at first, so that a reachable one asks for the opposite."""
    n = op.number

    def predicate(s: Any) -> bool:
        match op.name:
            case "some x":
                return any(p.x == n % 3 for p in s[Member])
            case "sum":
                return bool(sum(p.x for p in s[Base] if p.status == "up") != n % 5)
            case "equal":
                assert len({p.x for p in s[Member]}) == 1
            case "modes":
                return any(p.mode is not Mode.DONE for p in s[Member])
            case "pending":
                return len(s.messages) <= n % 5
            case "alarms":
                return not any(isinstance(m, Alarm) and m.sender.index == n % 2 for m in s.messages)
            case "crashed":
                return not any(p.crashed for p in s.processes)
            case "down":
                return all(p.status != "down" for p in s[Base])
            case "born":
                return len(s.get(helper)) <= n % 2
            case "child":
                return all(p.x == n % 3 and p.fuel > 0 for p in s.get(helper))
            case "tally" if s.system.monitors:
                return bool(s[Tally].count != 1 + n % 3)
            case "crowd" if len(s.system.monitors) > 1:
                return len(s[Crowd].who) <= n % 2
            case "mixed":
                return all(p.mixed is not True for p in s[Base])
            case "fuel":
                return any(p.fuel > 0 for p in s[Base])
            case "store":
                return all(p.mixed != 1 and (len(p.store) < 2 or len(p.store) > 9) for p in s[Member])
            case "methods":
                return any(p.runs() or p.load > p.ENOUGH for p in s[Member])
            case "tables":
                return all(len(p.table) <= n % 2 and len(p.log) <= n % 3 and not p.seen for p in s[Member])
        return True

    over = {
        "each": Quantified(Base if n % 2 else Member, 1, lambda p: p.runs() or p.load < n % 4),
        "pairs": Quantified(Base if n % 2 else Member, 2, lambda a, b: a.differs(b, n % 3) or a.x < b.ENOUGH),
    }.get(op.name)
    if over is not None:
        predicate = over.predicate()

    def unlike(s: Any) -> bool:
        return not predicate(s)

    if over is not None and kind != "reachable":
        return Property(f"{kind}{number}", kind, predicate, quantified=over)
    return Property(f"{kind}{number}", kind, unlike if kind == "reachable" else predicate)


PREDICATES = (
    *("some x", "sum", "equal", "modes", "mixed", "fuel", "tables"),
    *("pending", "alarms", "crashed", "down", "born", "child", "tally", "crowd"),
    *("methods", "each", "pairs", "store"),
)


# -- strategies

NUMBERS = st.integers(0, 7)
NETWORKS = (
    unordered(),
    unordered(lossy=True),
    unordered(losses=1),
    duplicating(),
    duplicating(lossy=True),
    duplicating(losses=1),
    duplicating(duplications=1),
    duplicating(duplications=2, losses=1),
    fifo(),
    fifo(lossy=True),
    fifo(losses=2),
)


def ops(names: tuple[str, ...], low: int, high: int) -> st.SearchStrategy[tuple[Op, ...]]:
    return st.lists(st.builds(Op, st.sampled_from(names), NUMBERS), min_size=low, max_size=high).map(tuple)


def rules(triggers: tuple[str, ...], quorums: tuple[str, ...]) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        trigger=st.sampled_from(triggers),
        quorum=st.sampled_from(quorums),
        same=st.booleans(),
        guard=st.builds(Op, st.sampled_from(GUARDS), NUMBERS),
        ops=ops(EFFECTS, 1, 3),
        free=st.sampled_from((False,) * 5 + (True,)),
        accept=st.none(),
        distinct=st.just(True),
        also=st.just(""),
    )


def kinds(*rule: st.SearchStrategy[Rule]) -> st.SearchStrategy[Kind]:
    start = ("nothing", "add", "mode", "announce", "mixed")
    return st.builds(
        Kind,
        rules=st.tuples(*rule),
        init=st.tuples(st.builds(Op, st.sampled_from(start), NUMBERS), st.builds(Op, st.sampled_from(SENDS), NUMBERS)),
        recovery=st.none() | ops(("choose", *CHANGES, "choose", *SENDS, "choose twice", "announce", "fail"), 1, 2),
        durable=st.frozensets(st.sampled_from(sorted(FIELDS)), max_size=3),
    )


ACT = rules(("action",), ("none",))
RECEIVE = rules(("Note", "Note", "Alarm", "Digest"), ("none",))
GATHER = rules(("Note", "Note", "Digest"), ("two", "majority", "everyone", "some", "one", "function"))
SETS = st.builds(
    lambda rule, **drawn: rule._replace(**drawn),
    rules(("Note", "Digest"), ("two", "any", "two or three", "more", "function or more")),
    accept=st.none() | st.builds(Op, st.sampled_from(("sum", "enough", "senders", "size", "raises", "equal")), NUMBERS),
    distinct=st.booleans(),
    also=st.sampled_from(("", "Alarm", "Note")),
)
"""Quorum transitions of all other kinds: guards over the set, several sizes, several types, equal senders."""


def faults() -> st.SearchStrategy[tuple[tuple[tuple[str, ...], int, bool], ...]]:
    names = st.sampled_from((("Helper",), ("Member",), (), ("Liar", "Helper")))
    one = st.tuples(names, st.just(1), st.booleans()).map(lambda fault: (fault,))
    two = st.tuples(st.just(("Member",)), st.just(2), st.booleans()).map(lambda fault: (fault,))
    both = st.tuples(st.tuples(names, st.just(1), st.just(False)), st.tuples(st.just(()), st.just(1), st.just(True)))
    return st.sampled_from((0, 1, 0, 1, 2, 0, 1, 3)).flatmap(lambda n: (st.just(()), one, two, both)[n])


def specs() -> st.SearchStrategy[Spec]:
    x = st.integers(0, 2)
    fuel = ((1, 1), (2, 0), (1, 1, 0), (1, 0, 0))
    workers = {units: st.tuples(*(st.tuples(x, st.just(unit)) for unit in units)) for units in fuel}
    return st.builds(
        Spec,
        kinds=st.tuples(
            kinds(ACT, RECEIVE, GATHER | SETS, ACT | RECEIVE), kinds(ACT, RECEIVE | GATHER | SETS), kinds(ACT, RECEIVE)
        ),
        workers=st.sampled_from(fuel).flatmap(workers.__getitem__),
        liars=st.sampled_from((0, 0, 0, 1)),
        spares=st.sampled_from((1, 0, 2)),
        network=st.sampled_from(NETWORKS),
        faults=faults(),
        monitors=st.integers(0, 2),
        properties=st.lists(
            st.tuples(
                st.sampled_from(("always", "reachable", "final")), st.builds(Op, st.sampled_from(PREDICATES), NUMBERS)
            ),
            min_size=1,
            max_size=3,
        ).map(tuple),
        form=st.sampled_from(sorted(FORMS)),
    )


def explored_systems(limit: int = 2000) -> st.SearchStrategy[tuple[System, Exploration]]:
    """Systems of at most `limit` states, with what the oracle found."""

    def explored(spec: Spec) -> tuple[System, Exploration]:
        system = build(spec)
        return system, explore(system, limit=limit)

    return specs().map(explored).filter(lambda pair: pair[1].complete)


def mailbox_systems(limit: int = 2000) -> st.SearchStrategy[tuple[System, Exploration]]:
    """The same on a network of mailboxes, which has no quorums."""

    def alone(kind: Kind) -> Kind:
        single = [r._replace(quorum="none", same=False, accept=None, distinct=True, also="") for r in kind.rules]
        return kind._replace(rules=tuple(single))

    def explored(spec: Spec) -> tuple[System, Exploration]:
        one, two, three = map(alone, spec.kinds)
        system = build(spec._replace(network=mailbox(), kinds=(one, two, three)))
        return system, explore(system, limit=limit)

    return specs().map(explored).filter(lambda pair: pair[1].complete)


def systems(limit: int = 2000) -> st.SearchStrategy[System]:
    """Systems of at most `limit` states."""
    return explored_systems(limit).map(lambda pair: pair[0])
