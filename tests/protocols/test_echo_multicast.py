"""Echo multicast: agreement within the threshold and not beyond it, how large it is, and that its twins are caught."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, Verdict, check
from plait.protocols.echo_multicast import (
    AnyByzantineInitiator,
    AnyInitiator,
    ByzantineReceiver,
    Receiver,
    echo_multicast,
)
from tests.oracle.explorer import explore
from tests.support.agreement import check_traces

pytestmark = pytest.mark.slow

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])
ATTACK = pytest.mark.parametrize("attack", ["groups", "both"])

TWINS: dict[str, dict[str, Any]] = {
    "wrong agreement": {"honest_receivers": 2, "byzantine_receivers": 2},
    "gullible": {"faulty": "gullible", "honest_initiators": 0},
    "signer": {"faulty": "signer", "attack": "both", "honest_initiators": 0},
}
"""What breaks agreement; the first is (2,1,2,1) of MP-Basset."""
TWIN = pytest.mark.parametrize("twin", TWINS)


def delivered(verdict: Verdict) -> list[str]:
    """What the receivers have delivered of the Byzantine initiator in the last state of the counterexample, sorted."""
    assert verdict.trace is not None
    fields = verdict.trace.events[-1].state.fields
    pairs = [pair for lane in fields.values() if "delivered" in lane for pair in lane["delivered"]["#map"]]
    return sorted(value for (initiator, _), value in [(key["#tup"], value) for key, value in pairs] if liar(initiator))


def liar(pid: dict[str, str]) -> bool:
    return "Byzantine" in pid["#pid"]


@QUORUM
@ATTACK
@pytest.mark.parametrize(
    "setting", [(3, 0, 1, 1), (2, 1, 0, 1), (3, 1, 1, 1), (4, 0, 1, 1), (1, 0, 0, 1), (2, 2, 0, 0)]
)
def test_agreement_within_the_threshold(setting: tuple[int, int, int, int], attack: str, quorum: bool) -> None:
    """The first two are those of MP-Basset, Table I."""
    verdict = check(echo_multicast(*setting, attack=attack, quorum=quorum), reduce="auto")  # type: ignore[arg-type]
    assert verdict.status == "holds"
    assert verdict.bound is None


@QUORUM
def test_several_messages(quorum: bool) -> None:
    """A message with another number is another message: a receiver that signed the first signs the second, too."""
    for setting in ((2, 0, 0, 1), (3, 1, 1, 0)):
        assert check(echo_multicast(*setting, messages=2, quorum=quorum)).status == "holds"


@QUORUM
@TWIN
def test_the_twins_are_violated(twin: str, quorum: bool) -> None:
    for options in ({}, {"reduce": "auto"}, {"search": "random"}, {"search": "dfs"}):
        verdict = check(echo_multicast(**TWINS[twin], quorum=quorum), **options)  # type: ignore[arg-type]
        assert verdict.property == "agreement"
        assert {"a", "b"} == set(delivered(verdict))


@pytest.mark.parametrize(
    ("twin", "quorum", "length"),
    [
        # It lies; two accomplices sign both messages and an honest receiver each; two proofs; two deliveries.
        ("wrong agreement", True, 1 + 3 + 3 + 2 + 2),
        ("wrong agreement", False, 1 + 3 + 3 + 6 + 2),
        # It lies, and two receivers believe it.
        ("gullible", True, 1 + 2),
        ("gullible", False, 1 + 2),
        # As above, with one accomplice, and one that should not be one.
        ("signer", True, 1 + 3 + 3 + 2 + 2),
        ("signer", False, 1 + 3 + 3 + 6 + 2),
    ],
)
def test_the_shortest_counterexample(twin: str, quorum: bool, length: int) -> None:
    verdict = check(echo_multicast(**TWINS[twin], quorum=quorum))
    assert verdict.trace is not None
    assert len(verdict.trace) == length
    assert delivered(verdict) == ["a", "b"]


@QUORUM
@pytest.mark.parametrize(
    ("setting", "options", "violated"),
    [
        ((3, 0, 1, 1), {}, set()),
        ((2, 1, 0, 1), {}, set()),
        ((2, 1, 0, 1), {"attack": "both"}, set()),
        ((2, 0, 2, 1), {"attack": "both"}, {"agreement"}),
        ((2, 1, 0, 1), {"faulty": "gullible"}, {"agreement"}),
        ((3, 0, 1, 1), {"attack": "both", "faulty": "signer"}, {"agreement"}),
    ],
)
def test_the_oracle_agrees(
    setting: tuple[int, int, int, int], options: dict[str, Any], violated: set[str], quorum: bool
) -> None:
    system = echo_multicast(*setting, quorum=quorum, **options)
    truth = explore(system)
    assert truth.violated == violated
    verdict = check(system, keep_going=True)
    found = verdict.statistics
    assert (found.states, found.transitions, found.terminal_states) == (truth.states, truth.transitions, truth.terminal)
    check_traces(system, verdict, truth, shortest=True)


@pytest.mark.parametrize(
    ("setting", "quorum", "states", "transitions"),
    [
        ((3, 0, 1, 1), True, 705, 1_824),
        ((3, 0, 1, 1), False, 2_653, 8_580),
        ((2, 1, 0, 1), True, 225, 520),
        ((2, 1, 0, 1), False, 559, 1_511),
        ((3, 1, 1, 1), True, 23_265, 107_427),
        ((3, 1, 1, 1), False, 183_057, 1_035_071),
    ],
)
def test_size(setting: tuple[int, int, int, int], quorum: bool, states: int, transitions: int) -> None:
    """All but the last two are counted by the oracle, too."""
    found = check(echo_multicast(*setting, quorum=quorum)).statistics
    assert (found.states, found.transitions) == (states, transitions)


def test_independent_initiators_multiply() -> None:
    """(3,1,1,1) is (3,0,1,1) beside (3,1,1,0): what one initiator does is nothing to the other."""
    both, byzantine, honest = (
        check(echo_multicast(*setting)).statistics.states for setting in ((3, 1, 1, 1), (3, 0, 1, 1), (3, 1, 1, 0))
    )
    assert both == byzantine * honest


@pytest.mark.parametrize(
    ("receivers", "quorum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (6, 4), (7, 5), (10, 7), (13, 9)]
)
def test_a_quorum_is_more_than_half_of_n_plus_f(receivers: int, quorum: int) -> None:
    first = echo_multicast(receivers, 0, 0, 1).processes[1]
    assert isinstance(first, Receiver)
    assert first.quorum == quorum


def test_what_is_promised() -> None:
    """Beyond the threshold, nothing is promised to honest initiators; without any of them, there is nothing to promise."""

    def names(*setting: int) -> list[str]:
        return [p.name for p in echo_multicast(*setting).properties]

    assert names() == ["agreement", "integrity", "honest_messages_arrive", "delivery"]
    assert names(2, 1, 2, 1) == ["agreement", "integrity", "delivery"]
    assert names(3, 0, 1, 1) == ["agreement", "integrity", "delivery"]
    assert names(2, 1, 2, 0) == ["agreement", "integrity"]


def test_symmetric_roles() -> None:
    assert echo_multicast().symmetric == [Receiver]
    assert echo_multicast(2, 2, 2, 2).symmetric == [AnyInitiator, AnyByzantineInitiator, Receiver, ByzantineReceiver]
    assert echo_multicast(1, 1, 0, 1).symmetric == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"honest_receivers": 0},
        {"honest_initiators": -1},
        {"byzantine_receivers": -1},
        {"byzantine_initiators": True},
        {"messages": 0},
        {"attack": "all"},
        {"faulty": "all"},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        echo_multicast(**wrong)
