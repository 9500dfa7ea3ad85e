"""Intervals whose ends may be infinite: every result is inside."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.bmc.analysis.intervals import UNBOUNDED, Interval, calculated, clipped, narrowed
from plait.bmc.program.arithmetic import ARITHMETIC, calculate

NUMBERS = st.one_of(
    st.integers(-6, 6),
    st.builds(lambda sign, near: sign * UNBOUNDED + near, st.sampled_from([-3, -1, 1, 3]), st.integers(-3, 3)),
)


def inside(value: int, interval: Interval) -> bool:
    low, high = interval
    return (low <= -UNBOUNDED or low <= value) and (high >= UNBOUNDED or value <= high)


@st.composite
def sampled(draw: st.DrawFn) -> tuple[int, Interval]:
    """A number, and an interval that it is in."""
    low, value, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return value, clipped(low, high)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(sampled(), sampled(), st.sampled_from(ARITHMETIC))
def test_results_are_inside(one: tuple[int, Interval], two: tuple[int, Interval], operator: str) -> None:
    """For all operands that have a result."""
    a, of_a = one
    b, of_b = two
    assert inside(a, of_a)
    if (operator in ("/", "%", "quot", "rem") and b == 0) or (operator in ("<<", ">>") and not 0 <= b <= 64):
        return
    assert inside(int(calculate(operator, a, b)), clipped(*calculated(operator, of_a, of_b)))


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(sampled(), sampled(), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_what_a_condition_allows_stays(one: tuple[int, Interval], two: tuple[int, Interval], relation: str) -> None:
    if calculate(relation, one[0], two[0]):
        left = narrowed(one[1], relation, two[1])
        assert left is not None
        assert inside(one[0], left)
