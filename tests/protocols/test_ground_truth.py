"""The zoo against what other checkers publish: distinct states, and transitions where they count them the same way.

Sources: Stateright 0.31.0 (its `state_count` is 1 + transitions), TLC on tlaplus/Examples (its total is the number of
initial states + transitions), Spin on src/plait/bench/peers/models/paxos.pml. Every reduction is off.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from plait import ModelError, System
from plait.check.api import check
from plait.kernel.verdict import Statistics
from plait.protocols.abd import abd
from plait.protocols.chang_roberts import chang_roberts
from plait.protocols.mcpaxos import mcpaxos
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from plait.protocols.register_paxos import register_paxos
from plait.protocols.single_copy import single_copy
from plait.protocols.two_phase_commit import two_phase_commit

Count = Callable[[System], Statistics]


@pytest.fixture
def count() -> Count:
    """The statistics of a complete search of a system that holds."""

    def search(system: System) -> Statistics:
        verdict = check(system, workers=1)
        assert verdict.status == "holds", str(verdict)
        assert verdict.bound is None
        return verdict.statistics

    return search


def violated(system: System) -> str | None:
    return check(system, workers=1).property


@pytest.mark.parametrize(
    ("system", "states", "transitions"),
    [
        pytest.param(ping_pong(network="duplicating", lossy=True), 4_094, 21_504, id="ping-pong duplicating lossy"),
        pytest.param(ping_pong(maximum=1, network="duplicating", lossy=True), 14, 20, id="ping-pong up to 1"),
        pytest.param(ping_pong(network="duplicating"), 11, 10, id="ping-pong duplicating"),
        pytest.param(ping_pong(), 11, 10, id="ping-pong unordered"),
        pytest.param(two_phase_commit(resource_managers=3), 288, 1_145, id="2pc 3"),
        pytest.param(two_phase_commit(resource_managers=5), 8_832, 58_145, id="2pc 5"),
        pytest.param(single_copy(), 93, 120, id="single copy"),
        pytest.param(abd(clients=2, servers=2), 544, 874, id="ABD 2 clients 2 servers"),
        pytest.param(abd(clients=1, servers=3), 1_449, 3_727, id="ABD 1 client 3 servers"),
        pytest.param(abd(clients=1, servers=2), 13, 12, id="ABD 1 client 2 servers"),
        pytest.param(register_paxos(clients=2, servers=3), 16_668, 32_970, id="Paxos 2 clients 3 servers"),
        pytest.param(register_paxos(clients=1, servers=3), 265, 481, id="Paxos 1 client 3 servers"),
        pytest.param(register_paxos(clients=2, servers=2), 111, 136, id="Paxos 2 clients 2 servers"),
        pytest.param(register_paxos(clients=1, servers=2), 11, 11, id="Paxos 1 client 2 servers"),
    ],
)
def test_stateright(count: Count, system: System, states: int, transitions: int) -> None:
    found = count(system)
    assert (found.states, found.transitions) == (states, transitions)


@pytest.mark.parametrize(
    ("proposers", "acceptors", "learners", "states", "transitions"),
    [(1, 3, 1, 177, 382), (2, 2, 1, 324, 732), (2, 2, 2, 1_156, 3_804), (2, 3, 1, 31_329, 101_361)],
)
def test_spin(count: Count, proposers: int, acceptors: int, learners: int, states: int, transitions: int) -> None:
    found = count(paxos(proposers, acceptors, learners, quorum=False))
    assert (found.states, found.transitions) == (states, transitions)


@pytest.mark.slow
def test_spin_many_states(count: Count) -> None:
    found = count(paxos(proposers=2, acceptors=3, learners=2, quorum=False))
    assert (found.states, found.transitions) == (463_761, 2_338_833)


def test_tlc_paxos(count: Count) -> None:
    """MCPaxosTiny: 3,921 distinct of 23,563 states, depth 17.

    TLC takes 96 of its 23,562 transitions twice: two acceptors of a quorum report the same vote, and each is a witness
    for the same 2a message. For Plait they are one transition.
    """
    found = count(mcpaxos(acceptors=3, values=2, ballots=2))
    assert (found.states, found.transitions, found.depth) == (3_921, 23_562 - 96, 17 - 1)


def test_tlc_chang_roberts(count: Count) -> None:
    """MCChangRoberts: 137 distinct of 227 states, of which 8 are initial: one for each set of initiators.

    A System has one initial state, so there is a System for each set; who initiates never changes, so they have no
    state in common.
    """
    subsets = [s for n in range(4) for s in itertools.combinations("123", n)]
    found = [count(chang_roberts(nodes=3, initiators=",".join(subset))) for subset in subsets]
    assert len(found) == 8
    assert sum(f.states for f in found) == 137
    assert sum(f.transitions for f in found) == 227 - 8
    assert max(f.depth for f in found) == 10 - 1


def test_chang_roberts_decides_about_initiators_itself(count: Count) -> None:
    """Each node that has not begun stands for two of the specification's states."""
    assert count(chang_roberts(nodes=3, initiators="any")).states < 137


