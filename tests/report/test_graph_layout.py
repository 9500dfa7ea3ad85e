"""The layout of graphs: nothing lies over anything, and arrows go down unless they close a cycle."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.report.state_graph.layout import Arrangement, Box, Link, arrange

sizes = st.sampled_from([8.0, 30.0, 75.0])
boxes = st.builds(Box, sizes, sizes, st.sampled_from([10.0, 40.0]))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Link]]:
    """Every box but the first is discovered from an earlier one."""
    found = draw(st.lists(boxes, min_size=1, max_size=14))
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, len(found))}
    ends = st.integers(0, len(found) - 1)
    pairs |= {(a, b) for a, b in draw(st.lists(st.tuples(ends, ends), max_size=20)) if a != b}
    return found, [Link(a, b, draw(boxes)) for a, b in sorted(pairs)]


def overlap(a: tuple[float, float], abox: Box, b: tuple[float, float], bbox: Box) -> bool:
    apart_x = a[0] + abox.right <= b[0] - bbox.left + 0.01 or b[0] + bbox.right <= a[0] - abox.left + 0.01
    return not apart_x and abs(a[1] - b[1]) < (abox.height + bbox.height) / 2 - 0.01


def rooms(found: list[Box], links: list[Link], plan: Arrangement) -> list[tuple[tuple[float, float], Box]]:
    return [
        *zip(plan.places, found, strict=True),
        *((w.label, e.label) for w, e in zip(plan.paths, links, strict=True)),
    ]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(graphs())
def test_nothing_overlaps_and_all_is_inside(graph: tuple[list[Box], list[Link]]) -> None:
    plan = arrange(*graph)
    placed = rooms(*graph, plan)
    for (a, abox), (b, bbox) in itertools.combinations(placed, 2):
        assert not overlap(a, abox, b, bbox)
    for (x, y), box in placed:
        assert x - box.left >= -0.01
        assert x + box.right <= plan.width + 0.01
        assert y - box.height / 2 >= -0.01
        assert y + box.height / 2 <= plan.height + 0.01


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_arrows_join_their_boxes_and_go_down_unless_they_close_a_cycle(graph: tuple[list[Box], list[Link]]) -> None:
    found, links = graph
    plan = arrange(found, links)
    for link, way in zip(links, plan.paths, strict=True):
        for (x, y), end in ((way.points[0], link.source), (way.points[-1], link.target)):
            place, box = plan.places[end], found[end]
            assert place[0] - box.left <= x <= place[0] + box.right
            assert abs(abs(y - place[1]) - box.height / 2) < 0.01
        heights = [y for _, y in way.points]
        assert heights == sorted(heights, reverse=way.upward)
    closing = [e for e, way in zip(links, plan.paths, strict=True) if way.upward]
    if not any(reaches(links, e.target, e.source) for e in links):
        assert closing == []
    assert all(reaches(links, e.target, e.source) for e in closing)


def reaches(links: list[Link], start: int, goal: int) -> bool:
    seen = [start]
    for node in seen:
        seen += [e.target for e in links if e.source == node and e.target not in seen]
    return goal in seen


def test_a_diamond_is_symmetric_and_has_no_crossings() -> None:
    box, label = Box(20, 20, 20), Box(5, 5, 10)
    links = [Link(a, b, label) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))]
    plan = arrange([box] * 4, links)
    (top, left, right, bottom) = plan.places
    assert abs(top[0] - bottom[0]) < 0.5
    assert left[0] < top[0] < right[0]
    assert left[1] == right[1]


def test_a_state_is_below_all_that_lead_to_it() -> None:
    """Although the root leads to the last one directly: its breadth-first depth is 1."""
    box = Box(20, 20, 20)
    plan = arrange([box] * 3, [Link(0, 2, box), Link(0, 1, box), Link(1, 2, box)])
    assert plan.places[0][1] < plan.places[1][1] < plan.places[2][1]
