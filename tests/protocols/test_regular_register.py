"""The regular register: what it promises, what it does not, and how large it is."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, Monitor, Pid, System, check
from plait.protocols.regular_register import AnyReader, BaseObject, Begun, Returned, Written, regular_register
from tests.oracle.explorer import explore
from tests.oracle.relation import successors, thaw

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])


@QUORUM
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 1, 1, 1), (4, 1, 1, 1), (3, 1, 2, 1), (3, 1, 1, 2), (2, 2, 1, 1)])
def test_it_is_regular(sizes: tuple[int, int, int, int], quorum: bool) -> None:
    base_objects, readers, writes, reads = sizes
    verdict = check(regular_register(base_objects, readers, writes, reads, quorum))
    assert verdict.status == "holds"
    assert verdict.bound is None
    assert verdict.warnings == []


@QUORUM
@pytest.mark.parametrize("base_objects", [1, 3, 4])
def test_the_wrong_specification_is_violated(base_objects: int, quorum: bool) -> None:
    """Paper 000, Table I: a read ends after a concurrent write, and returns the value before it."""
    verdict = check(regular_register(base_objects, quorum=quorum, specification="wrong"))
    assert verdict.property == "regularity"
    assert verdict.trace is not None
    labels = [event.label for event in verdict.trace.events]
    last = verdict.trace.events[-1]
    assert (last.label, last.state.fields[last.lane]["value"]) == ("answered", 0)
    assert labels.index("read") < max(i for i, label in enumerate(labels) if label == "acknowledged")


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize("specification", ["regular", "wrong"])
@pytest.mark.parametrize("sizes", [(3, 1, 1, 1), (2, 1, 2, 2), (2, 2, 1, 1)])
def test_the_oracle_agrees(sizes: tuple[int, int, int, int], specification: str, quorum: bool) -> None:
    system = regular_register(*sizes, quorum=quorum, specification=specification)  # type: ignore[arg-type]
    truth = explore(system)
    assert truth.violated == ({"regularity"} if specification == "wrong" else set())
    found = check(system, keep_going=True).statistics
    assert (found.states, found.transitions, found.terminal_states) == (truth.states, truth.transitions, truth.terminal)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base_objects", "quorum", "states", "transitions"),
    [
        (3, True, 556, 1_527),
        (3, False, 1_990, 7_224),
        (4, True, 1_858, 6_238),
        (4, False, 23_004, 117_450),
        (5, True, 22_030, 98_796),
        (5, False, 251_500, 1_587_426),
    ],
)
def test_size(base_objects: int, quorum: bool, states: int, transitions: int) -> None:
    """Those with 3 base objects are counted by the oracle, too."""
    found = check(regular_register(base_objects, quorum=quorum)).statistics
    assert (found.states, found.transitions) == (states, transitions)


class History(Monitor):
    """What happened, in order: w a complete write, ( a read that begins, 0) or 1) what it returns."""

    events: str = ""

    def observe(self, process: Pid, event: Any) -> None:
        match event:
            case Written():
                self.events += "w"
            case Begun():
                self.events += "("
            case Returned(value):
                self.events += f"{value})"


def histories(system: System) -> set[str]:
    """Those of all terminal states."""
    system.monitors.append(History())
    system.properties = []
    truth = explore(system)
    ends = [s for s in truth.ends if not any(t.kind == "step" for t in successors(system, s))]
    return {thaw(state.monitors[1][0]) for state in ends}


@pytest.mark.slow
@QUORUM
def test_a_read_that_overlaps_a_write_returns_the_old_or_the_new_value(quorum: bool) -> None:
    """But one that begins after it returns the new one. One that ends before may overlap it: only its end is seen."""
    assert histories(regular_register(quorum=quorum)) == {"(0)w", "(1)w", "(w0)", "(w1)", "w(1)"}


@pytest.mark.slow
def test_new_old_inversion() -> None:
    """Of two reads during a write, the first returns the new value and the second the old one: regular, not atomic."""
    found = histories(regular_register(reads=2, quorum=True))
    assert {"(1)(0)w", "(1)(w0)"} <= found
    assert not any("w(0)" in history for history in found)


def test_symmetric_roles() -> None:
    assert regular_register().symmetric == [BaseObject]
    assert regular_register(readers=2).symmetric == [BaseObject, AnyReader]
    assert regular_register(base_objects=1).symmetric == []


@pytest.mark.parametrize("wrong", [{"base_objects": 0}, {"reads": 0}, {"writes": True}, {"specification": "atomic"}])
def test_wrong_parameters_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        regular_register(**wrong)  # type: ignore[arg-type]
