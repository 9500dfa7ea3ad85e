"""Random small systems that partial-order reduction really reduces: processes that have little to do with each other.

`random_systems.py` draws what models may contain; there everything talks to everything, and little can be put off. Here
processes count, toggle for ever, answer, gather and play ball, few messages pass between them, guards are on fields that
other handlers of the process change, and properties read fields of two processes. As there, a system is drawn as plain
data, a `Spec`, which is its name, and `build` makes the system from it. What could go on for ever costs fuel or ends
where it began (a clock, a ball that is passed on), so that there are finitely many states.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait.kernel.pid import Pid
from plait.model.faults import Crash
from plait.model.message import Message
from plait.model.monitor import Monitor
from plait.model.network import Network, duplicating, fifo, unordered
from plait.model.process import Process, action, durable, init, on, recovery
from plait.model.properties import Property
from plait.model.quorum import at_least, everyone, majority, some
from plait.model.system import System
from tests.oracle.explorer import Exploration, explore


class Note(Message):
    value: int


class Ack(Message):
    value: int


class Ball(Message):
    """Whoever takes one passes at most one on, so that this costs no fuel."""

    value: int = 0


MESSAGES: dict[str, type[Message]] = {"Note": Note, "Ack": Ack, "Ball": Ball}


class Tally(Monitor):
    count: int = 0
    last: Any = None

    def observe(self, process: Pid, event: Any) -> None:
        self.count = (self.count + 1) % 3
        self.last = (process, event)


# -- what is drawn


class Op(NamedTuple):
    name: str
    number: int


class Rule(NamedTuple):
    trigger: str
    """'action', or the message class."""
    guard: Op
    ops: tuple[Op, ...]
    quorum: str
    same: bool
    accept: Op | None = None
    """A guard over the whole set."""
    distinct: bool = True
    also: str = ""
    """A second message class."""


class Part(NamedTuple):
    """A process, of a class of its own."""

    rules: tuple[Rule, ...]
    peers: tuple[int, ...]
    """Whom it sends to."""
    x: int
    fuel: int
    init: tuple[Op, ...]
    recovery: tuple[Op, ...] | None
    durable: bool
    """Whether a crash leaves x."""


class Spec(NamedTuple):
    parts: tuple[Part, ...]
    network: Network
    faults: tuple[tuple[tuple[int, ...], int, bool], ...]
    monitored: bool
    spares: int
    """How many children the first two processes may have, each."""
    properties: tuple[tuple[str, Op, tuple[int, int, int]], ...]
    """Kind, predicate, and the processes that it is about."""


# -- from the data to the system


class Member(Process):
    """What all processes have. `quota` is how many children it may still have."""

    fuel: int = durable(0)
    quota: int = durable(0)
    open: bool = False


class Child(Member):
    """A spawned process: it does one thing."""

    x: int

    @action(when=lambda self: self.x < 2)
    def grow(self) -> None:
        self.x += 2
        self.announce("grown")

    @on(Note, where=lambda self, m: self.x == 2)
    def hear(self, m: Note) -> None:
        self.open = not self.open


SENDS = ("tell", "ask", "myself", "ack", "bounce", "spawn")
CHANGES = ("turn", "climb", "set", "flip", "copy", "choose")


def perform(self: Any, op: Op, received: tuple[Any, ...], peers: tuple[Pid, ...]) -> None:
    """One operation of a handler."""
    n = op.number
    match op.name:
        case "turn":
            self.x = (self.x + 1) % 3
        case "climb":
            self.x = min(self.x + 1, 2)
        case "set":
            self.x = n % 3
        case "flip":
            self.open = not self.open
        case "copy":
            self.x = received[-1].value % 3 if received else n % 3
        case "choose":
            self.x = self.choose({n % 3, (n + 1) % 3})
        case "announce":
            self.announce(self.x)
        case "fail":
            assert self.x != n % 3 or self.open, "drawn to fail"
        case "tell":
            self.send(peers[n % len(peers)], Note(n % 3))
        case "ask":
            self.send(peers, Note(self.x))
        case "myself":
            self.send(self.id, Note(n % 3))
        case "ack":
            self.send([m.sender for m in received] or peers[0], Ack(self.x))
        case "bounce":
            self.send(peers[n % len(peers)], Ball(n % 2))
        case "spawn":
            if self.quota > 0:
                self.quota -= 1
                child = self.spawn(Child, x=n % 2)
                if n > 3:
                    self.send(child, Note(0))
        case "nothing":
            pass


def is_free(rule: Rule) -> bool:
    """Whether a rule may happen without end: it sends nothing, or what cannot come back as more."""
    sends = {op.name for op in rule.ops if op.name in SENDS and op.name != "spawn"}
    return sends <= {"Note": {"ack"}, "Ball": {"bounce"}}.get(rule.trigger if not rule.also else "", set())


def action_guard(guard: Op, free: bool) -> Callable[[Any], Any]:
    n = guard.number % 3
    match guard.name:
        case "x is":
            return lambda self: self.x == n and (free or self.fuel > 0)
        case "x is not":
            return lambda self: (free or self.fuel > 0) and self.x != n
        case "below" | "value":
            return lambda self: self.x < n and (free or self.fuel > 0)
        case "open" | "open value":
            return lambda self: self.open and (free or self.fuel > 0)
        case "closed":
            return lambda self: not self.open and (free or self.fuel > 0)
    return lambda self: free or self.fuel > 0


def message_guard(guard: Op, free: bool) -> Callable[[Any, Any], Any]:
    """A guard as users write them: on attributes, the state first, so that it may be false whatever the message."""
    n = guard.number % 3
    match guard.name:
        case "x is":
            return lambda self, m: self.x == n and (free or self.fuel > 0)
        case "x is not":
            return lambda self, m: (free or self.fuel > 0) and self.x != n
        case "below":
            return lambda self, m: (free or self.fuel > 0) and self.x < n and m.value < 2
        case "open":
            return lambda self, m: self.open and (free or self.fuel > 0)
        case "closed":
            return lambda self, m: not self.open and (free or self.fuel > 0)
        case "open value":
            return lambda self, m: self.open and m.value >= n % 2 and (free or self.fuel > 0)
        case "value":
            return lambda self, m: (free or self.fuel > 0) and m.value != n
    return lambda self, m: free or self.fuel > 0


GUARDS = ("true", "true", "x is", "x is not", "below", "open", "closed", "open value", "value")


def by_content(ms: tuple[Any, ...]) -> tuple[Any, ...]:
    """Messages of one sender come in an order of their content that the oracle does not know."""
    return tuple(sorted(ms, key=lambda m: (m.sender, m.value)))


def accepting(rule: Rule) -> Callable[[Any, Any], Any] | None:
    """The guard over the whole set."""
    if rule.accept is None:
        return None
    name, n = rule.accept
    match name:
        case "sum":
            return lambda self, ms: sum(m.value for m in ms) % 2 == n % 2
        case "enough":
            return lambda self, ms: sum(m.value for m in ms) >= self.x
        case "senders":
            return lambda self, ms: len({m.sender for m in ms}) > n % 2
        case "size":
            return lambda self, ms: len(ms) == 1 + (self.x + n) % 3
    return lambda self, ms: self.open


def make_handler(rule: Rule, number: int, peers: tuple[Pid, ...]) -> Callable[..., Any]:
    free = is_free(rule)

    def act(self: Any, received: tuple[Any, ...]) -> None:
        self.fuel -= not free
        for op in rule.ops:
            perform(self, op, received, peers)

    if rule.trigger == "action":

        def acting(self: Any) -> None:
            act(self, ())

        acting.__name__ = f"action{number}"
        return action(when=action_guard(rule.guard, free))(acting)

    where = message_guard(rule.guard, free)
    if rule.quorum == "none":

        def receiving(self: Any, m: Any) -> None:
            act(self, (m,))

        receiving.__name__ = f"receive{number}"
        return on(MESSAGES[rule.trigger], where=where)(receiving)

    def gathering(self: Any, ms: Any) -> None:
        act(self, ms if rule.distinct else by_content(ms))

    gathering.__name__ = f"gather{number}"
    quorum: Any = {
        "two": 2,
        "majority": majority(Member),
        "everyone": everyone(Member),
        "some": some(2, Member),
        "function": lambda self: 1 + self.x % 2,
        "any": at_least(1),
        "more": at_least(2),
        "function or more": at_least(lambda self: 1 + self.x % 2, most=3),
    }[rule.quorum]
    kinds = [MESSAGES[name] for name in (rule.trigger, rule.also) if name]
    options: Any = {"same": ("value",) if rule.same else (), "accept": accepting(rule), "distinct": rule.distinct}
    return on(*kinds, where=where, quorum=quorum, **options)(gathering)


def make_class(number: int, part: Part) -> type[Process]:
    """The class of one process."""
    peers = tuple(Pid(f"P{peer}", 0) for peer in part.peers)
    namespace: dict[str, Any] = {"__annotations__": {"x": int}, "__module__": __name__}
    namespace["x"] = durable(0) if part.durable else 0
    for place, rule in enumerate(part.rules):
        handler = make_handler(rule, place, peers)
        namespace[handler.__name__] = handler

    def starting(self: Any) -> None:
        for op in part.init:
            perform(self, op, (), peers)

    def waking(self: Any) -> None:
        for op in part.recovery or ():
            perform(self, op, (), peers)

    if part.init:
        namespace["starting"] = init(starting)
    if part.recovery is not None:
        namespace["waking"] = recovery(waking)
    return types.new_class(f"P{number}", (Member,), {}, lambda body: body.update(namespace))


def build(spec: Spec) -> System:
    """The system of a spec; the same every time."""
    classes = [make_class(number, part) for number, part in enumerate(spec.parts)]
    return System(
        [
            cls(x=part.x, fuel=part.fuel, quota=spec.spares if number < 2 else 0)  # type: ignore[call-arg]
            for number, (cls, part) in enumerate(zip(classes, spec.parts, strict=True))
        ],
        network=spec.network,
        faults=[Crash(tuple(classes[i] for i in who), budget, back) for who, budget, back in spec.faults],
        monitors=[Tally()] if spec.monitored else [],
        properties=[
            make_property(i, kind, op, [Pid(f"P{p}", 0) for p in about])
            for i, (kind, op, about) in enumerate(spec.properties)
        ],
        spare={Child: 2 * spec.spares} if spec.spares else None,
        name=repr(spec),
    )


def make_property(number: int, kind: Any, op: Op, about: list[Pid]) -> Property:
    """A property; most predicates hold at first, so that a reachable one asks for the opposite."""
    n = op.number

    def predicate(s: Any) -> bool:
        a, b, c = (s[pid] for pid in about)
        match op.name:
            case "moved":
                return not (a.x == 1 + n % 2 and b.x == n // 4)
            case "both":
                return not (a.x == n % 3 and b.x == 1 + n // 4)
            case "order":
                return bool(a.x >= b.x)
            case "gate":
                return not (a.open and b.x == n % 3)
            case "three":
                return not (a.x == 1 + n % 2 and b.x == n // 2 % 2 and c.x == n // 4)
            case "sum":
                return bool(a.x + b.x + c.x != 1 + n % 5)
            case "pending":
                return not (len(a.inbox) > n % 2 and b.x == n % 3)
            case "crashed":
                return not (a.crashed and b.x == n % 3)
            case "children":
                return len(s.get(Child)) <= n % 2 or a.x == b.x
            case "grown":
                return not (any(child.x == 2 for child in s.get(Child)) and a.x == n % 3)
            case "tally" if s.system.monitors:
                return not (s[Tally].count == n % 3 and a.x == b.x)
            case "last" if s.system.monitors:
                return not (s[Tally].last == (a.id, n % 3) and b.x != n % 3)
        return True

    def unlike(s: Any) -> bool:
        return not predicate(s)

    return Property(f"{kind}{number}", kind, unlike if kind == "reachable" else predicate)


PREDICATES = (
    *("moved", "moved", "moved", "both", "both", "order", "gate", "three", "sum"),
    *("pending", "crashed", "children", "grown", "tally", "last"),
)


# -- strategies

NUMBERS = st.integers(0, 7)
NETWORKS = (
    *(unordered(),) * 5,
    *(fifo(),) * 2,
    duplicating(),
    unordered(losses=1),
    unordered(lossy=True),
    fifo(lossy=True),
    duplicating(lossy=True),
    duplicating(duplications=1),
)


def op(*names: str) -> st.SearchStrategy[Op]:
    return st.builds(Op, st.sampled_from(names), NUMBERS)


def guards() -> st.SearchStrategy[Op]:
    return op(*GUARDS)


def ops(low: int, high: int, *names: str) -> st.SearchStrategy[tuple[Op, ...]]:
    """Operations, no two of one name: a ball is not doubled."""
    return st.lists(op(*names), min_size=low, max_size=high, unique_by=lambda o: o.name).map(tuple)


def rule(
    trigger: st.SearchStrategy[str], body: st.SearchStrategy[tuple[Op, ...]], *quorums: str
) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        trigger=trigger,
        guard=guards(),
        ops=body,
        quorum=st.sampled_from(quorums or ("none",)),
        same=st.booleans() if quorums else st.just(False),
        accept=st.none(),
        distinct=st.just(True),
        also=st.just(""),
    )


ACTION = st.just("action")
TICK = rule(ACTION, ops(1, 2, *CHANGES, "flip", "announce", "nothing"))
LAUNCH = rule(
    ACTION, st.tuples(op("tell", "ask", "tell", "ask", "myself", "bounce", "spawn"), op(*CHANGES, "announce"))
)
HEAR = rule(st.sampled_from(("Note", "Note", "Ack")), ops(1, 2, *CHANGES, "fail", "announce"))
ANSWER = rule(st.just("Note"), st.tuples(op("ack")) | st.tuples(op(*CHANGES), op("ack")))
PLAY = rule(st.just("Ball"), st.tuples(op("bounce")) | st.tuples(op(*CHANGES), op("bounce")))
GATHER = rule(
    st.sampled_from(("Note", "Ack")),
    ops(1, 2, *CHANGES, "ack", "tell", "fail"),
    *("two", "two", "function", "majority", "some", "everyone"),
)
SETS = st.builds(
    lambda rule, **drawn: rule._replace(**drawn),
    rule(
        st.sampled_from(("Note", "Ack")), ops(1, 2, *CHANGES, "ack", "tell", "fail"), "any", "more", "function or more"
    ),
    accept=st.none() | op("sum", "enough", "senders", "size", "open"),
    distinct=st.booleans(),
    also=st.sampled_from(("", "Ball")),
)
"""Quorum transitions of all other kinds: guards over the set, several sizes, several types, equal senders."""
COUNT = st.builds(lambda n: Rule("action", Op("below", n), (Op("climb", 0),), "none", False), st.integers(1, 2))
CLOCK = st.sampled_from([Rule("action", Op("true", 0), (Op(name, 0),), "none", False) for name in ("flip", "turn")])
BODIES = st.one_of(
    st.tuples(COUNT),
    st.tuples(COUNT),
    st.tuples(CLOCK),
    st.tuples(TICK),
    st.tuples(LAUNCH),
    st.tuples(LAUNCH),
    st.tuples(LAUNCH, HEAR),
    st.tuples(LAUNCH, TICK),
    st.tuples(HEAR, COUNT),
    st.tuples(HEAR, COUNT),
    st.tuples(HEAR, TICK),
    st.tuples(HEAR, TICK),
    st.tuples(HEAR, HEAR, CLOCK),
    st.tuples(ANSWER),
    st.tuples(ANSWER, COUNT),
    st.tuples(GATHER),
    st.tuples(GATHER, HEAR),
    st.tuples(GATHER, COUNT),
    st.tuples(SETS),
    st.tuples(SETS, COUNT),
    st.tuples(PLAY),
    st.tuples(PLAY, COUNT),
    st.tuples(LAUNCH, PLAY),
    st.tuples(TICK, HEAR | ANSWER | GATHER | LAUNCH),
)


RACES = st.one_of(
    st.tuples(HEAR, COUNT),
    st.tuples(HEAR, TICK),
    st.tuples(HEAR, HEAR),
    st.tuples(HEAR, HEAR, TICK),
    st.tuples(HEAR, ANSWER),
    st.tuples(GATHER, HEAR),
    st.tuples(GATHER, TICK),
    st.tuples(SETS, HEAR),
    st.tuples(SETS, TICK),
    st.tuples(HEAR, LAUNCH),
)
"""A process in which something depends on what comes first."""


def parts(number: int, count: int, center: int) -> st.SearchStrategy[Part]:
    """A process of so many, most of which send to the center."""
    others = [other for other in range(count) if other != number]
    peers = st.sampled_from([*others, *[center] * (2 * len(others) if center != number else 0)])
    starts = st.tuples(op("nothing", "tell", "ask", "myself", "bounce", "announce"))
    return st.builds(
        Part,
        rules=RACES if number == center else BODIES,
        peers=st.lists(peers, min_size=1, max_size=2, unique=True).map(tuple),
        x=st.sampled_from((0, 0, 1)),
        fuel=st.sampled_from((1, 1, 1, 2)),
        init=st.just(()) | starts,
        recovery=st.none() | ops(1, 1, *CHANGES, "announce"),
        durable=st.booleans(),
    )


def properties(count: int) -> st.SearchStrategy[Any]:
    about = st.permutations(range(count)).map(lambda order: tuple(order[:3]))
    kind = st.sampled_from(("always", "always", "reachable", "final"))
    return st.lists(st.tuples(kind, op(*PREDICATES), about), min_size=1, max_size=3).map(tuple)


def faults(count: int) -> st.SearchStrategy[Any]:
    one = st.tuples(
        st.lists(st.integers(0, count - 1), min_size=1, max_size=2, unique=True).map(tuple), st.just(1), st.booleans()
    )
    none_or_one = st.tuples(), st.tuples(one)
    return st.sampled_from((0, 0, 0, 0, 1)).flatmap(lambda n: none_or_one[n])


@functools.cache  # a strategy takes longer to make than to draw from
def specs_of(count: int, center: int) -> st.SearchStrategy[Spec]:
    return st.builds(
        Spec,
        parts=st.tuples(*(parts(number, count, center) for number in range(count))),
        network=st.sampled_from(NETWORKS),
        faults=faults(count),
        monitored=st.booleans(),
        spares=st.sampled_from((0, 0, 0, 1)),
        properties=properties(count),
    )


def specs() -> st.SearchStrategy[Spec]:
    sizes = st.sampled_from([(count, center) for count in (3, 4, 4, 5) for center in range(count)])
    return sizes.flatmap(lambda size: specs_of(*size))


def explored_systems(limit: int = 400) -> st.SearchStrategy[tuple[System, Exploration]]:
    """Systems of at most `limit` states, with what the oracle found."""

    def explored(spec: Spec) -> tuple[System, Exploration]:
        system = build(spec)
        return system, explore(system, limit=limit)

    return specs().map(explored).filter(lambda pair: pair[1].complete)
