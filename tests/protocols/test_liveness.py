"""Temporal properties of the zoo: what is known of each protocol, and what becomes of it without an assumption."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, System, Verdict, check
from plait.check.explain.replay import replay
from plait.protocols.ben_or import ben_or
from plait.protocols.chang_roberts import chang_roberts
from plait.protocols.lamport_mutex import lamport_mutex
from plait.protocols.raft import raft
from plait.protocols.zab import zab


def checked(system: System, **options: Any) -> tuple[Verdict, dict[str, str]]:
    """The verdict, and the status of each property; whatever is violated replays."""
    verdict = check(system, keep_going=True, **options)
    for result in verdict.properties:
        if result.trace is not None:
            assert len(list(replay(system, result.trace))) == len(result.trace)
    return verdict, {p.name: p.status for p in verdict.properties}


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
@pytest.mark.parametrize("initiators", ["any", "all", ""])
def test_elections_on_a_ring_terminate(nodes: int, initiators: str) -> None:
    for reduce in ("none", "por"):
        found = checked(chang_roberts(nodes, initiators, specification="live"), reduce=reduce)[1]
        assert set(found.values()) == {"holds"}


def test_a_greedy_claim_goes_round_for_ever() -> None:
    verdict, found = checked(chang_roberts(specification="live", faulty="greedy"))
    assert found["termination"] == "violated"
    trace = next(p.trace for p in verdict.properties if p.name == "termination")
    assert trace is not None
    assert trace.loop is not None
    assert [event.label for event in trace.events[trace.loop :]] == ["receive"] * 3  # a claim, at each node
    assert len({event.lane for event in trace.events[trace.loop :]}) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "entries"), [(2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("quorum", [True, False])
def test_nobody_starves(processes: int, entries: int, quorum: bool) -> None:
    found = checked(lamport_mutex(processes, entries, quorum, specification="live"))[1]
    assert set(found.values()) == {"holds"}
    assert sum(name.startswith("no_starvation") for name in found) == processes


@pytest.mark.slow
def test_without_acknowledgements_a_release_overtakes_its_request() -> None:
    """On an unordered network; in queues it can not."""
    verdict, found = checked(lamport_mutex(2, 1, network="unordered", faulty="acks", specification="live"))
    assert found["no_starvation1"] == "violated"
    trace = next(p.trace for p in verdict.properties if p.name == "no_starvation1")
    assert trace is not None
    assert trace.loop is None  # it waits at the end
    assert "released" in [event.label for event in trace.events]
    assert checked(lamport_mutex(2, 1, faulty="acks", specification="live"))[1]["no_starvation1"] == "holds"


def test_starvation_is_not_asked_where_requests_are_cut_off() -> None:
    with pytest.raises(ModelError, match="requests beyond the limit are never received"):
        lamport_mutex(2, None, clock_limit=4, specification="live")


@pytest.mark.slow
@pytest.mark.parametrize("quorum", [True, False])
@pytest.mark.parametrize(
    ("leaders", "followers", "restless", "expected"),
    [(1, 3, 0, "holds"), (2, 3, 0, "holds"), (3, 3, 0, "violated"), (2, 2, 0, "violated"), (2, 3, 1, "violated")],
)
def test_zab_as_a_state_property_and_as_one_of_runs(
    leaders: int, followers: int, restless: int, expected: str, quorum: bool
) -> None:
    parameters: dict[str, Any] = {"proposals": 0, "restless": restless, "quorum": quorum}
    state = checked(zab(leaders, followers, specification="live", **parameters))[1]
    for reduce in ("none", "por", "symmetry"):
        if reduce == "symmetry" and (restless or leaders == 1):
            continue
        run = checked(zab(leaders, followers, specification="eventual", **parameters), reduce=reduce)[1]
        assert state["establishment"] == run["eventual_establishment"] == expected


RAFT = {
    # Nobody has to do anything; or to time out.
    ("any", "none"): "violated",
    ("any", "messages"): "violated",
    ("1", "none"): "violated",
    ("1", "messages"): "violated",
    # Votes are split, in each term.
    ("any", "timeouts"): "violated",
    ("any,any", "timeouts"): "violated",
    # One alone stands: it wins.
    ("1", "timeouts"): "holds",
    ("any,1", "timeouts"): "holds",
}


@pytest.mark.slow
@pytest.mark.parametrize(("elections", "fairness"), RAFT)
def test_raft_elects_a_leader_if_timeouts_are_fair_and_differ(elections: str, fairness: Any) -> None:
    system = raft(elections=elections, specification="live", fairness=fairness)
    verdict, found = checked(system)
    assert found["leadership"] == RAFT[elections, fairness]
    assert all(status == "holds" for name, status in found.items() if name != "leadership")
    if verdict.trace is not None:
        assert verdict.trace.loop is not None
        assert {event.lane for event in verdict.trace.events[verdict.trace.loop :]} == {"Client0"}
        if fairness == "timeouts":  # everybody stood, in the last term that there is
            assert {e.lane for e in verdict.trace.events if e.label == "time_out"} >= {"Server0", "Server1", "Server2"}


def test_ben_or_without_luck_never_ends() -> None:
    verdict, found = checked(ben_or((0, 1), f=0, phases=None, specification="live"))
    assert found == {
        "agreement": "holds",
        "validity": "holds",
        "decision": "holds",
        "termination": "violated",
        "luck_suffices": "holds",
    }
    assert verdict.trace is not None
    loop = verdict.trace.events[verdict.trace.loop :]
    tossed = [event.choices for event in loop if event.label == "conclude"]
    assert tossed
    assert all(one != other for one, other in zip(tossed[::2], tossed[1::2], strict=True))  # one of each, in each phase


@pytest.mark.parametrize("inputs", [(0, 0), (1, 1, 1), (0, 1, 1)])
def test_ben_or_with_a_majority_needs_no_luck(inputs: tuple[int, ...]) -> None:
    assert set(checked(ben_or(inputs, f=0, phases=None, specification="live"))[1].values()) == {"holds"}


def test_ben_or_without_end_needs_every_message() -> None:
    with pytest.raises(ModelError, match="phases=None and f=1"):
        ben_or(phases=None)
