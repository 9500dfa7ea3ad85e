"""Three-phase commit: consistent and not blocking as long as timeouts do not err; what each fault does to it."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, Verdict, check
from plait.protocols.three_phase_commit import Fault, Site, three_phase_commit
from tests.oracle.explorer import explore

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])


def last_state(verdict: Verdict) -> list[dict[str, Any]]:
    """The sites at the end of the counterexample: up, state, phase, and how many are untold."""
    assert verdict.trace is not None
    fields = verdict.trace.events[-1].state.fields
    return [
        {
            "up": site["up"],
            "state": site["state"]["#enum"].removeprefix("State."),
            "phase": site["phase"]["#enum"].removeprefix("Phase."),
            "untold": len(site["untold"]["#set"]),
        }
        for lane, site in sorted(fields.items())
        if "Site" in lane
    ]


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize("reduce", ["none", "auto"])
@pytest.mark.parametrize(("participants", "crashes"), [(1, 0), (1, 2), (2, 0), (2, 1), (2, 2), (2, 3)])
def test_it_is_consistent_and_does_not_block(participants: int, crashes: int, quorum: bool, reduce: str) -> None:
    verdict = check(three_phase_commit(participants, crashes, quorum), reduce=reduce)
    assert verdict.status == "holds", str(verdict)
    assert verdict.bound is None


@pytest.mark.slow
def test_three_participants() -> None:
    verdict = check(three_phase_commit(participants=3, crashes=1))
    assert (verdict.status, verdict.statistics.states) == ("holds", 82_582)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("crashes", "quorum", "states", "transitions"),
    [(0, True, 107, 180), (1, True, 2_162, 4_073), (1, False, 2_707, 5_134)],
)
def test_size(crashes: int, quorum: bool, states: int, transitions: int) -> None:
    system = three_phase_commit(crashes=crashes, quorum=quorum)
    truth, found = explore(system), check(system).statistics
    assert truth.violated == set()
    assert (truth.states, truth.transitions) == (states, transitions)
    assert (found.states, found.transitions, found.terminal_states) == (states, transitions, truth.terminal)


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize(
    ("faulty", "crashes", "needed"), [("slow", 2, 0), ("hasty", 2, 2), ("local", 2, 1)], ids=lambda value: str(value)
)
def test_how_many_crashes_it_takes_to_notice(faulty: Fault, crashes: int, needed: int, quorum: bool) -> None:
    for budget in range(crashes + 1):
        found = check(three_phase_commit(crashes=budget, quorum=quorum, faulty=faulty)).property
        assert found == ("consistency" if budget >= needed else None)


@pytest.mark.slow
@pytest.mark.parametrize("faulty", ["slow", "hasty", "local"])
def test_no_fault_blocks_or_commits_before_all_have_voted(faulty: Fault) -> None:
    assert check(three_phase_commit(faulty=faulty), properties=["unanimity", "not_blocking"]).status == "holds"


def test_slow_has_two_coordinators_that_decide_differently() -> None:
    """Nobody crashes: a participant is tired of waiting for the coordinator, and the coordinator of waiting for it."""
    verdict = check(three_phase_commit(crashes=0, faulty="slow"), workers=1)
    assert verdict.trace is not None
    assert not any("crash" in event.label for event in verdict.trace.events)
    old, new, _ = last_state(verdict)
    assert (old["state"], new["state"]) == ("COMMITTED", "ABORTED")
    assert old["phase"] == new["phase"] == "CLOSING"


@pytest.mark.slow
def test_hasty_decides_and_crashes_before_it_has_told_anybody() -> None:
    verdict = check(three_phase_commit(faulty="hasty"), workers=1)
    coordinator, first, second = last_state(verdict)
    up = [site for site in (coordinator, first, second) if site["up"]]
    assert len(up) == 1
    assert {first["state"], second["state"]} == {"COMMITTED", "ABORTED"}
    assert coordinator["state"] == "PREPARED"


def test_local_commits_who_is_prepared_and_aborts_who_is_not() -> None:
    verdict = check(three_phase_commit(crashes=1, faulty="local"), workers=1)
    coordinator, first, second = last_state(verdict)
    assert (coordinator["up"], coordinator["phase"]) == (False, "PREPARING")
    assert coordinator["untold"] == 1
    assert {first["state"], second["state"]} == {"COMMITTED", "ABORTED"}


@pytest.mark.slow
def test_a_coordinator_that_is_not_prepared_takes_the_others_back() -> None:
    """Otherwise `retreat` would be dead code."""
    assert check(three_phase_commit(crashes=1)).warnings == []
    assert any("retreat never ran" in warning for warning in check(three_phase_commit(participants=1)).warnings)


@pytest.mark.parametrize("wrong", [{"participants": 0}, {"crashes": -1}, {"faulty": "fast"}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        three_phase_commit(**wrong)


def test_sites_are_not_symmetric() -> None:
    """They take the office in the order of their numbers."""
    assert three_phase_commit().symmetric == []
    assert all(issubclass(kind, Site) for kind in three_phase_commit().classes[1:])
