"""The reversibility check against the dissertation's formula and against all permutations."""

from __future__ import annotations

import itertools
from pathlib import Path

import cvc5
import pytest
import z3  # type: ignore[import-untyped]

from plait.cli.main import main
from plait.epa.events import Event, fast_check, settle
from plait.epa.smtlib import smt2
from plait.epa.solver import decide, formula_decides
from plait.kernel.errors import UsageError
from tests.epa.conftest import Record
from tests.epa.schedules import can_be_reversed, traces


def reversible(trace: list[Event], *, benign_same_value: bool = False) -> bool:
    pairs = settle(fast_check(trace, benign_same_value=benign_same_value))
    assert all(pair.schedule is not None for pair in pairs), "Z3 decides all of these"
    return bool(pairs)


@pytest.mark.slow
def test_the_check_agrees_with_the_formula_and_with_all_permutations() -> None:
    answers = []
    for trace in traces(500):
        expected = can_be_reversed(trace)
        assert reversible(trace) == expected, trace
        assert formula_decides(trace) == expected, trace
        answers.append(expected)
    assert 100 < sum(answers) < 450, "both answers occur often"


@pytest.mark.slow
def test_benign_writes_of_one_value() -> None:
    answers = []
    for trace in traces(150, start=50_000):
        expected = can_be_reversed(trace, benign_same_value=True)
        assert reversible(trace, benign_same_value=True) == expected, trace
        answers.append(expected != can_be_reversed(trace))
    assert sum(answers) > 0, "the option makes a difference"


def test_the_formula_as_smt_lib() -> None:
    """Z3 and cvc5 read the text, and decide it as the fast check does."""
    answers = []
    for trace in traces(40, start=7_000):
        text = "\n".join(smt2(trace))
        expected = reversible(trace)
        solver = z3.Solver()
        solver.from_string(text)
        assert (solver.check() == z3.sat) == expected, text
        assert _cvc5(text) == ("sat" if expected else "unsat"), text
        answers.append(expected)
    assert 0 < sum(answers) < 40, "both answers occur"


def _cvc5(text: str) -> str:
    solver = cvc5.Solver()
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "formula")
    symbols = parser.getSymbolManager()
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols) or said
    return said.strip()


def test_a_formula_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="5,001 events"):
        list(smt2([Event(0, "access", 1)] * 5_001))


@pytest.mark.slow
@pytest.mark.parametrize(("program", "answer"), [("listing4.c", "unsat"), ("racy_counter.c", "sat")])
def test_the_formula_of_a_program(program: str, answer: str, record: Record, tmp_path: Path) -> None:
    """`--smt2` writes the formula of a trace; its answer is the verdict on reversibility."""
    recording = record(program)
    code = main(["epa", "reversible", str(recording.folder), "--smt2", str(tmp_path / "formula.smt2")])
    assert code == (1 if answer == "sat" else 0)
    assert _cvc5((tmp_path / "formula.smt2").read_text(encoding="utf-8")) == answer


def test_schedules_are_permutations_that_reverse() -> None:
    """Each schedule that is given as a witness keeps program order and locks, and puts the second event first."""
    shown = 0
    for trace in traces(120, start=90_000):
        report = fast_check(trace)
        for pair, schedule in settle(report):
            assert schedule is not None
            order = {node: when for when, node in enumerate(schedule)}
            assert sorted(order) == list(range(len(report.nodes)))
            for node, sources in enumerate(report.before):
                assert all(order[source] < order[node] for source in sources)
            threads: dict[int, list[int]] = {}
            for node, (thread, *_) in enumerate(report.nodes):
                threads.setdefault(thread, []).append(order[node])
            assert all(line == sorted(line) for line in threads.values())
            for one, other in itertools.combinations(report.sections, 2):
                if one[0] == other[0] and one[1] != other[1] and (one[2] or other[2]):
                    spans = sorted((order[s[3]], order[s[4]]) for s in (one, other))
                    assert spans[0][1] < spans[1][0]
            if pair.early is not None:
                assert order[pair.late] < order[pair.early]
            shown += 1
    assert shown > 50


def access(thread: int, *, writes: bool, object_: int = 0) -> Event:
    return Event(thread, "access", object_, 0, 4, writes)


def test_a_lock_does_not_order() -> None:
    """Two sections of one lock can come in the other order; joined threads cannot."""
    begin = [Event(0, "start"), Event(0, "create", 1), Event(0, "create", 2)]
    one, two = (
        [Event(t, "start"), Event(t, "lock", 9), access(t, writes=True), Event(t, "unlock", 9), Event(t, "end")]
        for t in (1, 2)
    )
    assert reversible([*begin, *one, *two])
    joined = [Event(0, "start"), Event(0, "create", 1), *one, Event(0, "join", 1), Event(0, "create", 2), *two]
    assert not reversible(joined)


def test_locks_that_order_by_closure() -> None:
    """The second section must follow the first, because the thread of the second is created inside of the first."""
    trace = [
        Event(0, "start"), Event(0, "lock", 9), Event(0, "create", 1), Event(1, "start"), access(0, writes=True),
        Event(0, "unlock", 9), Event(1, "lock", 9), access(1, writes=True), Event(1, "unlock", 9), Event(1, "end"),
    ]  # fmt: skip
    assert not reversible(trace)
    assert not can_be_reversed(trace)
    assert fast_check(trace).rounds > 1, "vector clocks alone do not order the two"
    without = [s for s in trace if "lock" not in s.op]
    assert reversible(without)


def test_a_barrier_orders_only_if_all_of_its_threads_are_known() -> None:
    def trace(count: int) -> list[Event]:
        return [
            Event(0, "start"), Event(0, "barrier", 5, count), Event(0, "create", 1), Event(0, "create", 2),
            Event(1, "start"), access(1, writes=True), Event(1, "arrive", 5), Event(2, "start"), Event(2, "arrive", 5),
            Event(2, "depart", 5), access(2, writes=False), Event(1, "depart", 5), Event(1, "end"), Event(2, "end"),
        ]  # fmt: skip

    assert not reversible(trace(2))
    assert reversible(trace(1))
    assert fast_check(trace(2)).warnings == []
    assert "treated as no barrier" in fast_check(trace(1)).warnings[0]


@pytest.mark.parametrize("late_first", [True, False])
def test_z3_alone(late_first: bool) -> None:
    """Two threads, one lock: either section can come first, unless an edge says otherwise."""
    threads, sections = [0, 0, 1, 1], [(7, 0, True, 0, 1), (7, 1, True, 2, 3)]
    before = [[], [], [] if late_first else [1], []]
    answer = decide(threads, before, sections, early=1, late=2)
    assert answer.reversible is late_first
    assert answer.schedule == ([2, 3, 0, 1] if late_first else None)


@pytest.mark.slow
def test_z3_agrees_on_what_it_would_be_left_with() -> None:
    """Pairs that the greedy schedule decided, given to Z3; and pairs of synchronisation events that are ordered."""
    asked = 0
    for trace in traces(60, start=120_000):
        report = fast_check(trace)
        threads = [node[0] for node in report.nodes]
        for pair in report.pairs:
            if pair.early is not None:
                assert decide(threads, report.before, report.sections, pair.early, pair.late).reversible is True
                asked += 1
        for thread in set(threads):
            line = [i for i, t in enumerate(threads) if t == thread]
            answer = decide(threads, report.before, report.sections, early=line[0], late=line[-1])
            assert answer.reversible is False or len(line) == 1
    assert asked > 30
