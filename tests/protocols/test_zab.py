"""Zab: safe with one leader and several, live with one only, how large it is, and that its twins are caught."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, Verdict, check
from plait.protocols.zab import AnyLeader, Follower, zab
from tests.oracle.explorer import evaluate, explore
from tests.oracle.replay import replay
from tests.support.agreement import check_traces

pytestmark = pytest.mark.slow

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])

TWINS: dict[str, dict[str, Any]] = {
    "hasty": {},
    "eager": {"restless": 2},
    "promise": {"changes": 2},
}
"""The faulty twins, each with the least that it takes to notice."""
TWIN = pytest.mark.parametrize("twin", TWINS)


def statuses(verdict: Verdict) -> dict[str, str]:
    return {p.name: p.status for p in verdict.properties}


def last(verdict: Verdict) -> dict[str, dict[str, Any]]:
    """The fields of all processes at the end of the counterexample, by name."""
    assert verdict.trace is not None
    return verdict.trace.events[-1].state.fields


def epochs(history: dict[str, Any]) -> list[int]:
    """The epochs of the transactions of a history."""
    return [transaction["epoch"] for transaction in history["#tup"]]


# -- safety -----------------------------------------------------------------------------------------------------------


@QUORUM
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"leaders": 1},
        {"leaders": 1, "followers": 1, "proposals": 3},
        {"leaders": 1, "followers": 4},
        {"followers": 2, "restless": 2},
        {"leaders": 3},
        {"proposals": 0, "restless": 3},
        {"changes": 2},
    ],
    ids=str,
)
def test_it_is_safe(parameters: dict[str, Any], quorum: bool) -> None:
    verdict = check(zab(**parameters, quorum=quorum))
    assert verdict.status == "holds"
    assert verdict.bound is None


@pytest.mark.parametrize("parameters", [{}, {"proposals": 2}, {"leaders": 3, "restless": 0}], ids=str)
def test_reductions_agree(parameters: dict[str, Any]) -> None:
    verdict = check(zab(**parameters), reduce="auto")
    assert verdict.status == "holds"
    assert all(status == "holds" for status in statuses(verdict).values())


# -- liveness ---------------------------------------------------------------------------------------------------------


@QUORUM
@pytest.mark.parametrize("followers", [1, 2, 3, 4])
def test_one_leader_is_established(followers: int, quorum: bool) -> None:
    assert check(zab(1, followers, specification="live", quorum=quorum)).status == "holds"


@QUORUM
def test_one_of_two_leaders_gets_a_quorum_of_three(quorum: bool) -> None:
    assert check(zab(2, 3, restless=0, specification="live", quorum=quorum)).status == "holds"


@QUORUM
@pytest.mark.parametrize("leaders", [3, 4])
def test_divided_followers_establish_nobody(leaders: int, quorum: bool) -> None:
    """Paper 000, Table I, Zab (6) and Zab (7): each of the three followers turns to another leader."""
    system = zab(leaders, 3, restless=0, specification="live", quorum=quorum)
    for options in ({}, {"reduce": "auto"}, {"search": "dfs"}, {"search": "random"}):
        verdict = check(system, **options)  # type: ignore[arg-type]
        assert verdict.property == "establishment"
        ends = last(verdict)
        chosen = [fields["leader"]["#pid"] for name, fields in ends.items() if "Follower" in name]
        assert len(set(chosen)) == 3
        assert all(ends[leader]["phase"] != {"#enum": "Phase.BROADCAST"} for leader in chosen)
        assert replay(system, verdict.trace) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(("quorum", "length"), [(True, 3), (False, 6)])
def test_the_shortest_way_to_nobody(quorum: bool, length: int) -> None:
    """Three elections; if leaders count, each has one to count."""
    verdict = check(zab(3, restless=0, specification="live", quorum=quorum))
    assert verdict.trace is not None
    assert len(verdict.trace) == length


@QUORUM
def test_a_restless_follower_is_enough(quorum: bool) -> None:
    """It leaves the leader that counts on it."""
    assert check(zab(specification="live", quorum=quorum)).property == "establishment"


# -- twins ------------------------------------------------------------------------------------------------------------


@QUORUM
@TWIN
def test_the_twins_are_violated(twin: str, quorum: bool) -> None:
    system = zab(**TWINS[twin], faulty=twin, quorum=quorum)  # type: ignore[arg-type]
    verdict = check(system)
    assert verdict.property == "primary_integrity"
    ends = last(verdict)
    established = [fields for fields in ends.values() if fields["phase"] == {"#enum": "Phase.BROADCAST"}]
    late = [fields for fields in established if fields.get("epoch") == 2]
    assert [epochs(leader["history"]) for leader in late] == [[]], "the leader of epoch 2 knows of nothing"
    assert any(epochs(fields.get("delivered", {"#tup": []})) == [1] for fields in ends.values()), (
        "but there was something"
    )
    # That this is a run, and what it shows, is the oracle's word as well. (Shortest, too, but that takes it minutes.)
    assert verdict.trace is not None
    end = replay(system, verdict.trace)
    assert end is not None
    assert not evaluate(system, end, next(p for p in system.properties if p.name == "primary_integrity"))


@QUORUM
@TWIN
def test_random_walks_find_the_twins(twin: str, quorum: bool) -> None:
    system = zab(**TWINS[twin], faulty=twin, quorum=quorum)  # type: ignore[arg-type]
    assert check(system, search="random", walks=300_000).property in ("primary_integrity", "prefix_consistency")


@pytest.mark.parametrize(
    ("twin", "quorum", "integrity", "consistency"),
    [
        ("hasty", True, 25, 32),
        ("hasty", False, 30, 38),
        ("eager", True, 25, 32),
        ("promise", True, 29, 36),
    ],
)
def test_the_shortest_counterexamples(twin: str, quorum: bool, integrity: int, consistency: int) -> None:
    """Those of the first are also the oracle's, which takes a minute."""
    system = zab(**TWINS[twin], faulty=twin, quorum=quorum)  # type: ignore[arg-type]
    verdict = check(system, keep_going=True)
    lengths = {p.name: len(p.trace) for p in verdict.properties if p.trace is not None and p.status == "violated"}
    assert lengths == {"primary_integrity": integrity, "prefix_consistency": consistency}


