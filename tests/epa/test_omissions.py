"""Errors of omission: a write that the fault prevented is a node of the propagation graph, with an edge to its readers."""

from __future__ import annotations

import pytest

from plait.epa.comparison import Comparison, compare, path_to_output
from plait.epa.faults import Fault
from plait.epa.recording import Recording
from tests.epa.conftest import Record
from tests.epa.listings import HEAD

SKIPPED = """
static int flag, result, other[4];
int main(int count, char **given) {
    (void)given;
    result = 1;
    flag = count + 1;
    if (flag > 1)
        result = 40;
    other[count] = 5;
    printf("%d %d\\n", result, other[1]);
    return 0;
}
"""
KILLED = """
static int parts[2];
static int value(void) { return 20; }
static void *work(void *given) {
    int mine = value();
    parts[(long)given] = mine;
    return NULL;
}
int main(void) {
    pthread_t ids[2];
    for (long i = 0; i < 2; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    printf("%d %d\\n", parts[0], parts[1]);
    return 0;
}
"""
ABSENT = """
static int part;
static void *work(void *given) {
    part = 20;
    return given;
}
int main(int count, char **given) {
    (void)given;
    pthread_t id;
    if (count == 1) {
        pthread_create(&id, NULL, work, NULL);
        pthread_join(id, NULL);
    }
    printf("%d\\n", part);
    return 0;
}
"""


def site(recording: Recording, op: str, text: str, source: str) -> int:
    """The last site of an operation in the line with this text."""
    line = next(i for i, row in enumerate((HEAD + source).splitlines(), 1) if text in row)
    table = recording.table
    return max(i for i in range(1, len(table.sites) + 1) if table.site(i).op == op and table.site(i).line == line)


def edges(found: Comparison) -> set[tuple[str, str, str, str | None]]:
    def name(i: int) -> str:
        spot = found.spots[i]
        return f"{spot.thread} {spot.what} {spot.place.rsplit(':', 1)[-1]}"

    return {(name(link.source), name(link.target), link.via, link.object) for link in found.links}


@pytest.mark.slow
def test_a_store_that_the_fault_skipped(record: Record) -> None:
    """The branch is not taken, so 40 is never stored. The load that prints 1 lacks it: no later store is blamed."""
    golden = record(HEAD + SKIPPED)
    assert golden.output == b"40 5\n"
    compared = site(golden, "icmp", "if (flag > 1)", SKIPPED)
    faulty = record(HEAD + SKIPPED, fault=Fault("bitflip", compared, "T_0", 0, 1))
    assert faulty.output == b"1 5\n"
    found = compare(golden, faulty)
    spots = {(s.what, s.place.rsplit(":", 1)[-1]): s for s in found.spots}
    missing = spots["store", "15"]
    assert (missing.events, missing.missing, missing.times) == (0, 1, "1x missing")
    assert ("T_0 icmp 14", "T_0 store 15", "control", None) in edges(found)
    assert ("T_0 store 15", "T_0 load 17", "memory", "result") in edges(found)
    path = [found.spots[i].what for i in path_to_output(found)]
    assert path == ["icmp", "store", "load", "argument 1 of printf"]
    assert ("store", "12") not in spots


@pytest.mark.slow
def test_a_store_that_went_elsewhere(record: Record) -> None:
    """5 is stored to other[3] instead of other[1]. The load of other[1] lacks it."""
    golden = record(HEAD + SKIPPED)
    index = site(golden, "sext", "other[count] = 5", SKIPPED)
    faulty = record(HEAD + SKIPPED, fault=Fault("bitflip", index, "T_0", 0, 2))
    assert faulty.output == b"40 0\n"
    found = compare(golden, faulty)
    assert ("T_0 store 16", "T_0 load 17", "memory", "other") in edges(found)
    assert not any(s.missing for s in found.spots)


@pytest.mark.slow
def test_the_rest_of_a_killed_thread(record: Record) -> None:
    """T_0_1 ends at a call. Its store is missing, and main lacks the value."""
    golden = record(HEAD + KILLED)
    call = site(golden, "call", "int mine = value()", KILLED)
    faulty = record(HEAD + KILLED, fault=Fault("killthread", call, "T_0_1", 0, 0))
    assert (golden.output, faulty.output) == (b"20 20\n", b"20 0\n")
    found = compare(golden, faulty)
    assert [s.place.rsplit(":", 1)[-1] for s in found.spots if s.missing and s.thread == "T_0_1"][-1] == "13"
    assert ("T_0_1 store 13", "T_0 load 20", "memory", "parts") in edges(found)


@pytest.mark.slow
def test_a_thread_that_was_not_created(record: Record) -> None:
    """Its stores are missing. Only the golden run has the thread."""
    golden = record(HEAD + ABSENT)
    compared = site(golden, "icmp", "if (count == 1)", ABSENT)
    faulty = record(HEAD + ABSENT, fault=Fault("bitflip", compared, "T_0", 0, 1))
    assert (golden.output, faulty.output) == (b"20\n", b"0\n")
    found = compare(golden, faulty)
    assert ("T_0_0 store 11", "T_0 load 21", "memory", "part") in edges(found)
    assert ("T_0 icmp 17", "T_0_0 store 11", "control", None) in edges(found)
    assert found.verdict.trace is not None
    assert "T_0_0" in [lane.name for lane in found.verdict.trace.lanes]
