"""Coverage: exact on random systems, by looking at all states; dead handlers and vacuous properties are found."""

from __future__ import annotations

import ast
import inspect
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from plait import (
    F,
    G,
    Message,
    Pid,
    Process,
    System,
    action,
    always,
    check,
    eventually,
    final,
    leads_to,
    ltl,
    on,
    predicate,
    reachable,
    stable,
)
from plait.check.cover.conditions import conditions_of
from plait.kernel.coverage import Coverage
from plait.model.loading.loader import load, zoo
from plait.protocols.paxos import paxos
from plait.protocols.raft import raft
from tests.oracle.coverage import coverage as naive
from tests.oracle.explorer import Exploration, explore
from tests.oracle.random_systems import explored_systems
from tests.oracle.relation import successors
from tests.support.sourced import random_source, system_of


def covered(system: System, **options: Any) -> Coverage:
    found = check(system, coverage=True, keep_going=True, **options).coverage
    assert found is not None
    return found


def guards(found: Coverage) -> dict[tuple[str, str], set[bool]]:
    """The values that guards had."""
    values: dict[tuple[str, str], set[bool]] = {}
    for b in found.branches:
        if b.part == "guard":  # the first is the guard itself
            values.setdefault((b.role, b.handler), {v for v, had in ((True, b.true), (False, b.false)) if had})
    return {place: had for place, had in values.items() if had}


def compare(system: System, truth: Exploration, found: Coverage) -> None:
    seen = naive(system, truth)
    assert {(h.role, h.name): h.steps for h in found.handlers if h.steps} == {k: len(v) for k, v in seen.steps.items()}
    assert guards(found) == {k: v for k, v in seen.guards.items() if v}
    assert {(m.type, to) for m in found.messages for to in m.sent_to} == seen.sent
    assert {(m.type, by) for m in found.messages for by in m.taken_by} == seen.taken


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=60))
def test_what_ran_is_what_the_states_do(pair: tuple[System, Exploration]) -> None:
    assume("no_exceptions" not in pair[1].violated)  # then a guard has no value
    compare(*pair, covered(pair[0]))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=60))