@TWIN
def test_reductions_find_the_twins(twin: str) -> None:
    verdict = check(zab(**TWINS[twin], faulty=twin), reduce="auto")  # type: ignore[arg-type]
    assert verdict.property == "primary_integrity"


@pytest.mark.parametrize("twin", ["eager", "promise"])
def test_it_takes_more_to_notice(twin: str) -> None:
    """As the module says: two restless followers, or two changes."""
    assert check(zab(faulty=twin)).status == "holds"  # type: ignore[arg-type]


# -- size -------------------------------------------------------------------------------------------------------------


@QUORUM
@pytest.mark.parametrize(
    ("parameters", "violated"),
    [
        ({"leaders": 1}, set()),
        ({"leaders": 3, "restless": 0, "proposals": 0}, {"establishment"}),
        ({"followers": 2, "restless": 1}, {"establishment"}),
    ],
    ids=str,
)
def test_the_oracle_agrees(parameters: dict[str, Any], violated: set[str], quorum: bool) -> None:
    system = zab(**parameters, specification="live", quorum=quorum)
    truth = explore(system)
    assert truth.violated == violated
    verdict = check(system, keep_going=True)
    found = verdict.statistics
    assert (found.states, found.transitions, found.terminal_states) == (truth.states, truth.transitions, truth.terminal)
    check_traces(system, verdict, truth, shortest=True)


@pytest.mark.parametrize(
    ("parameters", "states", "transitions"),
    [
        ({"leaders": 1}, 851, 1_824),
        ({"leaders": 1, "quorum": False}, 1_172, 2_670),
        ({"leaders": 2, "restless": 0}, 1_863, 4_044),
        ({"leaders": 3, "restless": 0}, 3_043, 6_678),
        ({"leaders": 4, "restless": 0}, 4_397, 9_744),
        ({}, 7_853, 18_158),
        ({"quorum": False}, 18_919, 51_174),
    ],
    ids=str,
)
def test_size(parameters: dict[str, Any], states: int, transitions: int) -> None:
    """The first two are counted by the oracle, too."""
    found = check(zab(**parameters)).statistics
    assert (found.states, found.transitions) == (states, transitions)


def test_what_is_to_be_reachable() -> None:
    """Nobody succeeds a leader unless enough followers change to make up another quorum."""

    def names(**parameters: Any) -> set[str]:
        return {p.name for p in zab(**parameters).properties if p.kind == "reachable"}

    assert names() == {"delivery", "succession"}
    assert names(restless=0) == names(leaders=1) == names(followers=4) == {"delivery"}
    assert names(followers=4, restless=2) == {"delivery", "succession"}
    assert names(proposals=0) == set()


def test_symmetric_roles() -> None:
    assert zab().symmetric == [AnyLeader, Follower]
    assert zab(leaders=1, followers=1).symmetric == []
    assert zab(faulty="hasty").symmetric == [AnyLeader], "it takes the history of the first follower"


@pytest.mark.parametrize(
    "wrong",
    [
        {"leaders": 0},
        {"followers": 0},
        {"proposals": -1},
        {"restless": -1},
        {"changes": 0},
        {"specification": "fair"},
        {"faulty": "slow"},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        zab(**wrong)
