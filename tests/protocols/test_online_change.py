"""Online change: one history and one state, whatever crashes, and whether the change is activated or aborted."""

from __future__ import annotations

from typing import Any

import pytest

from plait import PlaitError, check
from plait.protocols.online_change import online_change


@pytest.mark.parametrize("adds", [1, 2, 3, 4])
def test_a_cluster_that_does_not_change_is_a_pipeline_and_a_reader(adds: int) -> None:
    """A formula: k updates are in the log, c are committed. The server is idle, reads, or gets the log: 3 states. If c > k,
    an update may be on its way, or its answer. The new server is idle, asks, or gets one of the logs so far."""
    found = check(online_change(adds=adds, orders=0, changes=0, aborts=0, crashes=0), workers=1)
    assert found.status == "holds"
    pairs = [(k, c) for c in range(adds + 1) for k in range(c + 1)]
    expected = sum(3 * (k + 3) for k, _ in pairs) + sum((k + 3) + (k + 4) for k, c in pairs if c > k)
    assert found.statistics.states == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"before": 2, "after": 1, "crashes": 0},
        {"before": 2, "after": 1, "aborts": 0},
        {"before": 2, "after": 3, "aborts": 0, "crashes": 0},
        {"adds": 2, "crashes": 0},
    ],
    ids=str,
)
def test_every_change_keeps_one_history(parameters: dict[str, Any]) -> None:
    found = check(online_change(**parameters))
    assert (found.status, found.bound) == ("holds", None), str(found)


@pytest.mark.parametrize("wrong", [{"before": 2, "after": 2}, {"keys": 0}, {"faulty": "maybe"}], ids=str)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlaitError):
        online_change(**wrong)