def test_a_reduced_search_claims_nothing_that_does_not_happen(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    assume("no_exceptions" not in truth.violated)
    seen = naive(system, truth)
    for options in ({"reduce": "auto"}, {"reduce": "por", "search": "dfs"}, {"search": "random", "walks": 20}):
        found = covered(system, **options)
        ran = {(h.role, h.name) for h in found.handlers if h.steps}
        assert ran <= {place for place, steps in seen.steps.items() if steps}
        if "reduce" in options:
            assert ran == {place for place, steps in seen.steps.items() if steps}
        assert {(m.type, to) for m in found.messages for to in m.sent_to} <= seen.sent
        assert {(m.type, by) for m in found.messages for by in m.taken_by} <= seen.taken
        held = {place for place, had in guards(found).items() if True in had}
        assert held <= {place for place, had in seen.guards.items() if True in had}


def arcs(system: System, truth: Exploration) -> set[tuple[Any, int, int | None]]:
    """Which line of a handler came after which, in all steps of all states, as the interpreter's tracing tells."""
    found: set[tuple[Any, int, int | None]] = set()
    codes = {h.function.__code__ for _, h in system.handlers()}  # type: ignore[attr-defined]

    def watch(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code not in codes:
            return None
        before = [frame.f_lineno]

        def line(frame: Any, event: str, argument: Any) -> Any:
            if event in ("line", "return"):
                found.add((frame.f_code, before[0], frame.f_lineno if event == "line" else None))
                before[0] = frame.f_lineno
            return line

        return line

    sys.settrace(watch)
    try:
        for state in truth.seen:
            for _ in successors(system, state):
                pass
    finally:
        sys.settrace(None)
    return found


@pytest.mark.slow
def test_branches_are_those_that_tracing_shows() -> None:
    """On random sources: the tests of `if` statements that are alone on their line."""
    compared = 0
    for seed in range(25):
        system = system_of(random_source(random.Random(seed)))
        truth = explore(system, limit=400)
        if not truth.complete:
            continue
        found = covered(system)
        compare(system, truth, found)
        known = {(b.handler, b.line, b.text): b for b in found.branches if b.part == "body"}
        lines = arcs(system, truth)
        for _, handler in system.handlers():
            code = handler.function.__code__  # type: ignore[attr-defined]
            source, first = inspect.getsourcelines(handler.function)
            for number, text in enumerate(source, first):
                if not text.strip().startswith("if "):
                    continue
                branch = known[handler.name, number, ast.unparse(ast.parse(text.strip()[3:-1], mode="eval"))]
                inside = {to for c, at, to in lines if c is code and at == number}
                assert branch.true == (number + 1 in inside), text
                assert branch.false == bool(inside - {number + 1}), text
                compared += 1
    assert compared > 25


# -- models with something wrong ---------------------------------------------------------------------------------------


class Ping(Message):
    """A number, and what nobody looks at."""

    number: int
    color: int = 0


class Pong(Message):
    """Nobody answers."""


class Left(Process):
    """Pings once."""

    to: Pid
    done: bool = False
    spare: int = 0

    @action(when=lambda self: not self.done)
    def ping(self) -> None:
        self.done = True
        self.send(self.to, Ping(1))

    @on(Pong)
    def pong(self, m: Pong) -> None:
        self.spare = 0


class Right(Process):
    """Counts pings; never a large one."""

    count: int = 0
    log: int = 0

    @on(Ping, where=lambda self, m: m.number < 10 and self.count < 5)
    def small(self, m: Ping) -> None:
        self.log += 1
        if m.number == 1:
            self.count += 1
        else:
            self.send(m.sender, Pong())

    @on(Ping, where=lambda self, m: m.number >= 10)
    def large(self, m: Ping) -> None:
        self.count = 0


def two(*properties: Any) -> System:
    return System([Left(to=Right.pid(0)), Right()], properties=list(properties))


def test_what_never_happens_is_listed() -> None:
    verdict = check(two(), coverage=True)
    found = verdict.coverage
    assert found is not None
    assert {f"{h.role}.{h.name}": h.reason for h in found.handlers if not h.steps} == {
        "Left.pong": "no process sends Pong",
        "Right.large": "its guard was never true",
    }
    missing = {(b.handler, b.part, b.text): b.missing for b in found.branches if b.missing and not b.implied}
    assert missing == {
        ("small", "guard", "m.number < 10 and self.count < 5"): "never false",
        ("small", "body", "m.number == 1"): "never false",
        ("large", "guard", "m.number >= 10"): "never true",
    }
    assert [(m.type, m.sent_to, m.taken_by) for m in found.messages] == [
        ("Ping", ["Right"], ["Right"]),
        ("Pong", [], []),
    ]
    fields = {f"{f.role}.{f.name}": (f.read_by, f.matters) for f in found.fields}
    assert fields["Left.spare"][0] == []
    assert fields["Left.to"][0] == ["ping"]
    assert fields["Right.log"] == (["small"], False)
    assert fields["Ping.number"][0] == ["guard of large", "guard of small", "small"]
    assert fields["Ping.color"][0] == []
    assert "Right.large never ran: its guard was never true" in verdict.warnings
    assert found.over == "all 3 states"


def right(s: Any) -> Any:
    return s[Right][0]


def _or(s: Any) -> bool:
    return not right(s).count > 3 or right(s).log == 1


def _and(s: Any) -> bool:
    return not (right(s).count > 3 and right(s).log == 2)


def _if(s: Any) -> bool:
    if right(s).count > 3:
        return bool(right(s).log == 1)
    return True


def _early(s: Any) -> bool:
    if not right(s).count > 3:
        return True
    return bool(right(s).log == 1)


def _conditional(s: Any) -> bool:
    return right(s).log == 1 if right(s).count > 3 else True


def _filter(s: Any) -> bool:
    return all(r.log == 1 for r in s[Right] if r.count > 3)


def _loop(s: Any) -> bool:
    for r in s[Right]:
        if not r.count > 3:
            continue
        assert r.log == 1
    return True


def _empty(s: Any) -> bool:
    return all(m.number > 0 for m in s.messages if isinstance(m, Pong))


VACUOUS: list[Callable[[Any], bool]] = [_or, _and, _if, _early, _conditional, _filter, _loop, _empty]


@pytest.mark.parametrize("function", VACUOUS, ids=lambda f: f.__name__)
def test_a_premise_that_is_never_true(function: Callable[[Any], bool]) -> None:
    verdict = check(two(always(function)), coverage=True)
    assert verdict.status == "holds"
    assert verdict.coverage is not None
    assert [u.vacuous for u in verdict.coverage.untested] == [True]
    assert any("holds vacuously" in w for w in verdict.warnings)
    assert not any("holds vacuously" in w for w in check(two(always(function))).warnings)


def _or_met(s: Any) -> bool:
    return not right(s).count > 0 or right(s).log == 1


def _no_pong(s: Any) -> bool:
    return not any(isinstance(m, Pong) for m in s.messages)


def _bad(s: Any) -> bool:
    if right(s).count > 3:
        return False
    return all(r.log <= 1 for r in s[Right])


@pytest.mark.parametrize("function", [_or_met, _no_pong, _bad], ids=lambda f: f.__name__)
def test_a_property_that_is_put_to_the_test(function: Callable[[Any], bool]) -> None:
    verdict = check(two(always(function)), coverage=True)
    assert verdict.status == "holds"
    assert verdict.coverage is not None
    assert verdict.coverage.untested == []


def test_formulas() -> None:
    many = predicate(lambda s: right(s).count > 3)
    one = predicate(lambda s: right(s).count == 1)
    logged = predicate(lambda s: right(s).log == 1)
    vacuous = {
        "leads": leads_to(many, logged, name="leads"),
        "gf": ltl(G(many >> F(logged)), name="gf"),
        "or": ltl(G(~many | logged), name="or"),
        "both": ltl(G((one & many) >> F(logged)), name="both"),
        "stays": stable(many, name="stays"),
        "first": ltl(one >> F(logged), name="first"),
        "met": leads_to(one, logged, name="met"),
        "end": ltl(G((one & logged) >> logged), name="end"),
        "sometime": eventually(lambda s: right(s).count == 0, name="sometime"),
    }
    verdict = check(two(*vacuous.values()), coverage=True)
    assert verdict.status == "holds"
    assert verdict.coverage is not None
    assert {u.property for u in verdict.coverage.untested} == {"leads", "gf", "or", "both", "stays", "first"}
    reasons = {u.property: f"{u.text} {u.reason}" for u in verdict.coverage.untested}
    assert reasons["both"] == "((right(s).count == 1) & (right(s).count > 3)) was never true"
    assert reasons["first"] == "(right(s).count == 1) is false in the initial state"


def test_properties_that_were_not_judged_are_not_vacuous() -> None:
    """A final property without terminal states has a warning of its own; a violated one is not vacuous."""

    @always
    def never(s: Any) -> bool:
        return not right(s).count > 0 or right(s).log == 7

    @final
    def ended(s: Any) -> bool:
        return bool(right(s).count > 0)

    @reachable
    def taken(s: Any) -> bool:
        return right(s).count > 0 and right(s).log > 0

    verdict = check(two(never, ended, taken), coverage=True, keep_going=True)
    assert verdict.coverage is not None
    assert verdict.property == "never"
    assert verdict.coverage.untested == []


def test_whole_messages_may_be_read_in_full() -> None:
    """By a property that looks at what is pending, a handler that compares or keeps them, or one that asks for its class."""

    class Keeper(Process):
        kept: Any = None

        @on(Ping)
        def keep(self, m: Ping) -> None:
            self.kept = m

    class Matcher(Process):
        seen: int = 0

        @on(Ping)
        def match(self, m: Ping) -> None:
            match m:
                case Ping(color=0):
                    self.seen += 1

    class Asking(Process):
        seen: int = 0

        @on(Ping)
        def take(self, m: Ping) -> None:
            self.send(self.ids(type(self))[0], Pong())

    quiet = always(lambda s: len(s.messages) < 9, name="quiet")
    for kind, properties, read in (
        (Keeper, [], {"color", "number"}),
        (Matcher, [], {"color"}),
        (Matcher, [quiet], {"color", "number"}),
        (Asking, [], set()),
    ):
        found = covered(System([Left(to=kind.pid(0)), kind()], properties=properties))
        assert {f.name for f in found.fields if f.role == "Ping" and f.read_by} == read


@pytest.mark.slow
def test_over_what() -> None:
    assert covered(paxos(), search="random", walks=7).over.endswith("of 7 random walks")
    assert covered(paxos(), max_depth=3).over.endswith("that were searched; the search was not complete")
    assert covered(paxos(), reduce="por").over.endswith("of the reduced space (por)")
    verdict = check(paxos(faulty="acceptor"), coverage=True)
    assert verdict.coverage is not None
    assert verdict.coverage.over.endswith("that were searched up to the violation")


@pytest.mark.slow
def test_the_search_is_the_same_with_and_without() -> None:
    for make in (paxos, raft):
        plain, covering = check(make(), native="off").statistics, check(make(), coverage=True).statistics
        assert plain.states == covering.states
        assert plain.transitions == covering.transitions
        assert plain.python_calls == covering.python_calls


@pytest.mark.slow
def test_a_larger_raft_puts_log_matching_to_the_test() -> None:
    """With logs of one entry, two that differ have no entry of the same term in the same place."""
    (untested,) = covered(raft()).untested
    assert (untested.property, untested.vacuous) == ("log_matching", True)
    assert covered(raft(entries=2)).untested == []


@pytest.mark.slow
def test_the_zoo_holds_for_good_reasons() -> None:
    """At default sizes one property is vacuous; what is never taken goes to those who do not care."""
    vacuous, in_part, left = set(), set(), set()
    for name in zoo():
        verdict = check(load(name, {}), max_states=30_000, coverage=True)
        if verdict.bound is not None:
            continue
        assert not any("never ran" in warning for warning in verdict.warnings)
        assert verdict.coverage is not None
        for one in verdict.coverage.untested:
            (vacuous if one.vacuous else in_part).add((name, one.property))
        for message in verdict.coverage.messages:
            left |= {(name, message.type, role) for role in {*message.sent_to} - {*message.taken_by}}
            assert message.sent_to
    assert vacuous == {("raft", "log_matching")}
    assert in_part == {("zab", "primary_order"), ("three-phase-commit", "not_blocking")}
    assert left == {
        ("echo-multicast", "Commit", "ByzantineReceiver"),
        ("mcpaxos", "Phase2b", "Observer"),
        ("pbft", "Commit", "ByzantinePrimary"),
        ("pbft", "Prepare", "ByzantinePrimary"),
    }


# -- functions that tell -----------------------------------------------------------------------------------------------


def sample(self: Any, xs: list[int], limit: int = 3, *, more: int = 1) -> Any:
    found = []
    for x in xs:
        if x > limit and (x % 2 or x > 10):
            found.append(x * more)
        elif x == 0:
            break
    while found and found[0] > 100:
        found.pop(0)
    match found:
        case [one] if one > 6:
            return "one", one
        case [_, _, *rest]:
            return "many", [y for y in rest if y != 7], {y: y for y in rest}
    return (lambda z: z or not found)(len(found) if found else 0)


def test_a_rewritten_function_computes_the_same() -> None:
    told, found = conditions_of(sample)
    rng = random.Random(1)
    for _ in range(300):
        xs = [rng.choice((0, 1, 5, 7, 8, 12, 200)) for _ in range(rng.randint(0, 5))]
        limit, more = rng.randint(1, 9), rng.randint(1, 3)
        assert told(None, list(xs), limit, more=more) == sample(None, list(xs), limit, more=more)
    assert told(None, [5]) == sample(None, [5])
    missing = {c.text for c in found if c.is_test and not (c.true and c.false)}
    assert missing == {"not found"}  # asked only when nothing was found


def test_without_source_there_are_no_conditions() -> None:
    made: dict[str, Any] = {}
    exec("def f(self): return self or 1", made)
    assert conditions_of(made["f"]) == (made["f"], [])
    assert conditions_of(len) == (len, [])


class Base:
    """Has something to be called by its subclass."""

    def value(self, n: int) -> int:
        return n + 1 if n > 0 else 0


class _Derived(Base):
    """Private names, super(), and a variable of the function around it."""

    __secret = 5

    def value(self, n: int) -> int:
        return super().value(n) if n < self.__secret else self.__secret

    def counting(self) -> Any:
        count = 0

        def step(by: int) -> int:
            nonlocal count
            count = count + by if by > 0 else 0
            return count

        return step


def test_private_names_super_and_variables_around() -> None:
    told, found = conditions_of(_Derived.value)
    assert [told(_Derived(), n) for n in (0, 3, 9)] == [_Derived().value(n) for n in (0, 3, 9)]
    assert (found[0].true, found[0].false) == (True, True)
    step = _Derived().counting()
    told, found = conditions_of(step)
    assert (told(2), step(3), told(4)) == (2, 5, 9)
    assert (found[0].text, found[0].true, found[0].false) == ("by > 0", True, False)
