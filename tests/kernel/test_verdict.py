"""The verdict: its truth, its exit code and its JSON say the same."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from plait.kernel.trace import Snapshot, Trace
from plait.kernel.verdict import EXIT_CODES, PropertyResult, Statistics, Status, Verdict


def statistics(seconds: float = 2.0) -> Statistics:
    return Statistics(
        states=10, transitions=20, terminal_states=1, depth=3, seconds=seconds, python_calls=5, search="bfs", workers=1
    )


@pytest.mark.parametrize("status", get_args(Status))
def test_only_what_holds_is_true(status: Status) -> None:
    verdict = Verdict(status, statistics(), [])
    assert bool(verdict) == (status == "holds")
    assert (verdict.exit_code == 0) == bool(verdict)
    assert verdict.to_json()["verdict"] == status


def test_exit_codes_are_those_of_the_command_line() -> None:
    """2 and 4 stand for errors: no verdict has them."""
    assert EXIT_CODES == {"holds": 0, "violated": 1, "inconclusive": 3}
    assert set(EXIT_CODES) == set(get_args(Status))


def test_states_per_second() -> None:
    assert statistics(2.0).states_per_second == 5.0
    assert statistics(0.0).states_per_second == 0.0, "too short to be measured"


def test_who_answered() -> None:
    assert (statistics().native_share, statistics().bytes_per_local_state) == (0.0, 0.0), "nothing ran natively"
    found = msgspec.structs.replace(statistics(), native_answers=15, native_compared=2, local_states=4, local_bytes=100)
    assert (found.questions, found.native_share, found.bytes_per_local_state) == (18, 15 / 18, 25.0)
    written = Verdict("holds", found, []).to_json()
    assert (written["native_answers"], written["native_compared"], written["python_calls"]) == (15, 2, 5)
    assert written["native_share"] == 15 / 18
    assert (written["local_states"], written["bytes_per_local_state"]) == (4, 25.0)
    nothing = Verdict.unfinished("m", "timeout", "", search="bfs", seconds=0.0, properties=[])
    assert nothing.statistics.native_share == 0.0, "no question was asked"


def test_the_json_is_json_and_has_the_trace_of_each_property() -> None:
    """Also one without events: the initial state alone violates the property."""
    traces = [Trace(name, {}, name, [], [], Snapshot({}), []) for name in "pq"]
    results = [PropertyResult(t.target, "always", "violated", None, t) for t in traces]
    results.append(PropertyResult("r", "always", "holds"))
    verdict = Verdict("violated", statistics(), results, property="p", trace=traces[0])
    found = msgspec.json.decode(msgspec.json.encode(verdict.to_json()))
    assert [msgspec.convert(p["trace"], Trace | None) for p in found["properties"]] == [*traces, None]
    assert msgspec.convert(found["trace"], Trace) == traces[0]
    assert [p["status"] for p in found["properties"]] == ["violated", "violated", "holds"]


def test_a_verdict_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Verdict("inconclusive", statistics(), []).status = "holds"  # type: ignore[misc]
