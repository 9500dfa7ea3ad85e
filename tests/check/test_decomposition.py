"""Decomposition: the same verdicts on fewer states, unsound declarations are caught, and counterexamples are real."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait import Message, Process, System, action, always, aux, crash_recovery, field, final, on, reachable
from plait.check.api import check
from plait.check.explain.replay import replay
from plait.check.reduce import relevance
from plait.check.reduce.decomposition import Decomposition, decompose
from plait.kernel.errors import ModelError, UsageError
from plait.kernel.verdict import Verdict
from tests.oracle.explorer import Exploration, explore
from tests.oracle.random_systems import explored_systems
from tests.support.agreement import ZOO, compare_projections
from tests.support.sourced import random_source, system_of

MANY = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
SOME = settings(MANY, max_examples=80)


def error_of(attempt: Callable[[], object]) -> str | None:
    """What a model error says, if there is one."""
    try:
        attempt()
    except ModelError as error:
        return str(error)
    return None


# -- random systems ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@MANY
@given(st.randoms(use_true_random=False), st.sampled_from(("bfs", "dfs")))
def test_inferred_fields_of_random_systems(rng: random.Random, search: str) -> None:
    system = system_of(random_source(rng))
    truth = explore(system, limit=300)
    decomposition = decompose(system, "auto")
    if truth.complete and decomposition:
        assert not decomposition.audited
        compare_projections(system, truth, decomposition, search=search, workers=2)


@pytest.mark.slow
def test_inference_finds_auxiliary_fields() -> None:
    """The comparison would mean nothing if everything came out relevant."""
    found = [bool(decompose(system_of(random_source(random.Random(seed))), "auto")) for seed in range(40)]
    assert sum(found) > 20


@pytest.mark.slow
@SOME
@given(explored_systems(limit=300), st.sets(st.sampled_from(("log", "mixed", "seen", "table", "mode")), min_size=1))
def test_declared_fields_of_random_systems(pair: tuple[System, Exploration], names: set[str]) -> None:
    """These have no source that is understood: what is declared is audited, and what is not stays relevant."""
    system, truth = pair
    for cls in system.classes:
        cls.__plait_aux__ = frozenset(names & set(cls.__plait_fields__))
    decomposition = decompose(system, "auto")
    said = error_of(lambda: compare_projections(system, truth, decomposition))
    # The operations of these systems read `table` and `mode` only; of others, a property may ask.
    assert said is None or names & {"table", "mode"} or "the property reads it" in said or "count as terminal" in said


@pytest.mark.slow
@SOME
@given(st.randoms(use_true_random=False), st.sampled_from((("u",), ("v",), ("w", "x"), ("log", "y"), ("z",))))
def test_whatever_is_declared_the_verdict_is_right_or_refused(rng: random.Random, names: tuple[str, ...]) -> None:
    system = system_of(random_source(rng, aux=frozenset(names)))
    truth = explore(system, limit=300)
    if not truth.complete:
        return
    said = error_of(lambda: compare_projections(system, truth, decompose(system, "declared"), decomposition="declared"))
    assert said is None or any(f"Node.{name}" in said for name in names)


@pytest.mark.slow
def test_without_the_audit_verdicts_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Decomposition, "audited", property(lambda self: {}))
    wrong = 0
    for seed in range(80):
        system = system_of(random_source(random.Random(seed), aux=frozenset("wxyz")))
        truth = explore(system, limit=500)
        if truth.complete:
            try:
                compare_projections(system, truth, decompose(system, "declared"), decomposition="declared")
            except (AssertionError, RuntimeError):
                wrong += 1
            except ModelError:
                pass  # a property reads it
    assert wrong


# -- the zoo -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_the_zoo(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field of the zoo matters, or is inferred not to; declaring one of them changes no verdict."""
    system = ZOO[name]()
    plain = check(system, keep_going=True)
    if decompose(system, "auto"):
        assert statuses(check(system, reduce="decomposition", keep_going=True)) == statuses(plain)
    else:
        with pytest.raises(UsageError, match="every field is relevant"):
            check(system, reduce="decomposition")
    for cls in dict.fromkeys(system.classes):
        for hidden in cls.__plait_fields__:
            with monkeypatch.context() as patch:
                patch.setattr(cls, "__plait_aux__", frozenset({hidden}))
                found: list[Verdict] = []
                options: dict[str, Any] = {"reduce": "decomposition", "decomposition": "declared", "keep_going": True}
                said = error_of(lambda: found.append(check(system, **options)))  # noqa: B023
                assert said is None or f"{cls.__name__}.{hidden}" in said
                assert all(statuses(verdict) == statuses(plain) for verdict in found)


