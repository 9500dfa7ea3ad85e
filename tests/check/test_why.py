"""Why a property is false: the steps that are said to matter are enough, and the clauses are those of the source."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from plait import (
    Message,
    Monitor,
    Pid,
    Process,
    System,
    action,
    always,
    check,
    crash_recovery,
    crash_stop,
    final,
    on,
    recovery,
)
from plait.kernel.trace import Event, Trace
from plait.kernel.values import to_data
from tests.oracle.explorer import Exploration
from tests.oracle.random_systems import explored_systems
from tests.oracle.relation import State, initial, make, successors
from tests.oracle.replay import agrees, matches


def follow(system: System, trace: Trace, steps: list[int]) -> None:
    """Take these steps alone, by the oracle: each must be possible, and do to its process what it did in the trace."""
    states = {initial(system)}
    for number in steps:
        event = trace.events[number]
        if event.note:
            moves = [t for s in states for t in successors(system, s) if t.state is None]
            assert any(matches(system, t, trace, event) for t in moves), "the failure needs a step that was left out"
            return
        moves = [t for s in states for t in successors(system, s) if matches(system, t, trace, event)]
        if event.announced and moves and all(t.state is None for t in moves):
            return  # a monitor requires a step that was left out
        after = {t.state for t in moves}
        states = {s for s in after if s is not None and does_the_same(system, s, event)}
        assert states, f"step {number + 1} needs a step that was left out"


def does_the_same(system: System, state: State, event: Event) -> bool:
    index = [repr(pid) for pid in system.pids].index(event.lane)
    fields = state.slots[index].fields
    values = vars(make(system.classes[index], fields)) if fields else {}
    return all(to_data(values[name]) == after for name, (_, after) in event.changed.items() if name in values)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(explored_systems(limit=60))
def test_the_steps_that_matter_are_enough(pair: tuple[System, Exploration]) -> None:
    system, truth = pair
    assume(truth.violated)
    for result in check(system, keep_going=True).properties:
        trace = result.trace
        if trace is None or trace.why is None or result.status != "violated":
            continue
        assert agrees(system, initial(system), trace, trace.initial)
        follow(system, trace, trace.why.steps)
        for read in trace.why.reads:
            if read.step is not None and read.field not in (None, "status", "inbox"):
                event = trace.events[read.step]
                assert read.step in trace.why.steps
                if event.lane == read.lane and event.kind == "step":
                    assert event.changed[read.field][1] == read.value


class Note(Message):
    """A number."""

    number: int


class Writer(Process):
    """Sends its number on."""

    number: int
    to: Pid
    sent: bool = False

    @action(when=lambda self: not self.sent)
    def write(self) -> None:
        self.sent = True
        self.send(self.to, Note(self.number))


class Reader(Process):
    """Remembers the sum, and how often it was asked."""

    total: int = 0
    asked: int = 0

    @on(Note)
    def read(self, m: Note) -> None:
        self.total += m.number

    @action(when=lambda self: self.asked < 1)
    def ask(self) -> None:
        self.asked += 1


def limit() -> int:
    return 2


@always
def small(s: Any) -> bool:
    """Sums stay small."""
    return all(reader.total < limit() for reader in s[Reader]) or not s[Reader]


def test_clauses_reads_and_steps() -> None:
    system = System(
        [Writer(number=1, to=Reader.pid(0)), Writer(number=3, to=Reader.pid(0)), Reader()], properties=[small]
    )
    verdict = check(system, search="dfs", raw=True)
    assert verdict.trace is not None
    why = verdict.trace.why
    assert why is not None
    assert [(c.text, c.value) for c in why.clauses] == [
        ("all(reader.total < limit() for reader in s[Reader])", "False"),
        ("with reader = Reader0", ""),
        ("reader.total < limit()", "False"),
        ("reader.total", str(verdict.trace.events[-1].state.fields["Reader0"]["total"])),
        ("limit()", "2"),
        ("s[Reader]", "(Reader0,)"),
    ]
    (read,) = why.reads
    assert (read.lane, read.field, read.step) == ("Reader0", "total", len(verdict.trace) - 1)
    # Writing and reading matter, asking does not.
    assert {verdict.trace.events[i].label for i in why.steps} == {"write", "read"}
    assert "ask" not in {verdict.trace.events[i].label for i in why.steps}


class Log(Monitor):
    """Remembers everything."""

    seen: tuple[Any, ...] = ()

    def observe(self, process: Pid, event: Any) -> None:
        self.seen = (*self.seen, event)


class Announcer(Process):
    """Says one thing."""

    said: bool = False

    @action(when=lambda self: not self.said)
    def say(self) -> None:
        self.said = True
        self.announce("hello")


def test_a_monitor_remembers_all_that_was_announced() -> None:
    @always
    def quiet(s: Any) -> bool:
        return len(s[Log].seen) < 2

    verdict = check(System([Announcer(), Announcer()], monitors=[Log()], properties=[quiet]))
    assert verdict.trace is not None
    assert verdict.trace.why is not None
    assert verdict.trace.why.steps == [0, 1]
    assert [(r.lane, r.field, r.step) for r in verdict.trace.why.reads] == [("Log", None, 1)]
    assert ("len(s[Log].seen)", "2") in [(c.text, c.value) for c in verdict.trace.why.clauses]
    assert "is 2" in str(verdict.trace)


# -- properties that are more than an expression -----------------------------------------------------------------------


class Up(Process):
    """Counts to two."""

    n: int = 0

    @action(when=lambda self: self.n < 2)
    def up(self) -> None:
        self.n += 1


LIMIT = 3


def _variables(s: Any) -> bool:
    first, second = s[Up]
    total = first.n + second.n
    return bool(total < LIMIT)


def _loops(s: Any) -> bool:
    for a in s[Up]:
        for b in s[Up]:
            if a.n > b.n + 1:
                return False
    return True


def _asserts(s: Any) -> bool:
    for a in s[Up]:
        assert a.n < 2, "too large"
    return True


def _guarded(s: Any) -> bool:
    a, b = s[Up]
    if a.n == 2:
        return bool(b.n >= 1)
    return True


def _matched(s: Any) -> bool:
    match [a.n for a in s[Up]]:
        case [1, 1]:
            return False
    return True


def large(a: Any, limit: int) -> bool:
    found = a.n > limit
    return bool(found)


def _calling(s: Any) -> bool:
    return not any(large(a, 1) for a in s[Up])


def _tried(s: Any) -> bool:
    try:
        return bool([1, 1][s[Up][0].n] == 1)
    except IndexError:
        return False


STATEMENTS = {
    _variables: [("total < LIMIT", "False"), ("total", "3"), ("LIMIT", "3")],
    _loops: [
        ("with a = Up0", ""),
        ("with b = Up1", ""),
        ("a.n > b.n + 1", "True"),
        ("a.n", "2"),
        ("b.n + 1", "1"),
    ],
    _asserts: [("with a = Up0", ""), ("a.n < 2", "False"), ("a.n", "2")],
    _guarded: [("a.n == 2", "True"), ("b.n >= 1", "False"), ("b.n", "0")],
    _matched: [("[a.n for a in s[Up]]", "[1, 1]")],
    _calling: [
        ("any(large(a, 1) for a in s[Up])", "True"),
        ("with a = Up0", ""),
        ("large(a, 1)", "True"),
        ("found", "True"),
    ],
    _tried: [],
}


@pytest.mark.parametrize("function", STATEMENTS, ids=lambda f: f.__name__)
def test_statements(function: Any) -> None:
    trace = check(System([Up(), Up()], properties=[always(function)])).trace
    assert trace is not None
    assert trace.why is not None
    assert [(c.text, c.value) for c in trace.why.clauses] == STATEMENTS[function]


def test_a_lambda() -> None:
    trace = check(System([Up()], properties=[always(lambda s: s[Up][0].n < 2 and True, name="small")])).trace
    assert trace is not None
    assert trace.why is not None
    assert [(c.text, c.value) for c in trace.why.clauses] == [("s[Up][0].n < 2", "False"), ("s[Up][0].n", "2")]


def test_the_initial_state() -> None:
    verdict = check(System([Up()], properties=[always(lambda s: s[Up][0].n > 0, name="never")]))
    assert verdict.properties[0].note == "in the initial state"
    assert verdict.trace is not None
    assert verdict.trace.explanation == "never is false in the initial state"


def test_who_runs_and_what_is_pending() -> None:
    def reads(system: System) -> list[tuple[str, str | None, Any, int | None]]:
        trace = check(system).trace
        assert trace is not None
        assert trace.why is not None
        return [(r.lane, r.field, r.value, r.step) for r in trace.why.reads]

    up = always(lambda s: not any(p.crashed for p in s), name="up")
    assert reads(System([Up()], properties=[up], faults=[crash_stop(Up, budget=1)])) == [
        ("Up0", "status", "crashed", 0)
    ]
    quiet = always(lambda s: not s.messages, name="quiet")
    sending = System([Writer(number=1, to=Reader.pid(0)), Reader()], properties=[quiet])
    assert reads(sending) == [("Reader0", "inbox", [{"#type": "Note", "number": 1}], 0)]


class Careful(Process):
    """Fails at the second note, of which it does not know."""

    seen: int = 0
    idle: int = 0

    @on(Note)
    def read(self, m: Note) -> None:
        if self.seen != 0:
            raise AssertionError("again")  # pytest's own assertions read all fields, to show them
        self.seen = m.number

    @action(when=lambda self: self.idle < 1)
    def rest(self) -> None:
        self.idle += 1


def test_a_failed_assertion() -> None:
    writers = [Writer(number=n, to=Careful.pid(0)) for n in (1, 3)]
    trace = check(System([*writers, Careful()]), search="dfs", raw=True).trace
    assert trace is not None
    assert trace.why is not None
    first = next(i for i, e in enumerate(trace.events) if e.label == "read")
    assert [(r.lane, r.field, r.step) for r in trace.why.reads] == [("Careful0", "seen", first)]
    assert {trace.events[i].label for i in trace.why.steps} == {"write", "read"}


class Rebooting(Process):
    """Says when it is back."""

    to: Pid

    @recovery
    def back(self) -> None:
        self.send(self.to, Note(5))


def test_a_process_comes_back_because_it_was_down() -> None:
    system = System(
        [Rebooting(to=Reader.pid(0)), Reader()], faults=[crash_recovery(Rebooting, budget=1)], properties=[small]
    )
    trace = check(system).trace
    assert trace is not None
    assert trace.why is not None
    assert [trace.events[i].kind for i in trace.why.steps] == ["crash", "recover", "step"]


def test_all_steps_have_a_part_in_an_end() -> None:
    ended = final(lambda s: s[Up][0].n < 2, name="ended")
    trace = check(System([Up(), Up()], properties=[ended])).trace
    assert trace is not None
    assert trace.why is not None
    assert trace.why.steps == list(range(len(trace)))


SEEDED = """
from plait import Process, System, action, always, check

