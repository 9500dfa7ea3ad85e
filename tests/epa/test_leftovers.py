"""What clocks, lock closure and a greedy schedule leave open, and Z3 decides: it does happen, in both directions."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from plait.epa.events import Event, fast_check, settle
from plait.epa.instrumentation.build import build
from plait.epa.recording import Recording
from plait.epa.reversibility import check
from plait.epa.run import run
from plait.epa.solver import formula_decides
from tests.support.patience import PATIENCE

A1, A2, B1, B2 = 1, 2, 3, 4
LOCKS = {A1: 100, A2: 100, B1: 101, B2: 101}
CONDITIONS = [pair for a in (A1, A2) for b in (B1, B2) for pair in ((a, b), (b, a)) if pair != (B2, A1)]
"""The first section begins before the second ends: all eight together are impossible. The question adds the last one."""


def trace(conditions: list[tuple[int, int]]) -> list[Event]:
    """Two sections each of two locks. A condition is a thread that the first creates and the second joins."""
    helpers = {pair: 5 + i for i, pair in enumerate(conditions)}

    def begin(me: int) -> list[Event]:
        access = [Event(B2, "access", 7, 0, 4, writes=True)] if me == B2 else []
        mine = [h for (one, _), h in helpers.items() if one == me]
        made = [s for h in mine for s in (Event(me, "create", h), Event(h, "start"), Event(h, "end"))]
        return [Event(me, "lock", LOCKS[me]), *access, *made]

    def end(me: int) -> list[Event]:
        access = [Event(A1, "access", 7, 0, 4, writes=True)] if me == A1 else []
        joins = [Event(me, "join", h) for (_, other), h in helpers.items() if other == me]
        return [*joins, *access, Event(me, "unlock", LOCKS[me])]

    sections = (A1, A2, B1, B2)
    steps = [Event(0, "start"), *(Event(0, "create", s) for s in sections), *(Event(s, "start") for s in sections)]
    steps += [*begin(A1), *begin(B1), *end(A1), *begin(A2), *end(B1), *begin(B2), *end(A2), *end(B2)]
    return steps + [Event(s, "end") for s in sections]


def test_all_conditions_are_impossible_and_only_z3_knows() -> None:
    report = fast_check(trace(CONDITIONS))
    assert [pair.schedule for pair in report.pairs] == [None], "left open"
    assert settle(report) == []
    assert formula_decides(trace(CONDITIONS)) is False


@pytest.mark.slow
def test_any_condition_less_is_possible() -> None:
    """Some of these the greedy schedule finds, others it does not."""
    left = 0
    for fewer in (1, 2):
        for missing in itertools.combinations(CONDITIONS, fewer):
            steps = trace([c for c in CONDITIONS if c not in missing])
            report = fast_check(steps)
            left += sum(pair.schedule is None for pair in report.pairs)
            decided = settle(report)
            assert all(sorted(schedule or ()) == list(range(len(report.nodes))) for _, schedule in decided)
            assert bool(decided) is formula_decides(steps) is True, missing
    assert left > 5


@pytest.mark.slow
@pytest.mark.parametrize("feasible", [False, True])
def test_a_recorded_trace(feasible: bool, toolchain: int, tmp_path: Path) -> None:
    program = tmp_path / "overlaps.epa"
    flags = ["-DFEASIBLE"] if feasible else []
    build([Path(__file__).with_name("overlaps.c")], program, flags, version=toolchain)
    assert run(program, [], tmp_path / "trace", timeout=PATIENCE).code == 0
    found = check(Recording(tmp_path / "trace"))
    assert found.settled_by_solver == 1
    assert found.verdict.status == ("violated" if feasible else "holds")
    assert [w.object for w in found.witnesses] == ["shared"] * feasible
