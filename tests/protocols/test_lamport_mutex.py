"""Lamport's mutual exclusion: one at a time, and everybody in the end; and what takes that away."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, check
from plait.protocols.lamport_mutex import lamport_mutex
from tests.protocols.agreeing import assert_holds, assert_oracle, assert_violated, last

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])
CRITICAL = {"#enum": "Phase.CRITICAL"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "entries", "quorum", "states"),
    [(2, 2, True, 392), (2, 2, False, 392), (3, 1, True, 5_601), (3, 1, False, 20_000)],
)
def test_it_excludes_and_serves(processes: int, entries: int, quorum: bool, states: int) -> None:
    """Between two there is one acknowledgement, which makes a quorum."""
    assert_holds(lamport_mutex(processes, entries, quorum), states)


@pytest.mark.slow
def test_tlc() -> None:
    """MCLamportMutex of tlaplus/Examples (N = 3, maxClock = 6): 724,274 distinct states, depth 61.

    TLC counts the initial state as depth 1. Its total of 2,729,079 is not comparable: there, who is in the critical
    section may enter it once more, and states beyond the constraint are generated, though not explored.
    """
    system = lamport_mutex(processes=3, entries=None, quorum=False, clock_limit=6)
    verdict = check(system, properties=["mutual_exclusion"])
    assert verdict.status == "holds"
    assert (verdict.statistics.states, verdict.statistics.depth) == (724_274, 61 - 1)


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize(
    ("twin", "shortest"),
    [({"network": "unordered"}, 8), ({"faulty": "tie"}, 8), ({"faulty": "acks"}, 4)],
    ids=["unordered", "tie", "acks"],
)
def test_twins(twin: dict[str, Any], shortest: int, quorum: bool) -> None:
    traces = assert_violated(lamport_mutex(processes=2, quorum=quorum, **twin), {"mutual_exclusion": shortest})
    assert last(traces["mutual_exclusion"], "phase") == [CRITICAL, CRITICAL]
    assert traces["mutual_exclusion"].events[-1].label == "enter"


@pytest.mark.slow
@pytest.mark.parametrize(("twin", "shortest"), [({"network": "unordered"}, 10), ({"faulty": "tie"}, 10)])
def test_twins_among_three(twin: dict[str, Any], shortest: int) -> None:
    traces = assert_violated(lamport_mutex(**twin), {"mutual_exclusion": shortest})
    assert last(traces["mutual_exclusion"], "phase").count(CRITICAL) == 2


def test_the_tie() -> None:
    """Both requests have the same clock, and both processes know of both."""
    trace = check(lamport_mutex(processes=2, faulty="tie")).trace
    assert trace is not None
    clocks = [{stamp["#tup"][0] for stamp in queue["#set"]} for queue in last(trace, "queue")]
    assert clocks == [{1}, {1}]
    assert [len(queue["#set"]) for queue in last(trace, "queue")] == [2, 2]


def test_the_acknowledgement_overtakes_the_request() -> None:
    """Who enters first wrongly does not know of the other's request, though the other has acknowledged."""
    trace = check(lamport_mutex(processes=2, network="unordered")).trace
    assert trace is not None
    first = next(event for event in trace.events if event.label == "enter")
    mine = first.state.fields[first.lane]
    assert len(mine["acks"]["#set"]) == len(mine["queue"]["#set"]) == 1  # type: ignore[index, call-overload, arg-type]
    assert all(len(queue) <= 1 for queue in first.state.pending.values())


@pytest.mark.slow
@QUORUM
def test_the_oracle_agrees(quorum: bool) -> None:
    assert_oracle(lamport_mutex(2, 2, quorum), 392)
    assert_oracle(lamport_mutex(2, 1, quorum, network="unordered"), 85, {"mutual_exclusion": 8})
    assert_oracle(lamport_mutex(2, 1, quorum, faulty="tie"), 73, {"mutual_exclusion": 8})
    assert_oracle(lamport_mutex(2, 1, quorum, faulty="acks"), 199, {"mutual_exclusion": 4})
    assert_oracle(lamport_mutex(2, None, quorum, clock_limit=3), 191)


@pytest.mark.parametrize(
    "wrong",
    [{"processes": 1}, {"entries": 0}, {"entries": None}, {"clock_limit": 1}, {"network": "x"}, {"faulty": "x"}],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        lamport_mutex(**wrong)
