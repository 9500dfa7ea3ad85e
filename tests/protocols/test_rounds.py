"""The protocols of Sequentialization in their asynchronous form: what holds, what breaks, and how long each bug takes.

Which fault breaks which property first is in test_zoo; here are the facts that their documentation promises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plait import ModelError, System, check
from plait.protocols.ben_or import ben_or
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.distal_paxos import distal_paxos
from plait.protocols.one_third_rule import one_third_rule
from plait.protocols.raft_membership import raft_membership
from plait.protocols.uniform_voting import uniform_voting
from plait.protocols.view_change import view_change

ENOUGH = 50_000
"""Where a search of everything would take long, so many states are searched."""


def violated(system: System, **options: Any) -> set[str]:
    verdict = check(system, keep_going=True, **options)
    return {p.name for p in verdict.properties if p.status == "violated" and p.trace is not None}


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (distal_paxos, {"replicas": 2, "ballots": 3}),
        (ben_or, {"inputs": (0, 1), "f": 0, "phases": 3}),
        (ben_or, {"inputs": (1, 1, 1)}),
        (ben_or, {"inputs": (0, 0, 1), "f": 0}),
        (uniform_voting, {"inputs": (0, 1), "phases": 2}),
        (uniform_voting, {"inputs": (2, 0, 1), "least": 3, "phases": 2}),
        (one_third_rule, {"inputs": (0, 1), "phases": 3}),
        (view_change, {"leaders": "any"}),
        (view_change, {"replicas": 2, "views": 2, "leaders": "any"}),
        (raft_membership, {"servers": 3, "joiners": 1, "terms": 2}),
        (commit_rounds, {"participants": 2, "transactions": 3}),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_it_holds(model: Callable[..., System], parameters: dict[str, Any]) -> None:
    verdict = check(model(**parameters))
    assert verdict.status == "holds", str(verdict)
    assert verdict.bound is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [
        pytest.param(distal_paxos(ballots=4), id="distal_paxos"),
        pytest.param(distal_paxos(ballots=3, faulty="early"), id="distal_paxos, early: three ballots are too few"),
        pytest.param(ben_or(inputs=(0, 0, 1, 1, 1), f=2, phases=2), id="ben_or, n = 5"),
        pytest.param(ben_or(phases=2, faulty="estimate"), id="ben_or, estimate: two phases are too few"),
        pytest.param(
            uniform_voting(phases=2, faulty="estimate"), id="uniform_voting, estimate: two phases are too few"
        ),
        pytest.param(view_change(views=2, leaders="any"), id="view_change, leaders"),
        pytest.param(raft_membership(terms=3), id="raft_membership"),
        pytest.param(raft_membership(terms=2, faulty="early"), id="raft_membership, early: two terms are too few"),
    ],
)
def test_nothing_is_found(system: System) -> None:
    assert violated(system, max_states=ENOUGH) == set()
    assert violated(system, search="random", walks=1_000, seed=1) == set()


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [(0, 1, 1), (0, 0, 1)])
def test_ben_or_decides_a_bit_that_it_had_given_up(inputs: tuple[int, ...]) -> None:
    """All decide one bit in the first phase, and another in the third."""
    found = check(ben_or(inputs=inputs, phases=3, faulty="estimate"), search="random", seed=3)
    assert found.property == "agreement"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_states_of_one_third_rule(n: int) -> None:
    """In one phase, each of n processes hears any of n messages, and continues or not: 2 to the n (n + 1) states."""
    verdict = check(one_third_rule(inputs=(0, 1, 2)[:n], phases=1), properties=["agreement", "validity"])
    assert verdict.statistics.states == 2 ** (n * (n + 1))


def test_uniform_voting_needs_sets_that_intersect() -> None:
    assert violated(uniform_voting(inputs=(0, 1), least=1)) == {"agreement"}
    assert violated(uniform_voting(inputs=(0, 1), least=2)) == set()
    assert violated(uniform_voting(inputs=(0, 0), least=1)) == set()


def test_the_two_faults_of_the_view_change_together() -> None:
    """Who asks anybody does no harm; fewer than half lose an operation; both together make two primaries."""
    assert violated(view_change(leaders="any")) == set()
    assert violated(view_change(faulty="quorum")) == {"completeness"}
    assert violated(view_change(faulty="quorum", leaders="any")) == {"completeness", "one_primary"}


@pytest.mark.parametrize("participants", [2, 3, 4])
def test_the_size_of_a_commit(participants: int) -> None:
    """Before the decision each participant is asked, says yes, or says no; after it, each said one, and obeyed or not."""
    found = check(commit_rounds(participants, transactions=1)).statistics
    assert found.states == 3**participants + 4**participants


@pytest.mark.slow
def test_three_servers_change_safely_by_luck() -> None:
    """The disjoint majorities need an even number of servers: half of them and a joiner are enough, twice."""
    for servers, broken in ((3, False), (4, True)):
        found = check(
            raft_membership(servers=servers, terms=3, faulty="early"),
            search="random",
            walks=10_000,
            properties=["agreement"],
            seed=2,
        )
        assert (found.property == "agreement") == broken


@pytest.mark.parametrize(
    ("model", "parameters", "words"),
    [
        (distal_paxos, {"replicas": 1}, "replicas=1"),
        (distal_paxos, {"ballots": 0}, "ballots=0"),
        (distal_paxos, {"faulty": "late"}, "faulty='late'"),
        (ben_or, {"f": 2}, "expected bits of more than 2f = 4 processes"),
        (ben_or, {"inputs": (0, 2, 1)}, "expected bits"),
        (uniform_voting, {"least": 4}, "least=4"),
        (one_third_rule, {"inputs": ()}, "inputs="),
        (uniform_voting, {"least": 0}, "least=0"),
        (view_change, {"leaders": "none"}, "leaders='none'"),
        (raft_membership, {"terms": 4}, "for each of 4 terms"),
        (raft_membership, {"candidates": (7, 0, 0)}, "a server from 0 to 3"),
        (commit_rounds, {"participants": 1}, "participants=1"),
    ],
)
def test_wrong_parameters(model: Callable[..., System], parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        model(**parameters)
    assert caught.value.hint