def test_quorum_paxos(count: Count) -> None:
    """Counted twice, by the oracle and by a C++ program written for it; compare 31,329 with single messages."""
    found = count(paxos(proposers=2, acceptors=3, learners=1))
    assert (found.states, found.transitions) == (8_649, 20_049)


@pytest.mark.slow
def test_quorum_variants_are_smaller(count: Count) -> None:
    """Taking replies at once leaves out the states in between. ABD needs one reply of two servers or three."""
    assert count(two_phase_commit(quorum=True)).states < count(two_phase_commit()).states
    for clients, servers in ((2, 2), (1, 3)):
        assert count(abd(clients, servers, quorum=True)).states == count(abd(clients, servers)).states
    assert count(abd(clients=1, servers=4, quorum=True)).states < count(abd(clients=1, servers=4)).states


@pytest.mark.parametrize(
    ("system", "name"),
    [
        pytest.param(paxos(faulty="acceptor"), "agreement", id="paxos acceptor"),
        pytest.param(paxos(faulty="learner"), "agreement", id="paxos learner"),
        pytest.param(paxos(faulty="acceptor", quorum=False), "agreement", id="paxos acceptor, single messages"),
        pytest.param(paxos(faulty="learner", quorum=False), "agreement", id="paxos learner, single messages"),
        pytest.param(two_phase_commit(faulty="hasty"), "consistency", id="2pc hasty"),
        pytest.param(single_copy(servers=2), "linearizable", id="two copies"),
        pytest.param(abd(clients=1, servers=3, faulty="hasty"), "linearizable", id="ABD hasty"),
        pytest.param(register_paxos(faulty="stubborn"), "linearizable", id="register paxos stubborn"),
        pytest.param(ping_pong(network="duplicating", faulty="ponger"), "in_step", id="ping-pong ponger"),
        pytest.param(mcpaxos(faulty="leader"), "consistency", id="mcpaxos leader"),
        pytest.param(chang_roberts(faulty="greedy"), "correctness", id="chang-roberts greedy"),
    ],
)
def test_faulty_twins_are_violated(system: System, name: str) -> None:
    assert violated(system) == name


@pytest.mark.slow
def test_forgetful_acceptor_needs_three_proposers() -> None:
    """Paper 000, Table I, note **."""
    assert violated(paxos(proposers=2, faulty="memory")) is None
    assert violated(paxos(proposers=3, faulty="memory")) == "agreement"


def test_faults_that_smaller_systems_hide(count: Count) -> None:
    count(abd(clients=2, servers=2, faulty="hasty"))
    count(ping_pong(faulty="ponger"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: paxos(proposers=0), "proposers=0"),
        (lambda: paxos(faulty="proposer"), "faulty='proposer'"),  # type: ignore[arg-type]
        (lambda: ping_pong(network="fifo"), "network='fifo'"),  # type: ignore[arg-type]
        (lambda: chang_roberts(initiators="4"), "'4' is not a node"),
        (lambda: abd(servers=1), "servers=1"),
    ],
)
def test_wrong_parameters_are_refused(make: Callable[[], System], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()
