"""Why a property is false: the steps that are said to matter are enough, and the clauses are those of the source."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings

from plait import Message, Monitor, Pid, Process, System, action, always, check, on
from plait.kernel.trace import Event, Trace
from plait.kernel.values import to_data
from tests.oracle.explorer import Exploration
from tests.oracle.relation import State, initial, make, successors
from tests.oracle.replay import agrees, matches
from tests.oracle.systems import explored_systems


def follow(system: System, trace: Trace, steps: list[int]) -> None:
    """Take these steps alone, by the oracle: each must be possible, and do to its process what it did in the trace."""
    states = {initial(system)}
    for number in steps:
        event = trace.events[number]
        after = {t.state for s in states for t in successors(system, s) if matches(system, t, trace, event) and t.state}
        states = {s for s in after if s is not None and does_the_same(system, s, event)}
        assert states, f"step {number + 1} needs a step that was left out"


def does_the_same(system: System, state: State, event: Event) -> bool:
    index = [repr(pid) for pid in system.pids].index(event.lane)
    fields = state.slots[index].fields
    values = vars(make(system.classes[index], fields)) if fields else {}
    return all(to_data(values[name]) == after for name, (_, after) in event.changed.items() if name in values)


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
            if read.step is not None and read.field is not None:
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