def statuses(verdict: Verdict) -> dict[str, str]:
    return {p.name: p.status for p in verdict.properties}


# -- a model with a history --------------------------------------------------------------------------------------------


class Ping(Message):
    number: int


class Player(Process):
    """Sends numbers; remembers in which order they came, which nothing depends on."""

    got: int = 0
    history: list[int] = field(default_factory=list)

    @on(Ping)
    def hear(self, m: Ping) -> None:
        self.history.append(m.number)
        self.got += 1


class Source(Process):
    """Sends all at once."""

    sent: bool = False

    @action(when=lambda self: not self.sent)
    def start(self) -> None:
        self.sent = True
        for number in (1, 2, 3):
            self.send(Player.pid(0), Ping(number))


@always
def few(s: Any) -> bool:
    return all(p.got < 3 for p in s[Player])


@final
def all_came(s: Any) -> bool:
    return all(p.got == 3 for p in s[Player])


def game(*properties: Any) -> System:
    return System([Source(), Player()], properties=properties)


@pytest.mark.slow
def test_a_history_is_found_and_left_out() -> None:
    # After 3 messages came in any order: 1 + (1 + 3 + 6 + 6) states, or 1 + 2^3 of relevant parts.
    assert check(game(all_came)).statistics.states == 17
    verdict = check(game(all_came), reduce="decomposition")
    assert verdict.status == "holds"
    assert verdict.statistics.states == 9
    (reduction,) = verdict.statistics.reductions
    assert (reduction.applied, reduction.reason) == (True, "auxiliary: Player.history")


def test_counterexamples_show_every_field_and_replay() -> None:
    system = game(few)
    verdict = check(system, reduce="decomposition")
    assert verdict.status == "violated"
    assert verdict.trace is not None
    end = verdict.trace.events[-1]
    heard = end.state.fields["Player0"]["history"]
    assert sorted(heard) == [1, 2, 3]
    assert end.changed["history"][1] == heard
    assert len(list(replay(system, verdict.trace))) == len(verdict.trace) == 4


def test_a_failed_assertion_is_shown_in_full() -> None:
    class Proud(Player):
        @on(Ping)
        def hear(self, m: Ping) -> None:
            self.history.append(m.number)
            self.got += 1
            assert self.got < 2

    class Loud(Source):
        @action(when=lambda self: not self.sent)
        def start(self) -> None:
            self.sent = True
            self.broadcast(Proud, Ping(1))
            self.broadcast(Proud, Ping(2))

    system = System([Loud(), Proud()])
    verdict = check(system, reduce="decomposition")
    assert [f.label for f in decompose(system, "auto").fields if f.auxiliary] == ["Proud.history"]
    assert verdict.property == "assertions"
    assert verdict.trace is not None
    assert len(verdict.trace.events[-1].state.fields["Proud0"]["history"]) == 1
    assert len(list(replay(system, verdict.trace))) == 3


