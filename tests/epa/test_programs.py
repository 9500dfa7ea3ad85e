"""The five programs of Saissi 2019 and a C++ one: no false positives. Their twins: rejected, with the right witness."""

from __future__ import annotations

import pytest

from plait.epa.recording import Recording
from plait.epa.reversibility import check
from tests.epa.conftest import Record

PROGRAMS = {
    "quicksort.c": ("4", "60"),
    "kmeans.c": ("3", "12"),
    "pca.c": ("3", "5", "4"),
    "blackscholes.c": ("3", "9"),
    "swaptions.c": ("3", "3", "2"),
    "words.cpp": ("3",),
}
RUNS = 20


def raw(recording: Recording) -> list[bytes]:
    return [p.read_bytes() for p in sorted(recording.folder.glob("thread-*.bin"))]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_false_positives(program: str, record: Record) -> None:
    """Repeated runs under random yields: all raw traces differ, all sanitized ones are equal."""
    golden = record(program, *PROGRAMS[program])
    assert check(golden).verdict.status == "holds"
    seen = {b"".join(raw(golden))}
    for seed in range(1, RUNS + 1):
        again = record(program, *PROGRAMS[program], yields=seed)
        assert golden.native.outcome(again.native) == (True, False)
        assert golden.native.digest() == again.native.digest()
        seen.add(b"".join(raw(again)))
    assert len(seen) == RUNS + 1


@pytest.mark.slow
def test_a_racy_counter_is_rejected(record: Record) -> None:
    found = check(record("racy_counter.c"))
    assert (found.verdict.status, found.verdict.property) == ("violated", "reversibility")
    witness = found.witnesses[0]
    assert witness.object == "counter"
    assert witness.first_place.endswith("racy_counter.c:9")
    assert witness.second_place.endswith("racy_counter.c:9")
    assert witness.locks == []
    trace = found.verdict.trace
    assert trace is not None
    assert {lane.name for lane in trace.lanes} == {"T_0", "T_0_0", "T_0_1"}


@pytest.mark.slow
def test_an_order_of_locks_is_rejected(record: Record) -> None:
    found = check(record("work_queue.c"))
    assert found.verdict.property == "reversibility"
    assert found.witnesses[0].object == "next"
    assert found.witnesses[0].locks == ["lock"]
    assert "allows both orders" in found.witnesses[0].advice


@pytest.mark.slow
def test_a_random_seed_is_rejected(record: Record) -> None:
    found = check(record("random_seed.c"))
    assert (found.verdict.status, found.verdict.property) == ("violated", "local determinism")
    assert {call.split()[0] for call in found.nondeterministic} == {"rand", "time", "getpid"}
    assert check(record("random_seed.c"), allow=["rand", "time", "getpid"]).verdict.status == "holds"
    assert "srand" in str(check(record("random_seed.c"), nondeterministic=["srand"]).nondeterministic)


@pytest.mark.slow
@pytest.mark.parametrize("twin", ["racy_counter.c", "work_queue.c"])
def test_benign_same_value_does_not_hide_them(twin: str, record: Record) -> None:
    assert check(record(twin), benign_same_value=True).verdict.status == "violated"
