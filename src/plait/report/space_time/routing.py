"""How an arrow of the space-time diagram goes from its send to its end, clear of the marks of other events.

A straight arrow that touches the mark of another event looks like a message to that process. So every route keeps a
distance of `CLEAR` from all marks but its own. Routes are tried in this order:

1. a straight line;
2. a gentle curve inside the rectangle between both ends, so that it always goes down and towards its end;
3. a path along free ground. All marks are at the height of a row, close to a lane. So a line between two rows is free,
   and a line in the middle between two lanes is free. Such a path always exists: start, the middle between the first two
   lanes, a crossing between two rows, the middle before the last lane, end.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

Point = tuple[float, float]

CLEAR = 12.0
"""The least distance between an arrow and the centre of a mark of another event."""
NEAR = 20.0
"""Marks are at most this far from their lane."""
_TRACK = 6.0
"""Distance between paths that use the same middle between two lanes."""
_CORNER = 9.0
_PIECES = 14
"""Segments of a flattened curve."""
_LONG = 2000.0
"""Arrows that are longer than this are not curved: finding a curve would take long."""
_FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
_BENDS = sorted(
    ((u, v) for u, v in itertools.product(_FRACTIONS, repeat=2) if u != v),
    key=lambda bend: (abs(bend[0] - bend[1]), abs(bend[0] - 0.5)),
)
"""Control points of curves, as fractions of width and height: the smallest bend first."""
_SWINGS = ((0.5, 0.12), (0.5, 0.02), (0.12, 0.5))
"""The first control point of curves with two bends. The second one is symmetric."""


@dataclasses.dataclass(frozen=True)
class Mark:
    """What is drawn for an event: a dot, a cross, a plus; also the ring of a sender in the initial state."""

    x: float
    y: float
    owner: tuple[str, object]
    """Arrows that begin or end at this event may touch it."""


@dataclasses.dataclass(frozen=True)
class Route:
    """A line from start to end."""

    kind: str
    """straight, curve (a Bézier curve with one or two control points) or path (with rounded corners)."""
    points: tuple[Point, ...]
    """Start, control points or corners, end."""

    def flat(self) -> list[Point]:
        """The corners of a polyline that is close to the line."""
        if self.kind != "curve":
            return list(self.points)
        return [_bezier(self.points, i / _PIECES) for i in range(_PIECES + 1)]


def _bezier(points: Sequence[Point], t: float) -> Point:
    while len(points) > 1:
        points = [(a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])) for a, b in itertools.pairwise(points)]
    return points[0]


def distance(point: Point, start: Point, end: Point) -> float:
    """The distance of a point from the segment between start and end.

    >>> distance((0, 3), (-1, 0), (1, 0)), distance((5, 3), (0, 0), (1, 0))
    (3.0, 5.0)
    """
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = dx * dx + dy * dy
    t = ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / length if length else 0.0
    t = min(1.0, max(0.0, t))
    return math.hypot(point[0] - start[0] - t * dx, point[1] - start[1] - t * dy)


class Router:
    """Finds routes. `middle` gives the free middle between two lanes, next to x on a side (-1 left, 1 right).

    `rows` has the heights of all rows. `half` is half the height of a row: there is no mark between two rows. `careful`
    allows curves, which take longer to find.
    """

    def __init__(
        self,
        marks: Iterable[Mark],
        rows: Sequence[float],
        half: float,
        middle: Callable[[float, int], float],
        *,
        careful: bool,
    ) -> None:
        self._marks = sorted(marks, key=lambda mark: mark.y)
        self._heights = [mark.y for mark in self._marks]
        self._rows = rows
        self._half = half
        self._middle = middle
        self._careful = careful
        self._crossings: Counter[float] = Counter()
        self._tracks: Counter[float] = Counter()

    def route(self, start: Point, end: Point, own: set[tuple[str, object]]) -> Route:
        """A route that keeps clear of all marks that are not its own."""
        straight = Route("straight", (start, end))
        foreign = self._between(start, end, own)
        if self._clear(straight, foreign) or end[1] - start[1] < self._half:
            return straight
        if self._careful and end[1] - start[1] < _LONG:
            for curve in _curves(start, end):
                if self._clear(curve, foreign):
                    return curve
        return self._around(start, end, foreign)

    def arc(self, start: Point, end: Point, own: set[tuple[str, object]]) -> Route:
        """A route from a lane to the same lane: an arc beside it, on the right if possible."""
        foreign = self._between(start, end, own)
        high = end[1] - start[1]
        for side, more in ((1, 0.0), (-1, 0.0), (1, 16.0)):
            bulge = side * (min(46.0, 18 + high / 6) + more)
            curve = Route(
                "curve", (start, (start[0] + bulge, start[1] + 8), (end[0] + bulge, max(start[1], end[1] - 12)), end)
            )
            if high < self._half or self._clear(curve, foreign):
                return curve
        return self._around(start, end, foreign)

    def _between(self, start: Point, end: Point, own: set[tuple[str, object]]) -> list[Mark]:
        """The marks of other events near the heights of both ends."""
        top, bottom = min(start[1], end[1]) - CLEAR, max(start[1], end[1]) + CLEAR
        first, last = bisect.bisect_left(self._heights, top), bisect.bisect_right(self._heights, bottom)
        return [mark for mark in self._marks[first:last] if mark.owner not in own]

    def _clear(self, route: Route, foreign: list[Mark]) -> bool:
        return all(
            distance((mark.x, mark.y), a, b) >= CLEAR
            for a, b in itertools.pairwise(route.flat())
            for mark in foreign
            if min(a[1], b[1]) - CLEAR < mark.y < max(a[1], b[1]) + CLEAR
        )

    def _around(self, start: Point, end: Point, foreign: list[Mark]) -> Route:
        """The path along free ground, which always exists."""
        side = 1 if end[0] >= start[0] else -1
        if (
            abs(end[0] - start[0]) <= 2 * NEAR
        ):  # Both ends are at one lane. Stay on the side of the end that is beside it.
            first = last = min(
                (self._middle(x, s) for x in (start[0], end[0]) for s in (1, -1)),
                key=lambda middle: min(abs(middle - start[0]), abs(middle - end[0])),
            )
        else:
            first, last = self._middle(start[0], side), self._middle(end[0], -side)
        one = first == last
        first = self._track(first)
        last = first if one else self._track(last)
        top, bottom = start[1] + self._half, end[1] - self._half
        if one:
            return Route("path", (start, (first, top), (first, bottom), end))
        slanted = Route("path", (start, (first, top), (last, bottom), end))
        if self._clear(slanted, foreign):
            return slanted
        between = [y + self._half for y in self._rows if top <= y + self._half <= bottom + 1]
        across = min(between, key=lambda y: (self._crossings[y], abs(y - (top + bottom) / 2)), default=top)
        self._crossings[across] += 1
        return Route("path", (start, (first, top), (first, across), (last, across), (last, bottom), end))

    def _track(self, x: float) -> float:
        """A line beside the middle, so that paths there do not cover each other."""
        number = self._tracks[x] % 5
        self._tracks[x] += 1
        return x + _TRACK * ((number + 1) // 2) * (-1 if number % 2 else 1)


def _curves(start: Point, end: Point) -> Iterable[Route]:
    dx, dy = end[0] - start[0], end[1] - start[1]

    def at(u: float, v: float) -> Point:
        return (start[0] + u * dx, start[1] + v * dy)

    for u, v in _BENDS:
        yield Route("curve", (start, at(u, v), end))
    for u, v in _SWINGS:
        yield Route("curve", (start, at(u, v), at(1 - u, 1 - v), end))


def toward(start: Point, end: Point, length: float) -> Point:
    """The point at this distance from start on the way to end."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    whole = math.hypot(dx, dy) or 1.0
    return (start[0] + dx / whole * length, start[1] + dy / whole * length)


def shortened(route: Route, at_start: float, at_end: float) -> Route:
    """The route without a piece at both ends, where marks are drawn."""
    points = list(route.points)
    first, last = toward(points[0], points[1], at_start), toward(points[-1], points[-2], at_end)
    return Route(route.kind, (first, *points[1:-1], last))


def rounded(points: Sequence[Point]) -> list[tuple[Point, Point, Point]]:
    """For each corner of a path: where its curve begins, the corner, and where its curve ends."""
    corners = []
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        room = min(_CORNER, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        corners.append((toward(corner, before, room), corner, toward(corner, after, room)))
    return corners
