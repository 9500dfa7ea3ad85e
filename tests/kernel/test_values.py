"""Values as data: data is JSON, equal values give equal data, different ones different data, and text reads as Python."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernel.pid import Pid
from plait.kernel.values import exact, order, text, to_data


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass(frozen=True)
class Vote:
    ballot: int
    voter: Pid


def values(leaves: st.SearchStrategy[Any], *, tuples: bool = True) -> st.SearchStrategy[Any]:
    def wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        hashable = st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.booleans()))
        parts = [
            st.lists(inner, max_size=3),
            st.dictionaries(hashable, inner, max_size=3),
            st.frozensets(hashable, max_size=3),
        ]
        return st.one_of(*parts, st.lists(inner, max_size=3).map(tuple)) if tuples else st.one_of(*parts)

    return st.recursive(leaves, wider, max_leaves=8)


SIMPLE = st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.text(max_size=4))
LEAVES = st.one_of(
    SIMPLE,
    st.integers(),
    st.floats(),
    st.sampled_from(Colour),
    st.builds(Pid, st.sampled_from(("Node", "Leader")), st.integers(0, 3)),
    st.builds(Point, st.integers(), st.integers()),
)


@given(values(LEAVES))
def test_data_is_json(value: Any) -> None:
    data = to_data(value)
    assert exact(msgspec.json.decode(msgspec.json.encode(data))) == exact(data)


@given(values(SIMPLE))
def test_text_is_what_a_python_user_writes(value: Any) -> None:
    """Read back as Python, it is the value."""
    assert eval(text(to_data(value)), {"__builtins__": {}, "set": frozenset}) == value


@given(values(LEAVES), values(LEAVES))
def test_data_differs_where_values_differ(one: Any, other: Any) -> None:
    """By type as well: 1, 1.0 and True are equal for Python, and three values here."""
    same = exact(to_data(one)) == exact(to_data(other))
    if same:
        assert one == other or "nan" in repr(one)


@given(st.dictionaries(st.integers(), st.integers()), st.randoms(use_true_random=False))
def test_the_order_of_a_dict_or_a_set_says_nothing(value: dict[int, int], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert to_data(dict(items)) == to_data(value)
    assert to_data({k for k, _ in items}) == to_data(set(value))


@given(st.lists(values(LEAVES), max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_data_is_total(found: list[Any], random: Any) -> None:
    """Sorting gives the same, whatever it starts from."""
    data = [to_data(value) for value in found]
    again = list(data)
    random.shuffle(again)
    assert [order(d) for d in sorted(data, key=order)] == [order(d) for d in sorted(again, key=order)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1, "1"),
        (True, "True"),
        (1.0, "1.0"),
        (2**60, str(2**60)),
        (float("nan"), "nan"),
        ((1,), "(1,)"),
        ((), "()"),
        ([(), []], "[(), []]"),
        (set(), "set()"),
        ({2, 10, 1}, "{1, 2, 10}"),
        ({10: "a", 9: "b"}, "{9: 'b', 10: 'a'}"),
        (Colour.RED, "Colour.RED"),
        (Level.LOW, "Level.LOW"),
        (Pid("Node", 2), "Node2"),
        (Point(1, 2), "Point(x=1, y=2)"),
        (Vote(3, Pid("Node", 0)), "Vote(ballot=3, voter=Node0)"),
    ],
)
def test_text(value: Any, shown: str) -> None:
    assert text(to_data(value)) == shown


@pytest.mark.parametrize("several", [(1, 1.0, True), (0, 0.0, False), ((1,), [1]), ("1", 1), (Level.LOW, 1)])
def test_values_of_different_types_differ(several: tuple[Any, ...]) -> None:
    assert len({exact(to_data(value)) for value in several}) == len(several)
