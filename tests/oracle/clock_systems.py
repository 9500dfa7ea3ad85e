"""Random small systems with clocks: rules that compare, reset, start and stop them, urgent or not, with drift or without."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait import (
    Clock,
    Message,
    Process,
    System,
    action,
    always,
    crash_recovery,
    crash_stop,
    duplicating,
    durable,
    fifo,
    final,
    on,
    reachable,
    strong,
    tick,
    unordered,
    weak,
)
from plait.model.fairness import Fairness
from plait.model.properties import Property
from plait.model.temporal import Atom
from tests.oracle.explorer import Exploration, explore

CLOCKS = ("a", "b")
VALUES = 3


NETWORKS = {
    "bag": unordered(),
    "set": duplicating(),
    "lossy": unordered(lossy=True, losses=1),
    "full": fifo(capacity=1, full="block"),
}


class Ping(Message):
    value: int = 0


class Test(NamedTuple):
    """A comparison of a clock. Some depend on `x`, so that a constant may come from the state."""

    clock: str
    operator: str
    number: int

    def holds(self, process: Any) -> bool:
        clock, number = getattr(process, self.clock), self.number
        match self.operator:
            case "<":
                return bool(clock < number)
            case ">=":
                return bool(number <= clock)
            case "==":
                return bool(clock == number)
            case "> x":
                return bool(clock > min(process.x, number))
        return True


class Rule(NamedTuple):
    on_ping: bool
    when: frozenset[int]  # values of x for which it may run
    test: Test
    to: int  # what x becomes
    ops: tuple[tuple[str, str], ...]  # what it does to which clock
    sends: bool
    urgent: bool


class Spec(NamedTuple):
    rules: tuple[tuple[Rule, ...], ...]  # per class
    bounds: tuple[int, int]
    running: tuple[bool, bool]
    durable: bool
    twins: int  # how many processes of the first class
    symmetric: bool
    drift: int
    crash: str
    spare: bool
    network: str
    fairness: tuple[tuple[bool, int], ...]
    properties: tuple[tuple[str, int, Test], ...]  # kind, a value of x, a test of a clock
    watched: int | None = None  # how many processes the properties read; None: all


def make_handler(number: int, rule: Rule) -> Any:
    def effect(self: Any) -> None:
        self.x = rule.to
        for name, clock in rule.ops:
            getattr(getattr(self, clock), name)()
        if rule.sends and self.fuel:
            self.fuel -= 1
            self.send(self.ids(Process), Ping(self.x))

    def on_ping(self: Any, m: Ping) -> None:
        effect(self)

    def alone(self: Any) -> None:
        effect(self)

    made = on_ping if rule.on_ping else alone
    made.__name__ = made.__qualname__ = f"rule{number}"
    if rule.on_ping:
        guard = lambda self, m: self.x in rule.when and rule.test.holds(self)  # noqa: E731
        return on(Ping, where=guard, urgent=rule.urgent)(made)
    return action(when=lambda self: self.x in rule.when and rule.test.holds(self), urgent=rule.urgent)(made)


def make_class(name: str, spec: Spec, rules: tuple[Rule, ...], bounds: tuple[int, int], *, spawns: bool) -> Any:
    a, b = (Clock(running=runs, bound=bound) for runs, bound in zip(spec.running, bounds, strict=True))
    body: dict[str, Any] = {"__module__": __name__, "x": 0, "fuel": durable(1), "a": a}
    body["b"] = durable(b) if spec.durable else b
    body["__annotations__"] = {"x": int, "fuel": int, "a": Clock, "b": Clock}
    body |= {f"rule{number}": make_handler(number, rule) for number, rule in enumerate(rules)}
    made: Any = type(name, (Process,), body)
    if not spawns:
        return made

    def give_birth(self: Any) -> None:
        self.fuel -= 1
        self.spawn(made, x=1)

    given = {"__module__": __name__, "give_birth": action(when=lambda self: self.fuel > 0 and self.x == 2)(give_birth)}
    return made, type(f"{name}Mother", (made,), given)


def build(spec: Spec, *, cap: int | None = None) -> tuple[System, tuple[Fairness, ...], list[Atom]]:
    """The system, assumptions about it, and predicates. With `cap`, all clocks have this bound instead of their own."""
    bounds = spec.bounds if cap is None else (cap, cap)
    first: Any = make_class("One", spec, spec.rules[0], bounds, spawns=spec.spare)
    first, mother = first if spec.spare else (first, first)
    others = [make_class(f"Other{i}", spec, rules, bounds, spawns=False) for i, rules in enumerate(spec.rules[1:])]
    faults = {"stop": [crash_stop(budget=1)], "recovery": [crash_recovery(first, budget=1)]}.get(spec.crash, [])
    processes = [mother() if spec.spare and i == 0 else first() for i in range(spec.twins)]
    symmetric = [first] if spec.symmetric and spec.twins > 1 and not spec.spare else []

    def prop(number: int, kind: str, value: int, test: Test) -> Property:
        made = {"always": always, "reachable": reachable, "final": final}[kind]
        return made(lambda s: any(p.x == value or test.holds(p) for p in s[Process][: spec.watched]), name=f"p{number}")  # type: ignore[call-overload,no-any-return]

    def atom(number: int, value: int, test: Test) -> Atom:
        return Atom(f"q{number}", lambda s: any(p.x == value and test.holds(p) for p in s[Process]))

    whose: list[Any] = [tick, tick, first, *others]
    assumed = [(strong if is_strong else weak)(whose[number % len(whose)]) for is_strong, number in spec.fairness]
    system = System(
        [*processes, *(c() for c in others)],
        faults=faults,
        network=NETWORKS[spec.network],
        spare={first: 1} if spec.spare else None,
        symmetric=symmetric,
        drift=spec.drift,
        properties=[prop(i, *given) for i, given in enumerate(spec.properties)],
        name=repr(spec),
    )
    atoms = [atom(i, value, test) for i, (_, value, test) in enumerate(spec.properties[:2])]
    return system, tuple(dict.fromkeys(assumed)), atoms


def tests(bounds: tuple[int, int]) -> st.SearchStrategy[Test]:
    """Comparisons with constants up to the bound of the clock."""
    operators = st.sampled_from(["<", ">=", ">=", "==", "> x", "none"])
    return st.sampled_from([0, 1]).flatmap(
        lambda i: st.builds(Test, st.just(CLOCKS[i]), operators, st.integers(0, bounds[i]))
    )


@functools.cache
def specs_of(bounds: tuple[int, int], classes: int, twins: int) -> st.SearchStrategy[Spec]:
    some = st.frozensets(st.integers(0, VALUES - 1), min_size=1)
    operations = st.tuples(st.sampled_from(["reset", "reset", "start", "stop"]), st.sampled_from(CLOCKS))
    rule = st.builds(
        Rule,
        st.sampled_from([False, False, True]),
        some,
        tests(bounds),
        st.integers(0, VALUES - 1),
        st.lists(operations, max_size=2).map(tuple),
        st.booleans(),
        st.sampled_from([False, False, True]),
    )
    properties = st.tuples(st.sampled_from(["always", "reachable", "final"]), st.integers(0, VALUES - 1), tests(bounds))
    return st.builds(
        Spec,
        rules=st.tuples(*[st.lists(rule, min_size=1, max_size=3).map(tuple)] * classes),
        bounds=st.just(bounds),
        running=st.tuples(st.booleans(), st.booleans()),
        durable=st.booleans(),
        twins=st.just(twins),
        symmetric=st.booleans(),
        drift=st.sampled_from([0, 0, 1, 2]),
        crash=st.sampled_from(["", "", "stop", "recovery"]),
        spare=st.sampled_from([False, False, False, True]),
        network=st.sampled_from(["bag", "bag", *NETWORKS]),
        fairness=st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=2).map(tuple),
        properties=st.lists(properties, min_size=2, max_size=4).map(tuple),
    )


def specs() -> st.SearchStrategy[Spec]:
    bounds = st.sampled_from([(0, 1), (1, 1), (1, 2), (2, 0), (2, 3)])
    return st.tuples(bounds, st.sampled_from([1, 1, 2]), st.sampled_from([1, 1, 2])).flatmap(lambda t: specs_of(*t))


class Timed(NamedTuple):
    spec: Spec
    system: System
    fairness: tuple[Fairness, ...]
    atoms: list[Atom]
    truth: Exploration


def symmetric_specs() -> st.SearchStrategy[Spec]:
    """Two processes of a class, which are declared symmetric."""
    one = specs_of((1, 2), 1, 2) | specs_of((1, 1), 2, 2)
    return one.map(lambda spec: spec._replace(symmetric=True, spare=False))


def urgent_specs() -> st.SearchStrategy[Spec]:
    """Many rules are urgent, x only grows, and the properties read one or two processes.

    So partial-order reduction leaves something out, and what it leaves out would be missed elsewhere.
    """

    def forward(number: int, rule: Rule, urgent: frozenset[int]) -> Rule:
        to = max(rule.to, 1)
        return rule._replace(when=frozenset({to - 1}), to=to, urgent=number == 0 or number in urgent)

    def hasty(spec: Spec, urgent: frozenset[int], watched: int) -> Spec:
        rules = [[forward(i + 3 * j, r, urgent) for i, r in enumerate(some)] for j, some in enumerate(spec.rules)]
        return spec._replace(rules=tuple(map(tuple, rules)), watched=watched)

    shapes = st.sampled_from([((1, 1), 2, 1), ((1, 2), 2, 1), ((1, 1), 1, 2), ((0, 1), 2, 2), ((1, 1), 3, 1)])
    urgent = st.frozensets(st.integers(0, 8), max_size=6)
    return st.builds(hasty, shapes.flatmap(lambda t: specs_of(*t)), urgent, st.sampled_from([1, 1, 2]))


def timed_systems(limit: int, drawn: st.SearchStrategy[Spec]) -> st.SearchStrategy[Timed]:
    """Systems of at most so many states."""

    def make(spec: Spec) -> Timed:
        system, fairness, atoms = build(spec)
        return Timed(spec, system, fairness, atoms, explore(system, limit=limit))

    return drawn.map(make).filter(lambda made: made.truth.complete)
