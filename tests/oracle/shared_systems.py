"""Random small systems whose processes share state: what steps, guards, quorums and properties read and write there.

All processes are treated alike, so that symmetry applies to the workers. A step costs fuel, unless it is free.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait import (
    Message,
    Monitor,
    Pid,
    Process,
    Shared,
    System,
    action,
    at_least,
    durable,
    field,
    fifo,
    init,
    on,
    strong,
    unordered,
    weak,
)
from plait.model.faults import Crash
from plait.model.network import Network
from plait.model.process import recovery
from plait.model.properties import Property
from plait.model.temporal import Atom
from tests.oracle.cyclic_systems import Drawn
from tests.oracle.explorer import Exploration, explore


class Flag(Shared):
    up: bool = False


class Store(Shared):
    a: int = 0
    b: int = 0
    who: Pid | None = None
    table: dict[Pid, int] = field(default_factory=dict)
    queue: list[int] = field(default_factory=list)
    flag: Flag | None = None

    def bump(self, number: int) -> int:
        """Add to one field or the other."""
        if number % 2:
            self.a = (self.a + 1) % 3
        else:
            self.b = (self.b + self.a) % 2
        return self.b

    @property
    def full(self) -> bool:
        return self.a + self.b > 2


class Note(Message):
    value: int
    about: Flag | None = None


class Tally(Monitor):
    last: Any = None

    def observe(self, process: Pid, event: Any) -> None:
        self.last = event


class Op(NamedTuple):
    name: str
    number: int


class Rule(NamedTuple):
    trigger: (
        str  # action, note, gather (two notes, or as many as a shared field says), or accept (a guard over the set)
    )
    guard: Op
    ops: tuple[Op, ...]
    free: bool  # costs no fuel


class Spec(NamedTuple):
    workers: int
    rules: tuple[Rule, ...]
    helper: tuple[Rule, ...]  # of a process of another class; none if there are no rules
    init: tuple[Op, ...]
    wake: tuple[Op, ...] | None
    fuel: int
    network: Network
    faults: tuple[tuple[int, bool], ...]
    spares: int
    monitored: bool
    properties: tuple[tuple[str, Op], ...]
    symmetric: bool


class Base(Process):
    store: Store
    flags: tuple[Flag, Flag]
    x: int = 0
    fuel: int = durable(1)


CHANGES = ("x+", "a+", "b=x", "x=a", "take", "give", "table", "push", "pop", "flag", "if", "bump", "full", "nested")
CHOICES = ("choose", "choose b")
SENDS = ("send", "send flag", "note")
UNUSUAL = ("announce", "announce", "spawn", "spawn", "fail", "raise")


def perform(self: Any, op: Op, received: tuple[Any, ...], helper: type[Process]) -> None:
    """One operation of a handler."""
    n, store, flag = op.number, self.store, self.flags[op.number % 2]
    match op.name:
        case "x+":
            self.x = (self.x + 1 + n % 2) % 3
        case "a+":
            store.a = (store.a + 1) % 3
        case "b=x":
            store.b = self.x
        case "x=a":
            self.x = store.a
        case "take":
            store.who = self.id
        case "give":
            store.who = None
        case "table":
            store.table[self.id] = self.x
        case "push":
            store.queue.append(self.x)
            store.queue = store.queue[-2:]
        case "pop":
            if store.queue:
                self.x = store.queue.pop(0)
        case "flag":
            flag.up = not flag.up
        case "if":
            if flag.up:
                self.x = store.b
            else:
                store.a = n % 3
        case "bump":
            self.x = store.bump(n)
        case "full":
            if not store.full:
                store.b = n % 3
        case "nested":
            if store.flag is not None and store.flag.up:
                store.flag = None
            else:
                store.flag = flag
        case "choose":
            self.x = self.choose([store.a, 2])
        case "choose b":
            store.b = self.choose({0, 1})
            if store.b and self.choose([False, True]):
                store.b = 2
        case "send":
            self.broadcast(Worker, Note(store.a), myself=n % 2 == 0)
        case "send flag":
            self.broadcast(Worker, Note(self.x, flag), myself=False)
        case "note":
            for m in received:
                if m.about is not None:
                    m.about.up = not m.about.up
                self.x = m.value
        case "announce":
            self.announce((self.x, store.b))
        case "spawn":
            if store.who is None and len(store.table) < 1:
                store.table[self.id] = 0
                self.spawn(helper, store=store, flags=self.flags, x=store.a)
        case "fail":
            assert store.a != n % 3, "drawn to fail"
        case "raise":
            self.x = 2 // (3 + store.b - n % 6)


class Worker(Base):
    """The role of the workers."""


GUARDS = ("true", "x is", "a is", "free", "mine", "flag", "unknown", "short", "full", "value", "about", "raises")


def holds(self: Any, guard: Op, m: Any) -> bool:
    n, store = guard.number, self.store
    match guard.name:
        case "x is":
            return bool(self.x == n % 3)
        case "a is":
            return bool(store.a == n % 3)
        case "free":
            return store.who is None
        case "mine":
            return bool(store.who == self.id)
        case "flag":
            return bool(self.flags[n % 2].up)
        case "unknown":
            return self.id not in store.table
        case "short":
            return bool(self.x == n % 2 and store.b == n % 3)
        case "full":
            return not store.full
        case "value":
            return m is None or bool(m.value == store.b)
        case "about":
            return m is None or m.about is None or bool(m.about.up)
        case "raises":
            return bool(2 // (2 + store.a - n % 5) > 0)
    return True


def make_handler(rule: Rule, number: int, helper: type[Process]) -> Callable[..., Any]:
    free = rule.free and not any(op.name in SENDS for op in rule.ops)

    def act(self: Any, received: tuple[Any, ...]) -> None:
        self.fuel -= not free
        for op in rule.ops:
            perform(self, op, received, helper)

    def when(self: Any, m: Any = None) -> bool:
        return (free or self.fuel > 0) and holds(self, rule.guard, m)

    if rule.trigger == "action":

        def acting(self: Any) -> None:
            act(self, ())

        acting.__name__ = f"action{number}"
        return action(acting, when=when)  # type: ignore[no-any-return]
    if rule.trigger == "note":

        def receiving(self: Any, m: Any) -> None:
            act(self, (m,))

        receiving.__name__ = f"receive{number}"
        return on(Note, where=when)(receiving)

    def gathering(self: Any, ms: Any) -> None:
        act(self, ms)

    gathering.__name__ = f"gather{number}"
    if rule.trigger == "accept":

        def enough(self: Any, ms: Any) -> bool:
            return len(ms) > self.store.b % 2 and bool(self.store.who is None or rule.guard.number % 3)

        return on(Note, where=when, quorum=at_least(1), accept=enough)(gathering)
    quorum: Any = 2 if rule.guard.number % 2 else lambda self: 1 + self.store.a % 2
    return on(Note, where=when, quorum=quorum)(gathering)  # type: ignore[arg-type]


def make_class(name: str, base: type[Process], rules: tuple[Rule, ...], spec: Spec, helper: Any) -> Any:
    namespace: dict[str, Any] = {"__module__": __name__}
    for number, rule in enumerate(rules):
        handler = make_handler(rule, number, helper)
        namespace[handler.__name__] = handler

    def starting(self: Any) -> None:
        for op in spec.init:
            perform(self, op, (), helper)

    def waking(self: Any) -> None:
        for op in spec.wake or ():
            perform(self, op, (), helper)

    if base is Worker:
        namespace["starting"] = init(starting)
        if spec.wake is not None:
            namespace["waking"] = recovery(waking)
    return types.new_class(name, (base,), {}, lambda body: body.update(namespace))


def build(spec: Spec, *, worker: Callable[[Any], Any] = lambda cls: cls, drift: int = 0) -> System:
    """The system of a spec; the same every time. The class of its workers may get more fields and handlers."""
    helper = make_class("Helper", Base, spec.helper, spec, Base)
    worker = worker(make_class("Worker", Worker, spec.rules, spec, helper))
    store, flags = Store(), (Flag(), Flag(up=True))
    processes: list[Process] = [worker(store=store, flags=flags, fuel=spec.fuel) for _ in range(spec.workers)]
    processes += [helper(store=store, flags=flags)] if spec.helper else []
    symmetric = [worker] if spec.symmetric and spec.workers > 1 else []
    return System(
        processes,
        network=spec.network,
        faults=[Crash((Worker,), budget, back) for budget, back in spec.faults],
        monitors=[Tally()] if spec.monitored else [],
        properties=[make_property(i, kind, op) for i, (kind, op) in enumerate(spec.properties)],
        spare={helper: spec.spares} if spec.spares else None,
        symmetric=symmetric,
        drift=drift,
        name=repr(spec),
    )


PREDICATES = ("a", "sum", "who", "through", "flags", "pending", "table", "queue", "up", "tally", "some")


def judge(s: Any, op: Op) -> bool:
    n = op.number
    match op.name:
        case "a":
            return bool(s[Store].a != n % 3)
        case "sum":
            return bool(sum(p.x for p in s[Worker]) + s[Store].b != n % 4)
        case "who":
            who = s[Store].who
            return who is None or bool(s[who].x != n % 3)
        case "through":
            return all(p.x <= p.store.b + n % 2 for p in s[Worker])
        case "flags":
            return any(flag.up for flag in s.shared if isinstance(flag, Flag))
        case "pending":
            return len(s.messages) <= n % 3
        case "table":
            return len(s[Store].table) <= n % 2
        case "queue":
            return not s[Store].queue
        case "up":
            return not s[Store].full
        case "tally" if s.system.monitors:
            return bool(s[Tally].last != (n % 3, s[Store].b))
        case "some":
            return any(p.x == n % 3 for p in s[Worker])
    return True


def make_property(number: int, kind: Any, op: Op) -> Property:
    """A property; most predicates hold at first, so that a reachable one asks for the opposite."""

    def predicate(s: Any) -> bool:
        return judge(s, op)

    def unlike(s: Any) -> bool:
        return not judge(s, op)

    return Property(f"{kind}{number}", kind, unlike if kind == "reachable" else predicate)


NUMBERS = st.integers(0, 7)


def ops(names: tuple[str, ...], low: int, high: int) -> st.SearchStrategy[tuple[Op, ...]]:
    return st.lists(st.builds(Op, st.sampled_from(names), NUMBERS), min_size=low, max_size=high).map(tuple)


def rules(*triggers: str, free: tuple[bool, ...] = (False, False, False, True)) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        trigger=st.sampled_from(triggers),
        guard=st.builds(Op, st.sampled_from(GUARDS), NUMBERS),
        ops=ops((*CHANGES, *CHANGES, *CHOICES, *SENDS, *UNUSUAL), 1, 3),
        free=st.sampled_from(free),
    )


def specs(symmetric: bool = False) -> st.SearchStrategy[Spec]:
    properties = st.tuples(
        st.sampled_from(("always", "reachable", "final")), st.builds(Op, st.sampled_from(PREDICATES), NUMBERS)
    )
    return st.builds(
        Spec,
        workers=st.sampled_from((2, 2, 3)),
        rules=st.tuples(rules("action"), rules("action", "note"), rules("action", "note", "gather", "accept")),
        helper=st.just(()) | st.tuples(rules("action"), rules("action", "note")),
        init=ops(("x+",), 0, 1) if not symmetric else st.just(()),
        wake=st.none() | ops((*CHANGES, *CHOICES), 1, 2),
        fuel=st.sampled_from((1, 1, 2)),
        network=st.sampled_from((unordered(), unordered(), unordered(losses=1), fifo())),
        faults=st.sampled_from(((), (), ((1, False),), ((1, True),))),
        spares=st.sampled_from((0, 1)) if not symmetric else st.just(0),
        monitored=st.booleans(),
        properties=st.lists(properties, min_size=1, max_size=3).map(tuple),
        symmetric=st.just(symmetric),
    )


def explored_systems(limit: int, symmetric: bool = False) -> st.SearchStrategy[tuple[System, Exploration]]:
    """Systems of at most `limit` states, with what the oracle found."""

    def explored(spec: Spec) -> tuple[System, Exploration] | None:
        system = build(without_spawns(spec))
        truth = explore(system, limit=limit)
        return (system, truth) if truth.complete else None

    return specs(symmetric).map(explored).filter(bool)  # type: ignore[arg-type]


def without_spawns(spec: Spec) -> Spec:
    """The spec without operations that spawn where no slot is spare: helpers have no children."""

    def kept(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        return tuple(r._replace(ops=tuple(op for op in r.ops if op.name != "spawn")) for r in rules)

    return spec._replace(rules=spec.rules if spec.spares else kept(spec.rules), helper=kept(spec.helper))


def drawn(limit: int) -> st.SearchStrategy[Drawn]:
    """Systems with loops, and predicates on shared fields, for temporal properties."""
    plain = (*CHANGES, *CHOICES)
    endless = st.builds(
        Rule,
        trigger=st.just("action"),
        guard=st.builds(Op, st.sampled_from(GUARDS[:-1]), NUMBERS),
        ops=ops(plain, 1, 2),
        free=st.sampled_from((True, True, False)),
    )
    atoms = st.tuples(*[st.builds(Op, st.sampled_from(("a", "sum", "who", "flags", "queue", "up")), NUMBERS)] * 2)

    def make(rules: tuple[Rule, ...], chosen: tuple[Op, ...], fair: tuple[Any, ...]) -> Drawn | None:
        spec = Spec(2, rules, (), (), None, 1, unordered(), (), 0, False, (), False)
        system = build(spec)
        truth = explore(system, limit=limit)
        predicates = [Atom(f"p{i}", lambda s, op=op: judge(s, op)) for i, op in enumerate(chosen)]
        return (
            Drawn(system, tuple(one(system.classes[0]) for one in fair), predicates, truth) if truth.complete else None
        )

    fairness = st.sampled_from(((), (weak,), (strong,)))
    return st.builds(make, st.tuples(endless, endless), atoms, fairness).filter(bool)
