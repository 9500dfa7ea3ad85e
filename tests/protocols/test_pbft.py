"""PBFT: one traitor among four can do no harm, two can; nor may quorums be smaller."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, Process, check
from plait.kernel.trace import Trace
from plait.protocols.pbft import CountingBackup, QuorumBackup, Traitors, pbft
from tests.protocols.agreeing import assert_holds, assert_oracle, assert_violated, last

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("byzantine", "requests", "quorum", "states"),
    [
        ("primary", 2, True, 7_157),
        ("primary", 2, False, 199_787),
        ("backup", 2, True, 7_091),
        ("backup", 2, False, 200_733),
        ("none", 1, True, 51_606),
        ("none", 2, True, 1 + 2 * (51_606 - 1)),
    ],
)
def test_one_traitor_is_harmless(byzantine: Traitors, requests: int, quorum: bool, states: int) -> None:
    """After an honest primary's choice between two requests, all goes on as if there were no other."""
    assert_holds(pbft(byzantine=byzantine, requests=requests, quorum=quorum), states)


def executed(trace: Trace) -> set[str]:
    """The requests that honest replicas executed with the number 1."""
    return {request for replica in last(trace, "executed") for _, request in replica["#map"]}


@pytest.mark.slow
@pytest.mark.parametrize(("quorum", "shortest"), [(True, 7), (False, 9)], ids=["quorum", "one by one"])
def test_small_quorums(quorum: bool, shortest: int) -> None:
    """Two backups each heed nobody but themselves and the primary, which tells them different things."""
    trace = assert_violated(pbft(quorum=quorum, faulty="small"), {"agreement": shortest})["agreement"]
    assert executed(trace) == {"a", "b"}
    assert len({event.lane for event in trace.events if event.lane != "ByzantinePrimary0"}) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("quorum", "shortest"), [(True, 8), (False, 14)], ids=["quorum", "one by one"])
def test_two_traitors_are_too_many(quorum: bool, shortest: int) -> None:
    trace = assert_violated(pbft(byzantine="both", quorum=quorum), {"agreement": shortest})["agreement"]
    assert executed(trace) == {"a", "b"}


@pytest.mark.slow
@QUORUM
def test_small_quorums_are_no_problem_with_an_honest_primary(quorum: bool) -> None:
    """Nobody else can make a backup accept anything."""
    assert check(pbft(byzantine="backup", quorum=quorum, faulty="small")).status == "holds"


@pytest.mark.slow
@QUORUM
def test_the_oracle_agrees(quorum: bool) -> None:
    """With two traitors, so that there are few states; they find nothing to disagree on if there is one request."""
    assert_oracle(pbft(byzantine="both", requests=1, quorum=quorum), 268 if quorum else 2_463)


@pytest.mark.slow
def test_the_oracle_agrees_on_counterexamples() -> None:
    assert_oracle(pbft(byzantine="both"), 1_159, {"agreement": 8})
    assert_oracle(pbft(byzantine="both", faulty="small"), 3_111, {"agreement": 7})


@pytest.mark.parametrize(("quorum", "backup"), [(True, QuorumBackup), (False, CountingBackup)])
def test_symmetric_roles(quorum: bool, backup: type[Process]) -> None:
    for byzantine in ("none", "primary", "backup", "both"):
        assert pbft(byzantine=byzantine, quorum=quorum).symmetric == [backup]  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"f": 0}, {"numbers": 0}, {"requests": 0}, {"byzantine": "all"}, {"faulty": "x"}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        pbft(**wrong)