def test_an_infinite_history_becomes_finite() -> None:
    class Ticker(Process):
        hour: int = 0
        ticks: list[int] = field(default_factory=list)

        @action
        def tick(self) -> None:
            self.ticks.append(self.hour)
            self.hour = (self.hour + 1) % 12

    @reachable
    def noon(s: Any) -> bool:
        return any(p.hour == 11 for p in s[Ticker])

    verdict = check(System([Ticker()], properties=[noon]), reduce="decomposition")
    assert verdict.statistics.states == 12
    assert check(System([Ticker()], properties=[noon]), max_states=100).bound == "max-states"


def test_declared_fields_only() -> None:
    with pytest.raises(UsageError, match="no field is declared"):
        check(game(all_came), reduce="decomposition", decomposition="declared")


def test_fingerprints_do_not_depend_on_representatives() -> None:
    from plait.check.options import options_from
    from plait.check.runner import Runner

    system = game(all_came)
    found = []
    for search in ("bfs", "dfs"):
        runner = Runner(system, decompose(system, "auto"))
        runner.engine.search(options_from({"search": search, "workers": 1, "keep_going": True}))
        found.append(sorted(runner.engine.fingerprints()))
    assert found[0] == found[1]


# -- unsound declarations ----------------------------------------------------------------------------------------------


def refused(system: System) -> str:
    with pytest.raises(ModelError) as caught:
        check(system, reduce="decomposition")
    return str(caught.value)


class Echo(Message):
    value: int


def test_the_audit_shows_both_states_the_step_and_the_difference() -> None:
    class Memory(Process):
        n: int = 0
        last: int = aux(0)

        @on(Ping)
        def hear(self, m: Ping) -> None:
            if self.n == 2:
                self.send(Source.pid(0), Echo(self.last))
            self.last = m.number
            self.n += 1

    class Talker(Source):
        @action(when=lambda self: not self.sent)
        def start(self) -> None:
            self.sent = True
            for number in (1, 2, 3):
                self.broadcast(Memory, Ping(number))

    said = refused(System([Talker(), Memory(), Source(sent=True)]))
    assert "Memory.last is declared aux, but the behaviour of Memory0 depends on it" in said
    states = [line for line in said.splitlines() if "n = 2, last = " in line]
    assert len(states) == 2
    assert "step Memory.hear of Memory0 on Ping(number=" in said
    assert said.count("sends Echo(value=") == 2
    assert "hint: do not declare last aux" in said


def test_a_guard_that_reads_an_auxiliary_field() -> None:
    class Picky(Process):
        tries: int = 0
        mood: int = aux(0)

        @action(when=lambda self: self.tries < 3)
        def cheer(self) -> None:
            self.mood = self.choose([0, 1])
            self.tries += 1

        @action(when=lambda self: self.tries == 3 and self.mood == 1)
        def smile(self) -> None:
            self.tries = 4

    said = refused(System([Picky()]))
    assert "Picky.mood is declared aux" in said
    assert "which handlers may run" in said
    assert "smile" in said


def test_the_audit_follows_the_steps_of_all_variants() -> None:
    """The counter matters only three steps after the states with the same relevant part were met."""

    class Late(Process):
        stage: int = 0
        counter: int = aux(0)

        @action(when=lambda self: self.stage == 0)
        def choose_it(self) -> None:
            self.counter = self.choose([0, 1])
            self.stage = 1

        @action(when=lambda self: 0 < self.stage < 4)
        def go(self) -> None:
            self.stage += 1

        @action(when=lambda self: self.stage == 4)
        def end(self) -> None:
            self.stage = 5 + self.counter

    said = refused(System([Late()]))
    assert "step Late.end of Late0" in said
    assert "stage becomes 5" in said
    assert "stage becomes 6" in said


def test_an_exception_is_a_difference() -> None:
    class Fragile(Process):
        stage: int = 0
        items: list[int] = aux(default_factory=list)

        @action(when=lambda self: self.stage == 0)
        def fill(self) -> None:
            if self.choose([True, False]):
                self.items.append(1)
            self.stage = 1

        @action(when=lambda self: self.stage == 1)
        def take(self) -> None:
            self.items.pop()
            self.stage = 2

    said = refused(System([Fragile()]))
    assert "Fragile.items is declared aux" in said
    assert "IndexError" in said


