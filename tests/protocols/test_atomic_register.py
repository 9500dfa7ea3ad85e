"""The atomic register, and that the regular one is not atomic."""

from __future__ import annotations

from typing import Any

import pytest

from plait import ModelError, Verdict, check
from plait.model.linearizability import Linearizability
from plait.protocols.atomic_register import AnyAtomicReader, atomic_register
from plait.protocols.regular_register import BaseObject
from tests.oracle.explorer import explore
from tests.oracle.relation import make

QUORUM = pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "one by one"])


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize("reduce", ["none", "auto"])
@pytest.mark.parametrize("sizes", [(1, 2, 2, 1), (2, 1, 2, 2), (2, 2, 1, 1), (3, 1, 1, 1)])
def test_it_is_atomic(sizes: tuple[int, int, int, int], quorum: bool, reduce: str) -> None:
    verdict = check(atomic_register(*sizes, quorum=quorum), reduce=reduce)
    assert verdict.status == "holds", str(verdict)
    assert verdict.bound is None
    assert verdict.warnings == []


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize(("readers", "reads"), [(1, 2), (2, 1)])
def test_it_is_atomic_where_the_regular_register_is_not(readers: int, reads: int, quorum: bool) -> None:
    """The setting of test_new_old_inversion, with every reduction."""
    verdict = check(atomic_register(readers=readers, reads=reads, quorum=quorum), reduce="auto")
    assert (verdict.status, verdict.bound) == ("holds", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base_objects", "readers", "reads", "quorum", "states", "transitions"),
    [
        (2, 1, 1, True, 108, 199),
        (2, 1, 1, False, 350, 888),
        (2, 1, 2, True, 352, 652),
        (2, 1, 2, False, 1_174, 3_003),
        (2, 2, 1, True, 2_716, 6_881),
    ],
)
def test_size(base_objects: int, readers: int, reads: int, quorum: bool, states: int, transitions: int) -> None:
    system = atomic_register(base_objects, readers, reads=reads, quorum=quorum)
    truth, found = explore(system), check(system).statistics
    assert truth.violated == set()
    assert (truth.states, truth.transitions) == (found.states, found.transitions) == (states, transitions)


@pytest.mark.slow
def test_size_of_the_default() -> None:
    found = check(atomic_register()).statistics
    assert (found.states, found.transitions) == (461_185, 1_759_707)


def returned(verdict: Verdict) -> list[int]:
    """What reads returned, in the order in which they did."""
    assert verdict.trace is not None
    steps = [event.state.fields[event.lane] for event in verdict.trace.events if event.label == "answered"]
    return [reader["value"] for reader in steps if reader["phase"] == {"#enum": "Phase.IDLE"}]


@pytest.mark.slow
@QUORUM
@pytest.mark.parametrize(("readers", "reads"), [(1, 2), (2, 1)])
def test_new_old_inversion(readers: int, reads: int, quorum: bool) -> None:
    """The regular register: of two reads during the write, the first returns the new value and the second the old one."""
    verdict = check(atomic_register(readers=readers, reads=reads, quorum=quorum, faulty="regular"))
    assert verdict.property == "linearizable"
    assert returned(verdict) == [1, 0]


@QUORUM
@pytest.mark.parametrize("sizes", [(3, 1, 1), (2, 1, 2), (2, 2, 1)])
def test_it_takes_three_base_objects_and_two_reads(sizes: tuple[int, int, int], quorum: bool) -> None:
    """Of two base objects both are a majority: nobody misses what another has read."""
    base_objects, readers, reads = sizes
    system = atomic_register(base_objects, readers, reads=reads, quorum=quorum, faulty="regular")
    assert check(system).status == "holds"


@pytest.mark.slow
def test_the_history_has_all_operations() -> None:
    """The monitor would find nothing wrong with a history that it is not told."""
    histories = [make(Linearizability, state.monitors[0]) for state in explore(atomic_register(1, reads=2)).seen]
    assert max(sum(map(len, history.completed.values())) for history in histories) == 3


def test_symmetric_roles() -> None:
    assert atomic_register().symmetric == [BaseObject]
    assert atomic_register(readers=2).symmetric == [BaseObject, AnyAtomicReader]


@pytest.mark.parametrize("wrong", [{"base_objects": 0}, {"reads": 0}, {"readers": True}, {"faulty": "atomic"}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        atomic_register(**wrong)
