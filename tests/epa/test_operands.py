"""Faults of operands, skipped stores and stuck bits. The program prints the values that it uses: an oracle for its trace."""

from __future__ import annotations

import pytest

from plait.epa.faults import Where, parse, targets
from plait.epa.recording import LOAD, STORE, VALUE, Recording
from tests.epa.conftest import Record

PROGRAM = r"""#include <stdio.h>
int shared = 1;
short row[4];
int main(void) {
    int a = 3, b = 5, last = 0;
    for (int i = 0; i < 8; i++) {
        int sum = i + 10;
        printf("%d ", sum);
        row[i & 3] = (short)(sum * 2);
        last = sum;
    }
    int product = a * b;
    shared = 9;
    printf("%d %d %d %d %d %d %d %d\n", product, a, shared, last, row[0], row[1], row[2], row[3]);
    return 0;
}
"""
SUMS = [10, 11, 12, 13, 14, 15, 16, 17]
REST = [15, 3, 9, 17, 28, 30, 32, 34]


def _line(text: str) -> int:
    return next(i for i, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def _site(recording: Recording, op: str, text: str) -> int:
    """The last instruction of a kind in a line."""
    return max(i for i, s in enumerate(recording.table.sites, 1) if s.op == op and s.line == _line(text))


def _printed(recording: Recording) -> list[int]:
    return [int(word) for word in recording.output.split()]


def _values(recording: Recording, site: int, kind: int) -> list[int]:
    rows = recording.native.events(0, 0, recording.threads[0].events)
    words = [(row[3], row[4]) for row in rows if row[:2] == (site, kind)]
    return [(b if kind in (LOAD, STORE) else a)[1] for a, b in words]


@pytest.mark.slow
def test_a_stuck_bit_stays(record: Record) -> None:
    """The reader computes sums: it must know that all of them are changed."""
    golden = record(PROGRAM)
    assert _printed(golden) == SUMS + REST
    add = _site(golden, "add", "i + 10")
    for kind, bit, changed in (
        ("stuck1", 1, [13, 15, 15, 17, 17]),
        ("stuck0", 2, [13, 12, 13, 16, 17]),
    ):
        faulty = record(PROGRAM, fault=parse(f"{kind}:{add}:T_0:3:{bit}"))
        sums = SUMS[:3] + changed
        assert _printed(faulty)[:8] == _values(faulty, add, VALUE) == sums
        assert _printed(faulty)[12:] == [2 * v for v in sums[4:]]
        assert len(faulty.native.faults()) == 5, "executions 3 to 7"
    load = _site(golden, "load", 'printf("%d "')
    faulty = record(PROGRAM, fault=parse(f"stuck1:{load}:T_0:6:8"))
    assert _values(faulty, load, LOAD) == _printed(faulty)[:8] == [*SUMS[:6], 24, 25]


@pytest.mark.slow
def test_a_skipped_store_leaves_memory_as_it_is(record: Record) -> None:
    golden = record(PROGRAM)
    for text, nth, place, old in (
        ("shared = 9", 0, 2, 1),  # a global
        ("last = sum", 7, 3, 16),  # a variable whose loads the reader expects
        ("row[i & 3] =", 5, 5, 22),  # an element of two bytes
        ("int product =", 0, 0, 0),  # a new variable is zero
    ):
        store = _site(golden, "store", text)
        faulty = record(PROGRAM, fault=parse(f"skipped:{store}:T_0:{nth}:0"))
        expected = [*REST[:place], old, *REST[place + 1 :]]
        assert _printed(faulty)[8:] == expected, text
        assert _values(faulty, store, STORE)[nth] == old
        assert golden.native.outcome(faulty.native) == (False, True)
    found = targets(golden.table, golden.executions(), "skipped", where=Where.of(["opcode=store", "function=main"]))
    assert _site(golden, "store", "row[i & 3] =") in {t.site for t in found if t.times == 8}


@pytest.mark.slow
def test_an_operand_is_changed_for_one_instruction(record: Record) -> None:
    golden = record(PROGRAM)
    found = targets(
        golden.table, golden.executions(), "operand", where=Where.of(["opcode=mul", f"line={_line('a * b')}"])
    )
    assert [golden.table.site(t.site).op for t in found] == ["load", "load"]
    outputs = [_printed(record(PROGRAM, fault=parse(f"operand:{t.site}:T_0:0:2")))[8:] for t in found]
    assert outputs == [[(3 ^ 2) * 5, *REST[1:]], [3 * (5 ^ 2), *REST[1:]]], "a and b keep their values"
    store = _site(golden, "store", "last = sum")
    (place,) = targets(
        golden.table, golden.executions(), "operand", where=Where.of([f"line={_line('last = sum')}", "nth=7"])
    )[-1:]
    assert (place.site, place.first, place.times) == (store, 7, 1)
    faulty = record(PROGRAM, fault=parse(f"operand:{store}:T_0:7:4"))
    assert _printed(faulty)[8:] == [*REST[:3], 17 ^ 4, *REST[4:]]
    assert _values(faulty, store, STORE)[7] == 17 ^ 4
