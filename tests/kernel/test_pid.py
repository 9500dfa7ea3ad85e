"""Process ids: values that are compared by what they name, cannot be changed, and survive copying."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernel.pid import Pid

PIDS = st.builds(Pid, st.sampled_from(("A", "B", "Node")), st.integers(0, 20))


@given(PIDS, PIDS)
def test_equality_is_that_of_role_and_index(one: Pid, other: Pid) -> None:
    assert (one == other) == ((one.role, one.index) == (other.role, other.index))
    assert one != other or hash(one) == hash(other)
    assert one != repr(one)
    assert one != (one.role, one.index)


@given(st.lists(PIDS))
def test_order_is_by_role_then_by_number(pids: list[Pid]) -> None:
    """Node10 comes after Node9, not after Node1."""
    assert [(p.role, p.index) for p in sorted(pids)] == sorted((p.role, p.index) for p in pids)


@given(PIDS)
def test_copies_are_equal(pid: Pid) -> None:
    for made in (copy.copy(pid), copy.deepcopy(pid), pickle.loads(pickle.dumps(pid))):
        assert made == pid
        assert hash(made) == hash(pid)


def test_it_cannot_be_changed() -> None:
    pid = Pid("Node", 1)
    with pytest.raises(AttributeError, match="cannot be changed"):
        pid.index = 2
    with pytest.raises(AttributeError):
        pid.name = "n"  # type: ignore[attr-defined]
    assert pid == Pid("Node", 1)
