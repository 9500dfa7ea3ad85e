"""Raft: the properties of the paper's figure 3, the mistake of its figure 8, and how large the model is."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, System, check
from plait.kernel.trace import Trace
from plait.protocols.raft import AnyServer, raft
from tests.oracle.explorer import explore
from tests.oracle.replay import replay

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])


def last(trace: Trace | None) -> list[dict[str, Any]]:
    """The servers' fields in the last state; logs as the terms of their entries."""
    assert trace is not None
    servers: list[dict[str, Any]] = list(trace.events[-1].state.fields.values())
    return [
        server | {"role": server["role"]["#enum"], "log": [entry["term"] for entry in server["log"]["#tup"]]}
        for server in servers
    ]


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize(
    "parameters",
    [{}, {"servers": 2}, {"servers": 4, "elections": "1+2"}, {"servers": 5, "elections": "1"}, {"elections": "1,3,1"}],
)
def test_it_is_safe(parameters: dict[str, Any], quorum: bool) -> None:
    verdict = check(raft(**parameters, quorum=quorum))
    assert verdict.status == "holds"
    assert verdict.bound is None


@QUORUM
def test_every_handler_runs(quorum: bool) -> None:
    assert check(raft(quorum=quorum)).warnings == []


@QUORUM
def test_logs_of_two_entries(quorum: bool) -> None:
    """Entries overtake each other: a follower must refuse the second, and must not forget it when the first is late."""
    verdict = check(raft(elections="1", entries=2, quorum=quorum))
    assert verdict.status == "holds"
    assert verdict.warnings == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "states", "transitions"),
    [
        ({"elections": "any"}, 215, 360),
        ({"elections": "any", "quorum": False}, 239, 414),
        ({"elections": "1,2"}, 1_301, 2_415),
        ({"elections": "1", "entries": 2}, 2_381, 5_915),
        ({"elections": "1", "servers": 4}, 126, 229),
    ],
)
def test_the_oracle_agrees(parameters: dict[str, Any], states: int, transitions: int) -> None:
    truth = explore(raft(**parameters))
    assert (truth.states, truth.transitions, truth.violated) == (states, transitions, set())
    found = check(raft(**parameters)).statistics
    assert (found.states, found.transitions, found.terminal_states) == (states, transitions, truth.terminal)


@pytest.mark.slow
def test_size() -> None:
    """Larger ones, which the oracle would take long to count."""
    assert check(raft()).statistics.states == 14_091
    assert check(raft(quorum=False)).statistics.states == 23_442
    assert check(raft(elections="1,3,1,3")).statistics.states == 634_865


# -- faulty twins ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@QUORUM
def test_figure_8(quorum: bool) -> None:
    """Server 3 is elected without the entry of term 1 that server 1 committed in term 3."""
    system = raft(faulty="commit", quorum=quorum)
    verdict = check(system)
    assert verdict.property == "leader_completeness"
    assert verdict.trace is not None
    assert len(verdict.trace) == 20
    assert replay(system, verdict.trace) is not None
    one, _, three = last(verdict.trace)
    assert (one["log"], one["commit"]) == ([1], 1)
    assert (three["log"], three["commit"], three["term"], three["role"]) == ([2], 0, 4, "Role.LEADER")


@pytest.mark.slow
@QUORUM
def test_figure_8_takes_four_terms(quorum: bool) -> None:
    assert check(raft(faulty="commit", elections="1+3,1+3,1+3", quorum=quorum)).status == "holds"


@pytest.mark.slow
def test_figure_8_takes_four_terms_whoever_stands() -> None:
    assert check(raft(faulty="commit", elections="any,any,any"), reduce="symmetry").status == "holds"


@pytest.mark.slow
@QUORUM
def test_who_votes_twice_elects_two_leaders(quorum: bool) -> None:
    verdict = check(raft(faulty="vote", quorum=quorum))
    assert verdict.property == "election_safety"
    assert verdict.trace is not None
    assert len(verdict.trace) == 6, "two stand for election, two votes, two wins"
    leaders = [server for server in last(verdict.trace) if server["role"] == "Role.LEADER"]
    assert [leader["term"] for leader in leaders] == [1, 1]


@pytest.mark.slow
@QUORUM
def test_who_does_not_compare_logs_elects_a_leader_without_committed_entries(quorum: bool) -> None:
    verdict = check(raft(faulty="log", quorum=quorum))
    assert verdict.property == "leader_completeness"
    assert verdict.trace is not None
    assert len(verdict.trace) == 9
    servers = last(verdict.trace)
    assert any(server["commit"] == 1 and server["log"] == [1] for server in servers)
    assert any(server["role"] == "Role.LEADER" and server["term"] == 2 and server["log"] == [] for server in servers)


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize(
    ("faulty", "elections", "lengths"),
    [
        (
            "vote",
            "any",
            {"election_safety": 6, "log_matching": 8, "leader_completeness": 9, "state_machine_safety": 12},
        ),
        ("log", "1,3", {"leader_completeness": 9, "state_machine_safety": 12}),
    ],
)
def test_the_oracle_agrees_on_the_twins(faulty: Any, elections: str, lengths: dict[str, int], quorum: bool) -> None:
    system = raft(faulty=faulty, elections=elections, quorum=quorum)
    truth = explore(system)
    assert {name: truth.properties[name].length for name in truth.violated} == lengths
    verdict = check(system, keep_going=True)
    found = {p.name: len(p.trace) for p in verdict.properties if p.status == "violated" and p.trace is not None}
    assert found == lengths
    assert verdict.statistics.states == truth.states


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize("faulty", ["commit", "vote", "log"])
def test_random_walks_find_the_faults(faulty: Any, quorum: bool) -> None:
    """Of the properties that a fault breaks, a walk may come upon any first."""
    verdict = check(raft(faulty=faulty, quorum=quorum), search="random")
    broken = {"leader_completeness", "state_machine_safety"}
    assert verdict.property in (broken | {"election_safety", "log_matching"} if faulty == "vote" else broken)


# -- reductions ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@QUORUM
def test_reductions_agree(quorum: bool) -> None:
    verdict = check(raft(quorum=quorum), reduce="auto")
    assert verdict.status == "holds"
    assert verdict.statistics.states < check(raft(quorum=quorum)).statistics.states / 5
    for faulty, elections in (("vote", "any"), ("log", "any,any"), ("log", "1,3")):
        system = raft(elections=elections, faulty=faulty, quorum=quorum)  # type: ignore[arg-type]
        assert violated(system, reduce="auto") == violated(system)


def violated(system: System, **options: Any) -> set[str]:
    return {p.name for p in check(system, keep_going=True, **options).properties if p.status == "violated"}


def test_servers_are_symmetric_if_all_may_stand() -> None:
    assert raft().symmetric == [AnyServer]
    assert raft(elections="1+2+3,any").symmetric == []


# -- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"servers": 1}, "servers=1"),
        ({"entries": 0}, "entries=0"),
        ({"faulty": "term"}, "faulty='term'"),
        ({"elections": "4"}, "'4' is not a server"),
        ({"elections": "1,,2"}, "'' is not a server"),
        ({"elections": "any,0"}, "'0' is not a server"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        raft(**wrong)