class Board(Process):
    apple: int = 0
    pear: int = 0
    fig: int = 0

    @action
    def go(self):
        self.apple = self.pear = self.fig = 1

@always
def all_zero(s):
    names = {"apple", "pear", "fig"}
    return sum(getattr(b, name) for name in names for b in s[Board]) == 0

why = check(System([Board(), Board()], properties=[all_zero])).trace.why
print([(r.lane, r.field, r.value, r.step) for r in why.reads], [(c.text, c.value) for c in why.clauses])
"""


@pytest.mark.slow
def test_the_reasons_do_not_depend_on_the_hash_seed() -> None:
    """The property reads its fields in the order of a set of names."""
    said = set()
    for seed in ("0", "1", "2", "3"):
        run = [sys.executable, "-c", SEEDED]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        said.add(subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(said) == 1


class Counts(Monitor):
    """Raises at the second announcement."""

    count: int = 0

    def observe(self, process: Pid, event: Any) -> None:
        self.count = {0: 1}[self.count]


class Speaker(Process):
    """Announces once."""

    spoke: bool = False

    @action(when=lambda self: not self.spoke)
    def speak(self) -> None:
        self.spoke = True
        self.announce("hello")


def test_a_monitor_that_raises_depends_on_all_announcements() -> None:
    verdict = check(System([Speaker(), Speaker()], monitors=[Counts()]))
    assert verdict.trace is not None
    assert verdict.trace.why is not None
    assert verdict.trace.why.steps == [0, 1]
