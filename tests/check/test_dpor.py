"""Dynamic partial-order reduction: fewer runs, the same verdicts, the same terminal states; and every rule is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings

from plait import (
    Message,
    Monitor,
    Pid,
    Process,
    System,
    action,
    always,
    check,
    crash_stop,
    duplicating,
    fifo,
    final,
    init,
    on,
    reachable,
    unordered,
)
from plait._native import Counters, Finding, _test_hooks
from plait.check.options import Options, Search
from plait.check.runner import Runner
from plait.protocols.abd import abd
from plait.protocols.chang_roberts import chang_roberts
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from plait.protocols.register_paxos import register_paxos
from plait.protocols.single_copy import single_copy
from tests.oracle.explorer import Exploration, explore
from tests.oracle.random_systems import explored_systems
from tests.support.agreement import check_traces

Found = tuple[set[int], set[int]]
"""The numbers of the properties with a finding, and the terminal states."""


class Report(NamedTuple):
    """What a search met."""

    counters: Counters
    findings: list[Finding]
    terminals: list[int]


def search(system: System, name: Search, leave_out: Sequence[str] = (), *, dpor: bool = False) -> Report:
    options = Options(search=name, workers=1, max_depth=10_000, keep_going=True)
    engine = Runner(system).engine
    _test_hooks(leave_out=leave_out, collect_terminals=True)
    try:
        report = engine.search(options, dpor=dpor)
    finally:
        _test_hooks()
    return Report(report.counters, report.findings, engine._terminals())


def found(report: Report) -> Found:
    return {finding.number for finding in report.findings}, set(report.terminals)


ZOO = {
    "abd": lambda: abd(clients=2, servers=2),
    "chang_roberts": chang_roberts,
    "paxos": lambda: paxos(2, 2, 1),
    "paxos, one by one": lambda: paxos(2, 2, 1, quorum=False),
    "paxos, one proposer": lambda: paxos(1, 3, 1, quorum=False),
    "paxos, faulty": lambda: paxos(2, 2, 1, faulty="acceptor"),
    "paxos, faulty learner": lambda: paxos(2, 2, 1, faulty="learner"),
    "ping_pong": lambda: ping_pong(maximum=3, network="duplicating", lossy=True),
    "register_paxos": lambda: register_paxos(clients=1, servers=3),
    "single_copy": single_copy,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_the_zoo(name: str) -> None:
    system, truth = ZOO[name](), explore(ZOO[name]())
    verdict = check(system, search="stateless", reduce="dpor", keep_going=True)
    assert verdict.bound is None
    assert {p.name for p in verdict.properties if p.status == "violated"} == truth.violated
    check_traces(system, verdict, truth, shortest=False)
    assert found(search(system, "stateless", dpor=True)) == found(search(ZOO[name](), "bfs"))


@pytest.mark.parametrize(
    ("name", "share"),
    [("paxos", 0.01), ("paxos, one proposer", 0.01), ("paxos, faulty", 0.01), ("register_paxos", 0.05)],
)
def test_fewer_visits(name: str, share: float) -> None:
    reduced, plain = search(ZOO[name](), "stateless", dpor=True), search(ZOO[name](), "stateless")
    assert reduced.counters.states < share * plain.counters.states
    assert reduced.counters.transitions < plain.counters.transitions


@pytest.mark.slow
@settings(max_examples=350, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=120))
def test_random_systems(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    limits: Any = {"search": "stateless", "max_states": 10_000, "max_depth": 30}
    verdict = check(system, reduce="dpor", keep_going=True, **limits)
    violated = {p.name for p in verdict.properties if p.status == "violated"}
    check_traces(system, verdict, truth, shortest=False)
    if verdict.bound is not None:
        assert violated <= truth.violated
        return
    assert violated == truth.violated
    assert check(system, reduce="dpor", **limits).status == ("violated" if violated else "holds")
    assert set(search(system, "stateless", dpor=True).terminals) == set(search(system, "bfs").terminals)


# -- small systems, by hand


class Note(Message):
    number: int = 0


class Counter(Process):
    limit: int = 1
    n: int = 0

    @action(when=lambda self: self.n < self.limit)
    def up(self) -> None:
        self.n += 1


class Idler(Process):
    """Takes nothing."""


class Source(Process):
    to: Pid
    left: int = 1

    @action(when=lambda self: self.left > 0)
    def send_one(self) -> None:
        self.left -= 1
        self.send(self.to, Note())


class Taker(Process):
    """Rests, or takes a note, whichever comes first."""

    done: str = ""

    @action(when=lambda self: not self.done)
    def rest(self) -> None:
        self.done = "rested"

    @on(Note, where=lambda self, m: not self.done)
    def take(self, m: Note) -> None:
        self.done = "took"


class Teller(Process):
    said: bool = False

    @action(when=lambda self: not self.said)
    def say(self) -> None:
        self.said = True
        self.announce("hello")


class Log(Monitor):
    who: tuple[Pid, ...] = ()

    def observe(self, process: Pid, event: Any) -> None:
        self.who = (*self.who, process)


class Child(Process):
    of: int = 0


class Parent(Process):
    name: int
    born: bool = False

    @action(when=lambda self: not self.born)
    def bear(self) -> None:
        self.born = True
        self.spawn(Child, of=self.name)


class Told(Process):
    """Has a note from the beginning, and loses it perhaps."""

    @action(when=lambda self: False)
    def never(self) -> None: ...


class Starter(Source):
    """Sends a note at once, and later the same again."""

    @init
    def begin(self) -> None:
        self.send(self.to, Note())


def visits(system: System) -> tuple[int, int]:
    return search(system, "stateless", dpor=True).counters.states, search(system, "stateless").counters.states


def test_independent_processes_have_one_run() -> None:
    # Of the (3 * 2)! / 2!**3 orders of the steps one is enough: seven states in a row.
    system = System([Counter(limit=2) for _ in range(3)], properties=[])
    assert visits(system)[0] == 7


def test_a_property_that_reads_one_process_needs_no_orders() -> None:
    @always
    def small(s: Any) -> bool:
        return bool(s[Counter][1].n <= 2)

    assert visits(System([Counter(limit=2) for _ in range(3)], properties=[small]))[0] <= 2 * 7


def test_monitors_need_every_order() -> None:
    system = System([Teller() for _ in range(3)], monitors=[Log()])
    assert visits(system) == (1 + 3 + 6 + 6, 1 + 3 + 6 + 6)


def test_a_cut_is_inconclusive() -> None:
    verdict = check(System([Counter(limit=5)]), search="stateless", reduce="dpor", max_depth=3)
    assert (verdict.status, verdict.bound) == ("inconclusive", "max-depth")
    verdict = check(System([Counter(limit=5)]), search="stateless", reduce="dpor", max_depth=6, explore=True)
    assert (verdict.status, verdict.bound, verdict.statistics.depth) == ("holds", None, 5)


class Careful(Process):
    """Fails if it is told before it rests."""

    rested: bool = False

    @action(when=lambda self: not self.rested)
    def rest(self) -> None:
        self.rested = True

    @on(Note)
    def told(self, m: Note) -> None:
        assert self.rested


def test_a_failing_step_is_met_and_blocks_nobody() -> None:
    @reachable
    def end(s: Any) -> bool:
        return bool(s[Counter][0].n == 2)

    processes = [Careful(), Source(to=Careful.pid(0)), Counter(limit=2)]
    verdict = check(System(processes, properties=[end]), search="stateless", reduce="dpor", keep_going=True)
    assert {p.name: p.status for p in verdict.properties} == {"end": "holds", "assertions": "violated"}
    failed = next(p.trace for p in verdict.properties if p.name == "assertions")
    assert failed is not None
    assert [event.label for event in failed.events][-1] == "told"


class Mistaken(Process):
    """Has a step that fails, always."""

    @action
    def fail(self) -> None:
        raise AssertionError


class Turner(Process):
    """May turn on the spot, or stop."""

    stopped: bool = False

    @action(when=lambda self: not self.stopped)
    def a_turn(self) -> None: ...

    @action(when=lambda self: not self.stopped)
    def stop(self) -> None:
        self.stopped = True


def test_a_run_with_steps_on_the_spot_has_no_failing_step() -> None:
    @always
    def going(s: Any) -> bool:
        return not s[Turner][0].stopped

    system = System([Mistaken(), Turner()], properties=[going])
    verdict = check(system, search="stateless", reduce="dpor", keep_going=True, max_depth=5, raw=True)
    trace = next(p.trace for p in verdict.properties if p.name == "going")
    assert trace is not None
    assert [event.label for event in trace.events] == ["a_turn"] * 4 + ["stop"]


def taker() -> System:
    return System([Taker(), Source(to=Taker.pid(0))])


def orders() -> System:
    @always
    def first(s: Any) -> bool:
        return bool(s[Counter][0].n >= s[Counter][1].n)

    return System([Counter(), Counter()], properties=[first])


def tellers() -> System:
    return System([Teller(), Teller()], monitors=[Log()])


def parents() -> System:
    return System([Parent(name=1), Parent(name=2)], spare={Child: 2})


def lost_and_sent(network: Any) -> System:
    return System([Starter(to=Told.pid(0)), Told()], network=network)


def lost_or_not() -> System:
    return System([Idler(), Counter(), Starter(to=Idler.pid(0), left=0)], network=unordered(lossy=True))


RULES = {
    "dpor-sends": taker,
    "dpor-visibility": orders,
    "dpor-monitors": tellers,
    "dpor-spawns": parents,
    "dpor-losses": lambda: lost_and_sent(duplicating(losses=1)),
    "dpor-wakes": tellers,
    "dpor-ends": lost_or_not,
}


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_something_is_missed(rule: str) -> None:
    truth = found(search(RULES[rule](), "bfs"))
    assert found(search(RULES[rule](), "stateless", dpor=True)) == truth
    mutant = found(search(RULES[rule](), "stateless", dpor=True, leave_out=[rule]))
    assert mutant != truth
    assert mutant[0] <= truth[0]
    assert mutant[1] <= truth[1]


@pytest.mark.parametrize(
    "system",
    [
        lost_and_sent(fifo(losses=1)),
        lost_and_sent(fifo(losses=2)),
        lost_and_sent(unordered(losses=1)),
        lost_and_sent(duplicating(duplications=1, losses=1)),
        System([Taker(), Source(to=Taker.pid(0), left=2), Taker()], faults=[crash_stop(budget=1)]),
        System([Taker(), Source(to=Taker.pid(0), left=2), Taker()], faults=[crash_stop(Taker), crash_stop(budget=2)]),
    ],
    ids=str,
)
def test_faults(system: System) -> None:
    assert found(search(system, "stateless", dpor=True)) == found(search(system, "bfs"))


def test_final_properties_see_every_end() -> None:
    @final
    def rested(s: Any) -> bool:
        return bool(s[Taker][0].done == "rested")

    processes = [Taker(), Source(to=Taker.pid(0))]
    verdict = check(System(processes, properties=[rested]), search="stateless", reduce="dpor")
    assert verdict.status == "violated"
    assert verdict.trace is not None
    assert [event.label for event in verdict.trace.events] == ["send_one", "take"]