@pytest.mark.slow
def test_an_audit_without_end() -> None:
    class Chatty(Process):
        hour: int = 0
        log: list[int] = aux(default_factory=list)

        @action
        def tick(self) -> None:
            self.log.append(self.hour)
            self.log.sort()  # may raise, as far as the analysis knows
            self.hour = (self.hour + 1) % 2

    said = refused(System([Chatty()]))
    assert "Chatty.log is declared aux without a proof, and has too many values for the audit" in said
    assert "hint: keep a shorter history" in said


def test_the_audit_is_bounded_in_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relevance, "MOST_AUDITED", 10)

    class Counter(Process):
        count: int = aux(0)

        @action
        def tick(self) -> None:
            self.count = abs(self.count) + 1

    assert "more than 10 local states" in refused(System([Counter()]))


def test_a_sound_declaration_that_is_not_proven_passes_the_audit() -> None:
    class Careful(Process):
        n: int = 0
        log: list[int] = aux(default_factory=list)

        @action(when=lambda self: self.n < 3)
        def tick(self) -> None:
            self.log.insert(0, self.choose([0, 1]))
            if self.log[0] == 1 and len(self.log) > 9:
                self.n = 9
            self.n += 1

    @always
    def small(s: Any) -> bool:
        return all(p.n < 9 for p in s[Careful])

    system = System([Careful(), Careful()], properties=[small])
    decomposition = decompose(system, "declared")
    assert decomposition.audited
    verdict = check(system, reduce="decomposition", decomposition="declared")
    assert (verdict.status, verdict.statistics.states) == ("holds", 16)
    assert verdict.statistics.reductions[0].reason == "auxiliary: Careful.log (audited)"
    compare_projections(system, explore(system), decomposition, decomposition="declared")


def test_a_property_that_reads_a_declared_field() -> None:
    class Open(Process):
        n: int = aux(0)

        @action(when=lambda self: self.n < 2)
        def tick(self) -> None:
            self.n += 1

    @always
    def small(s: Any) -> bool:
        return all(p.n < 9 for p in s[Open])

    @always
    def swallowing(s: Any) -> bool:
        try:
            return all(p.n < 9 for p in s[Open])
        except ModelError:
            return True

    for prop in (small, swallowing):
        said = refused(System([Open()], properties=[prop]))
        assert f"property {prop.name}: Open.n is declared aux, but the property reads it" in said


def test_a_step_that_changes_a_declared_field_only_and_final_properties() -> None:
    class Toggle(Process):
        on_: bool = aux(False)

        @action
        def flip(self) -> None:
            self.on_ = not self.on_

    @final
    def never(s: Any) -> bool:
        return False

    # Unreduced no state is terminal; the relevant part never changes.
    assert check(System([Toggle()], properties=[never])).status == "holds"
    said = refused(System([Toggle()], properties=[never]))
    assert "Toggle.flip may change nothing except Toggle.on_" in said
    assert "never" in said


def test_fields_of_processes_that_crash_and_recover() -> None:
    class Node(Process):
        up: int = 0
        log: list[int] = aux(default_factory=list, durable=True)
        note: list[int] = aux(default_factory=list)

        @action(when=lambda self: self.up < 2)
        def work(self) -> None:
            self.up += 1
            self.log.append(self.choose([1, 2]))
            self.note.append(len(self.log))

    @always
    def fine(s: Any) -> bool:
        return all(p.up < 3 for p in s[Node])

    assert Node.__plait_durable__ == {"log"}
    assert Node.__plait_aux__ == {"log", "note"}
    system = System([Node()], faults=[crash_recovery(Node, budget=1)], properties=[fine])
    compare_projections(system, explore(system), decompose(system, "auto"))
