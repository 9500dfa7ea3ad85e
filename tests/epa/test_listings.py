"""Listings 4 to 7 of Saissi 2019: the program, its traces, the sanitized trace, the objects and the thread map."""

from __future__ import annotations

import pytest

from plait.epa.output.text import event_lines
from plait.epa.reversibility import check
from tests.epa.conftest import Record
from tests.epa.listings import lines


@pytest.mark.slow
def test_the_sanitized_trace(record: Record) -> None:
    """The events of Listing 6b, in each thread's order. (The dissertation's trace leaves out what our clang adds.)"""
    recording = record("listing4.c")
    assert recording.output == b"Result: 9\n"
    main = lines(recording, "T_0")
    expected = [
        "enter main", "alloca T_0:id1#0 8", "alloca T_0:id2#0 8", "store 3 arr", "store 6 arr+4", "call pthread_create",
        "argument 0: T_0:id1#0", "argument 2: inc", "call pthread_create", "argument 0: T_0:id2#0", "argument 2: dec",
        "load T_0_0 T_0:id1#0", "call pthread_join", "argument 0: T_0_0", "load T_0_1 T_0:id2#0", "call pthread_join",
        "argument 0: T_0_1", "load 4 arr", "load 5 arr+4", "add 9", "call printf", "return 0",
    ]  # fmt: skip
    assert [line for line in main if line in expected] == expected
    assert lines(recording, "T_0_0")[:6] == [
        "enter inc", "alloca T_0_0:arg#0 8", "store 0 T_0_0:arg#0", "load 3 arr", "add 4", "store 4 arr",
    ]  # fmt: skip
    assert lines(recording, "T_0_1")[3:6] == ["load 6 arr+4", "add 5", "store 5 arr+4"]


@pytest.mark.slow
def test_objects_and_threads(record: Record) -> None:
    """Listing 7: kind, thread, size and validity of each object; T_0, T_0_0 and T_0_1."""
    recording = record("listing4.c")
    assert [t.name for t in recording.threads] == ["T_0", "T_0_0", "T_0_1"]
    assert [t.parent for t in recording.threads] == [None, 0, 0]
    objects = {o.name: o for o in recording.objects()}
    arr = objects["arr"]
    assert (arr.kind, arr.size, arr.thread, arr.valid) == ("global", 8, None, (0, recording.native.records))
    for name, thread in (
        ("T_0:id1#0", "T_0"),
        ("T_0:id2#0", "T_0"),
        ("T_0_0:arg#0", "T_0_0"),
        ("T_0_1:arg#0", "T_0_1"),
    ):
        made = objects[name]
        assert (made.kind, made.size, made.thread) == ("stack", 8, thread)
        assert 0 < made.valid[0] < made.valid[1] < recording.native.records, "valid until its scope is left"
    assert objects["T_0:id1#0"].local < objects["T_0:id2#0"].local
    assert objects["argv"].kind == "global"


@pytest.mark.slow
def test_operands_are_shown(record: Record) -> None:
    recording = record("listing4.c")
    shown = [line.split("  (")[0].split(" ", 1)[1] for line in event_lines(recording, None, None)]
    assert "T_0_0 add 4 <- 3, 1" in shown
    assert "T_0_1 add 5 <- 6, -1" in shown
    assert "T_0 add 9 <- 4, 5" in shown


@pytest.mark.slow
def test_two_runs_are_equal_though_nothing_in_them_is(record: Record) -> None:
    one, two = record("listing4.c"), record("listing4.c", yields=1)
    addresses = [{o.base for o in r.objects() if o.kind == "stack"} for r in (one, two)]
    assert not addresses[0] & addresses[1]
    assert one.native.outcome(two.native) == (True, False)
    assert one.native.digest() == two.native.digest()


def test_it_is_pseudo_deterministic(record: Record) -> None:
    found = check(record("listing4.c"))
    assert found.verdict.status == "holds"
    assert found.shared_objects == 1, "arr"
    assert found.dependencies > 0
