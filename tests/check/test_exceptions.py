"""An exception of user code is a violation of `no_exceptions`: with the run to it, the state and the user's traceback."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from plait import (
    Message,
    ModelError,
    Pid,
    Process,
    System,
    TraceError,
    action,
    always,
    check,
    crash_recovery,
    deadlock_free,
    eventually,
    final,
    init,
    on,
    reachable,
    recovery,
    tagged,
    weak,
)
from plait._native import _test_hooks
from plait.check.explain.replay import replay
from plait.check.tabulate.codec import ModelCodec
from plait.report.html import report
from plait.report.itf import load_trace, save_trace
from plait.report.text import verdict_text
from plait.rounds.check import check_rounds
from tests.support import raising
from tests.support.raising import PLACES, Counter, Ping, Sink, lookup, predicate, system


@pytest.mark.parametrize("broken", PLACES)
def test_the_shortest_run_the_state_and_the_users_traceback(broken: str, tmp_path: pathlib.Path) -> None:
    where, length = PLACES[broken]
    verdict = check(system(broken))
    assert (verdict.status, verdict.exit_code, verdict.property) == ("violated", 1, "no_exceptions")
    trace = verdict.trace
    assert trace is not None
    assert trace.exception is not None
    assert len(trace) == length
    assert (trace.exception.where, trace.exception.type, trace.exception.message) == (where, "KeyError", "3")
    frames = trace.exception.frames
    assert frames[-1].function == "lookup"
    assert frames[-1].code == "return {0: 1, 1: 2, 2: 3}[number]"
    assert {pathlib.Path(frame.file).name for frame in frames} == {"raising.py"}
    told = f"{where} raised KeyError: 3"
    for shown in (verdict_text(verdict), report(verdict)):
        assert told in shown
        assert "in lookup" in shown
    assert verdict.to_json()["trace"]["exception"]["frames"][-1]["line"] == frames[-1].line

    file = tmp_path / "run.itf.json"
    save_trace(trace, file)
    assert load_trace(file) == trace
    assert len(list(replay(system(broken), trace))) == length


def test_a_fixed_model_does_not_reproduce_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for broken, words in (("handler", "does not fail any more"), ("property", "does not raise KeyError any more")):
        trace = check(system(broken)).trace
        assert trace is not None
        with monkeypatch.context() as patched:
            patched.setattr(raising, "lookup", lambda number: number + 1)
            with pytest.raises(TraceError, match=words):
                list(replay(system(broken), trace))


@pytest.mark.parametrize("broken", PLACES)
@pytest.mark.parametrize(
    "options",
    [
        {"search": "dfs"},
        {"search": "random", "walks": 300},
        {"search": "stateless"},
        {"search": "stateless", "reduce": "dpor"},
        {"reduce": "por"},
        {"reduce": "por", "split": "combined"},
        {"reduce": "decomposition"},
        {"keep_going": True},
        {"workers": 1, "history": "last"},
    ],
    ids=str,
)
def test_every_search_and_reduction_finds_it(broken: str, options: Any) -> None:
    verdict = check(system(broken), **options)
    found = {p.name: p for p in verdict.properties}["no_exceptions"]
    assert found.status == "violated"
    assert found.trace is not None
    assert found.trace.exception is not None
    assert found.trace.exception.where == PLACES[broken][0]
    list(replay(system(broken), found.trace))


def test_other_properties_are_not_claimed() -> None:
    verdict = check(
        system("property", always(predicate, name="fine"), reachable(predicate, name="met")), keep_going=True
    )
    assert {p.name: p.status for p in verdict.properties} == {
        "fine": "inconclusive",
        "met": "holds",
        "no_exceptions": "violated",
    }
    assert check(system("property", final(predicate, name="fine"))).status == "violated"


@pytest.mark.parametrize("reduce", ["none", "por", "decomposition"])
def test_predicates_of_temporal_properties(reduce: str) -> None:
    prop = eventually(lambda s: lookup(s[Counter][0].n) > 5, name="later")
    verdict = check(system("", prop), reduce=reduce)
    assert verdict.property == "no_exceptions"
    assert verdict.trace is not None
    assert len(verdict.trace) == 3


def test_recovery_may_raise() -> None:
    class Disk(Process):
        n: int = 0

        @recovery
        def back(self) -> None:
            self.n = 1 // self.n

    verdict = check(System([Disk()], faults=[crash_recovery(Disk, budget=1)], properties=[final(lambda s: True)]))
    assert verdict.property == "no_exceptions"
    assert verdict.trace is not None
    assert [e.kind for e in verdict.trace.events] == ["crash", "recover"]


def test_the_built_in_property_can_be_chosen() -> None:
    verdict = check(system(""), properties=["no_exceptions"])
    assert [(p.name, p.status) for p in verdict.properties] == [("no_exceptions", "holds")]
    assert verdict.status == "holds"
    with pytest.raises(ModelError, match="built-in"):
        system("", always(lambda s: True, name="no_exceptions"))


def test_before_the_initial_state_it_is_a_model_error() -> None:
    class Early(Process):
        @init
        def start(self) -> None:
            lookup(7)

    with pytest.raises(ModelError, match=r"Early.start raised KeyError: 7"):
        check(System([Early()], properties=[final(lambda s: True)]))


def test_leaving_the_program_is_an_exception() -> None:
    class Leaver(Process):
        @action
        def leave(self) -> None:
            raise SystemExit(0)

    verdict = check(System([Leaver()], properties=[final(lambda s: True)]))
    assert verdict.trace is not None
    assert verdict.trace.exception is not None
    assert verdict.trace.exception.type == "SystemExit"


class Go(Message): ...


class Vote(Message): ...


class Chair(Process):
    """Its guard raises on a vote while it is open. Late votes after it has closed, so a quorum is never there before."""

    closed: bool = False

    @action(when=lambda self: not self.closed)
    def close(self) -> None:
        self.closed = True
        self.send(Late.pid(0), Go())

    @on(Vote, quorum=2, where=lambda self, m: bool(1 // self.closed))
    def count(self, votes: Any) -> None:
        pass


class Late(Process):
    @on(Go)
    def vote(self, m: Go) -> None:
        self.send(Chair.pid(0), Vote())


class Early(Process):
    sent: bool = False

    @action(when=lambda self: not self.sent)
    def vote(self) -> None:
        self.sent = True
        self.send(Chair.pid(0), Vote())


@pytest.mark.parametrize("split", ["none", "reply", "quorum", "combined"])
def test_a_guard_of_a_quorum_raises_before_the_quorum_is_there(split: Any) -> None:
    votes = System([Chair(), Late(), Early()], properties=[final(lambda s: True, name="ends")])
    assert check(votes).property == "no_exceptions"
    assert check(votes, reduce="por", split=split, workers=1).property == "no_exceptions"
    _test_hooks(leave_out=["guards"])
    try:
        missed = check(votes, reduce="por", split=split, workers=1).status == "holds"
    finally:
        _test_hooks()
    assert missed == (split in ("quorum", "combined"))  # so the rule is needed


def test_deterministic_exceptions_only() -> None:
    ticks = iter(range(1000))

    class Moody(Process):
        n: int = 0

        @action(when=lambda self: self.n < 1)
        def act(self) -> None:
            self.n = 1
            if next(ticks) % 2:
                raise RuntimeError

    with pytest.raises(
        ModelError, match=r"Moody.act is not a function of its inputs: run twice, it did not fail and then"
    ):
        check(System([Moody()], properties=[final(lambda s: True)]))


def test_vacuous_passes() -> None:
    class Idle(Process):
        n: int = 0

        @action(when=lambda self: self.n > 0)
        def act(self) -> None:
            self.n += 1

    holds = always(lambda s: True, name="holds")
    steps = System([Counter(), Sink()])
    for made, bound in (
        (steps, "no-property"),
        (System([Idle()], properties=[holds]), "no-step"),
    ):
        verdict = check(made)
        assert (verdict.status, verdict.exit_code, verdict.bound) == ("inconclusive", 3, bound)
        assert "Nothing was checked" in verdict_text(verdict)
        assert "More states may exist" not in verdict_text(verdict)
        assert "HOLDS" not in verdict_text(verdict)
        assert check(made, explore=True).status == "holds"
    assert check(steps, properties=["assertions"]).status == "holds"


def test_a_choice_among_many_values_reads_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []
    encode = ModelCodec.encode
    monkeypatch.setattr(ModelCodec, "encode", lambda self, *given: encoded.append(0) or encode(self, *given))

    class Picker(Process):
        n: int = -1

        @action(when=lambda self: self.n < 0)
        def pick(self) -> None:
            self.n = self.choose(set(range(1500)))

    assert check(System([Picker()]), workers=1, explore=True).statistics.states == 1501
    assert len(encoded) < 10 * 1500  # it was 1,500 for each of the 1,500 options


def test_a_deadlock_says_who_waits_for_what() -> None:
    class Asker(Process):
        asked: bool = False

        @action(when=lambda self: not self.asked)
        def ask(self) -> None:
            self.asked = True
            self.send(Answerer.pid(0), Ping(1))

        @on(Vote)
        def done(self, m: Vote) -> None:
            pass

    class Answerer(Process):
        @on(Ping, where=lambda self, m: m.n == 0)
        def answer(self, m: Ping) -> None:
            self.send(m.sender, Vote())

    verdict = check(System([Asker(), Answerer()], properties=[deadlock_free()]))
    assert verdict.trace is not None
    assert [(w.lane, w.handler, w.reason) for w in verdict.trace.waiting] == [
        ("Asker0", "ask", "its guard is false"),
        ("Asker0", "done", "no Vote is pending"),
        ("Answerer0", "answer", "its guard refuses the pending Ping"),
    ]
    for shown in (verdict_text(verdict), report(verdict)):
        assert "no Vote is pending" in shown
    assert verdict.to_json()["trace"]["waiting"][1]["reason"] == "no Vote is pending"


def test_a_limit_that_cuts_nothing_off_is_no_bound() -> None:
    whole = check(system(""))
    depth = whole.statistics.depth
    for limit, bound in ((depth - 1, "max-depth"), (depth, None), (depth + 1, None)):
        verdict = check(system(""), max_depth=limit)
        assert verdict.bound == bound
        if bound is None:
            assert verdict.status == "holds"
            assert verdict.statistics.transitions == whole.statistics.transitions


class Worker(Process):
    n: int = 0

    @action(when=lambda self: self.n < 2)
    def up(self) -> None:
        self.n += 1
        self.send(Hub.pid(0), Ping(self.n))


class Hub(Process):
    """Raises at the second of two workers that have sent both of their messages."""

    done: frozenset[Pid] = frozenset()
    broken: str = ""

    @on(Ping, where=lambda self, m: self.broken != "guard" or 1 // (3 - m.n - len(self.done)) < 9)
    def take(self, m: Ping) -> None:
        if m.n == 2:
            if self.broken == "handler" and self.done:
                raise LookupError(m.sender)
            self.done |= {m.sender}


@pytest.mark.parametrize("broken", ["handler", "guard", "property"])
@pytest.mark.parametrize("options", [{}, {"search": "dfs"}, {"reduce": "por,symmetry"}, {"workers": 1}], ids=str)
def test_interchangeable_processes(broken: str, options: Any) -> None:
    def alike(s: Any) -> bool:
        return broken != "property" or 1 // (2 - len(s[Hub][0].done)) < 9

    def three() -> System:
        workers = [Worker() for _ in range(3)]
        return System([Hub(broken=broken), *workers], properties=[always(alike, name="alike")], symmetric=[Worker])

    whole, verdict = check(three()), check(three(), **{"reduce": "symmetry", **options})
    assert whole.property == verdict.property == "no_exceptions"
    assert verdict.statistics.states < whole.statistics.states
    assert whole.trace is not None
    assert verdict.trace is not None
    assert verdict.trace.exception is not None
    assert whole.trace.exception is not None
    assert (verdict.trace.exception.where, verdict.trace.exception.type) == (
        whole.trace.exception.where,
        whole.trace.exception.type,
    )
    if options.get("reduce") is None:
        assert len(verdict.trace) == len(whole.trace)
    assert len(list(replay(three(), verdict.trace))) == len(verdict.trace)


def test_a_run_that_raises_is_no_fair_loop() -> None:
    """Under fairness the last step must come, and raises: so no run violates the property."""

    class Turner(Process):
        n: int = 0

        @action
        def turn(self) -> None:
            self.n = lookup(self.n) % 4

    later = eventually(lambda s: s[Turner][0].n == 9, name="later", fairness=[weak(Turner.turn)])
    verdict = check(System([Turner()], properties=[later]), keep_going=True)
    assert {p.name: p.status for p in verdict.properties}["no_exceptions"] == "violated"


def test_exceptions_in_rounds() -> None:
    @tagged(round="Go")
    class Start(Message):
        n: int

    class Sender(Process):
        sent: bool = False

        @action(when=lambda self: not self.sent)
        def go(self) -> None:
            self.sent = True
            self.broadcast(Receiver, Start(3))

    class Receiver(Process):
        broken: str = ""
        got: int = 0

        @on(Start, where=lambda self, m: self.broken != "guard" or lookup(m.n) > 0)
        def take(self, m: Start) -> None:
            self.got = lookup(m.n) if self.broken == "handler" else m.n

    for broken, where in (
        ("handler", "Receiver.take"),
        ("guard", "the guard of Receiver.take"),
        ("property", "property fine"),
    ):
        fine = always(lambda s, b=broken: b != "property" or lookup(s[Receiver][0].got) > 0, name="fine")
        protocol = System([Sender(), Receiver(broken=broken)], rounds=["Go"], properties=[fine])
        verdict = check_rounds(protocol, phases=1)
        assert (verdict.status, verdict.property) == ("violated", "no_exceptions")
        assert verdict.trace is not None
        assert verdict.trace.exception is not None
        assert (verdict.trace.exception.where, verdict.trace.exception.type) == (where, "KeyError")
        assert len(list(replay(protocol, verdict.trace))) == len(verdict.trace) == 2
    idle = System([Receiver()], rounds=["Go"], properties=[always(lambda s: True, name="fine")])
    verdict = check_rounds(idle, phases=1)
    assert (verdict.status, verdict.bound, verdict.properties[0].status) == ("inconclusive", "no-step", "inconclusive")


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1},
        {"reduce": "por"},
        {"search": "dfs"},
        {"search": "dfs", "spos": False, "workers": 1},
        {"search": "dfs", "reduce": "por"},
        {"search": "stateless"},
        {"search": "stateless", "reduce": "dpor"},
    ],
    ids=str,
)
def test_a_depth_limit_at_the_deepest_state_cuts_nothing_off(options: Any) -> None:
    """Each run has eight steps: so a limit of eight cuts nothing off, with any search."""
    whole = check(system(""), **options)
    assert whole.statistics.depth == 8
    at = check(system(""), max_depth=8, **options)
    assert (at.status, at.bound) == ("holds", None)
    assert at.statistics.states == whole.statistics.states
    assert at.statistics.transitions == whole.statistics.transitions
    assert at.statistics.terminal_states == whole.statistics.terminal_states
    assert check(system(""), max_depth=7, **options).bound == "max-depth"


def test_a_cyclic_model_at_a_depth_limit() -> None:
    """In a depth-first search, a state at the limit may lead to states that are met later on another way."""

    class Dial(Process):
        n: int = 0

        @action
        def turn(self) -> None:
            self.n = (self.n + self.choose([1, 2])) % 5

    def dial() -> System:
        return System([Dial()], properties=[always(lambda s: True, name="fine")])

    for search in ("bfs", "dfs"):
        whole = check(dial(), search=search)
        found = {limit: check(dial(), search=search, max_depth=limit) for limit in range(1, 7)}
        for verdict in found.values():
            all_met = verdict.statistics.states == 5
            assert verdict.status == ("holds" if all_met else "inconclusive")
            if all_met:
                assert verdict.statistics.transitions == whole.statistics.transitions
        assert found[1].bound == "max-depth"
        assert found[6].status == "holds"
