"""A layered layout of a directed graph, from top to bottom (Sugiyama, Tagawa and Toda 1981).

1. Links that close a cycle are reversed for the layout. All other links go down: a box is one layer below the lowest of
   its predecessors. If all paths to a state have the same length, its layer is its breadth-first depth.
2. Between two layers there is a row of labels. A link is a chain of points, one in each row between its ends. One of
these
   points is as wide as the label. So labels get room, as boxes do, and cover nothing.
3. Sweeps improve the order within rows: each puts all nodes at the mean position of their neighbours (barycenters). The
   order with the fewest crossings is used.
4. Then nodes move horizontally to the mean position of their neighbours, as far as the order permits. This is a problem
of
   isotonic regression. It is solved exactly, row by row.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Sequence

SWEEPS = 24
GAP = 20.0
"""The distance between neighbours in a row."""
RISE = 17.0
"""The least distance between rows. It is larger if a line goes far to the side."""
STEEP = 0.13
MOST_RISE = 64.0
THREAD = 7.0
"""Half of the width of a link that passes through a row."""

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Box:
    """The size of a box: its width to the left and to the right of its centre, and its height."""

    left: float
    right: float
    height: float


@dataclasses.dataclass(frozen=True)
class Link:
    """A link between two different boxes, by their positions in the list."""

    source: int
    target: int
    label: Box


@dataclasses.dataclass(frozen=True)
class LinkPath:
    """The path of a link: the points of the chain from its source to its target, and the centre of its label."""

    points: list[Point]
    label: Point
    upward: bool


@dataclasses.dataclass(frozen=True)
class Arrangement:
    """The layout: the centres of the boxes, the paths of the links, and the total size."""

    places: list[Point]
    paths: list[LinkPath]
    width: float
    height: float


def arrange(boxes: Sequence[Box], links: Sequence[Link]) -> Arrangement:
    """Lay out a graph. The first box is the root. The boxes are in the order of their discovery."""
    return _Layout(boxes, links).result()


class _Layout:
    def __init__(self, boxes: Sequence[Box], links: Sequence[Link]) -> None:
        self.links = links
        self.nodes: list[Box] = list(boxes)
        """The boxes, and after them the points of the links."""
        self.upward = _closing(len(boxes), links)
        self.row = [2 * layer for layer in _layers(len(boxes), self._downward())]
        self.above: list[list[int]] = [[] for _ in boxes]
        self.below: list[list[int]] = [[] for _ in boxes]
        self.chains = [self._chain(i) for i in range(len(links))]
        self.rows = self._order()
        self.x = self._spread()

    def _downward(self) -> list[tuple[int, int]]:
        return [
            (e.target, e.source) if up else (e.source, e.target) for e, up in zip(self.links, self.upward, strict=True)
        ]

    def _chain(self, number: int) -> list[int]:
        """The points of a link from the upper to the lower end. The label is next to the source of the link."""
        link, up = self.links[number], self.upward[number]
        top, bottom = (link.target, link.source) if up else (link.source, link.target)
        label_row = self.row[bottom] - 1 if up else self.row[top] + 1
        chain = [top]
        for row in range(self.row[top] + 1, self.row[bottom]):
            point = len(self.nodes)
            self.nodes.append(link.label if row == label_row else Box(THREAD, THREAD, 0))
            self.row.append(row)
            self.above.append([])
            self.below.append([])
            chain.append(point)
        chain.append(bottom)
        for upper, lower in itertools.pairwise(chain):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        return chain

    def _order(self) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in range(max(self.row, default=0) + 1)]
        for node, row in enumerate(self.row):
            rows[row].append(node)
        best, fewest = [list(row) for row in rows], -1
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for r in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
                place = {node: i for i, node in enumerate(rows[r - 1 if down else r + 1])}
                now = {node: i for i, node in enumerate(rows[r])}
                mean = {
                    n: sum(place[m] for m in neighbours[n]) / len(neighbours[n]) if neighbours[n] else float(now[n])
                    for n in rows[r]
                }
                rows[r].sort(key=lambda n: (mean[n], now[n]))
            crossings = sum(self._crossings(a, b) for a, b in itertools.pairwise(rows))
            if fewest < 0 or crossings < fewest:
                best, fewest = [list(row) for row in rows], crossings
            if crossings == 0:
                break
        return best

    def _crossings(self, upper: list[int], lower: list[int]) -> int:
        """The number of pairs of lines between two rows that cross: inversions in the order of their lower ends."""
        place = {node: i for i, node in enumerate(lower)}
        ends: list[int] = []
        count = 0
        for node in upper:
            targets = sorted(place[m] for m in self.below[node])
            count += sum(len(ends) - bisect.bisect_right(ends, t) for t in targets)
            for t in targets:
                bisect.insort(ends, t)
        return count

    def _spread(self) -> list[float]:
        """The horizontal positions of all nodes, chosen so that links are straight if possible."""
        x = [0.0] * len(self.nodes)
        for row in self.rows:
            wanted = [0.0] * len(row)
            for node, place in zip(row, self._apart(row, wanted, [1.0] * len(row)), strict=True):
                x[node] = place
        real = len(self.nodes) - sum(len(chain) - 2 for chain in self.chains)
        for sweep in range(2 * SWEEPS):
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                wanted, weights = [], []
                for n in row:
                    # Straight lines are more important than boxes in the middle.
                    pulls = [(x[m], 8.0 if n >= real and m >= real else 1.0) for m in self.above[n] + self.below[n]]
                    total = sum(w for _, w in pulls)
                    wanted.append(sum(p * w for p, w in pulls) / total if total else x[n])
                    weights.append(total or 0.1)
                for node, place in zip(row, self._apart(row, wanted, weights), strict=True):
                    x[node] = place
        left = min((x[n] - self.nodes[n].left for n in range(len(x))), default=0.0)
        return [value - left for value in x]

    def _apart(self, row: list[int], wanted: list[float], weights: list[float]) -> list[float]:
        """The positions nearest to the wanted ones (least squares) that keep the order and the distances.

        Without the distances, positions must be ascending. Neighbours that violate this are pooled.
        """
        offsets = [0.0]
        for a, b in itertools.pairwise(row):
            thin = self.nodes[a].height == 0 and self.nodes[b].height == 0
            offsets.append(offsets[-1] + self.nodes[a].right + self.nodes[b].left + (0 if thin else GAP))
        pools: list[tuple[float, float, int]] = []  # sum of weighted places, sum of weights, members
        for place, weight, offset in zip(wanted, weights, offsets, strict=False):
            pools.append(((place - offset) * weight, weight, 1))
            while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
                (s1, w1, n1), (s2, w2, n2) = pools[-2:]
                pools[-2:] = [(s1 + s2, w1 + w2, n1 + n2)]
        ascending = [s / w for s, w, n in pools for _ in range(n)]
        return [place + offset for place, offset in zip(ascending, offsets, strict=False)]

    def result(self) -> Arrangement:
        heights = [max((self.nodes[n].height for n in row), default=0.0) for row in self.rows]
        tops, y = [], 0.0
        for height, row in zip(heights, self.rows, strict=True):
            tops.append(y)
            aside = max((abs(self.x[m] - self.x[n]) for n in row for m in self.below[n]), default=0.0)
            rise = min(MOST_RISE, max(RISE, STEEP * aside))
            y += height + rise
        middle = [tops[self.row[n]] + heights[self.row[n]] / 2 for n in range(len(self.nodes))]
        ends = self._ends()
        paths = []
        for number, chain in enumerate(self.chains):
            points = [(self.x[n], middle[n]) for n in chain]
            points[0] = (ends[number, True], middle[chain[0]] + self.nodes[chain[0]].height / 2)
            points[-1] = (ends[number, False], middle[chain[-1]] - self.nodes[chain[-1]].height / 2)
            up = self.upward[number]
            label = points[-2] if up else points[1]
            paths.append(LinkPath(points[::-1] if up else points, label, up))
        count = len(self.nodes) - sum(len(chain) - 2 for chain in self.chains)
        width = max((self.x[n] + self.nodes[n].right for n in range(len(self.nodes))), default=0.0)
        return Arrangement([(self.x[n], middle[n]) for n in range(count)], paths, width, max(0.0, y - RISE))

    def _ends(self) -> dict[tuple[int, bool], float]:
        """For each link and end (True: upper end), where it meets its box. Links at a box are side by side."""
        meeting: dict[tuple[int, bool], list[tuple[float, int]]] = {}
        for number, chain in enumerate(self.chains):
            meeting.setdefault((chain[0], True), []).append((self.x[chain[1]], number))
            meeting.setdefault((chain[-1], False), []).append((self.x[chain[-2]], number))
        ends = {}
        for (node, upper), found in meeting.items():
            half = min(self.nodes[node].left, self.nodes[node].right)
            step = min(16.0, 2 * half / (len(found) + 1))
            for i, (_, number) in enumerate(sorted(found)):
                ends[number, upper] = self.x[node] + step * (i - (len(found) - 1) / 2)
        return ends


def _closing(count: int, links: Sequence[Link]) -> list[bool]:
    """Which links close a cycle: links within a strongly connected component to a box that was discovered earlier."""
    component = _components(count, links)
    return [component[e.source] == component[e.target] and e.target < e.source for e in links]


def _components(count: int, links: Sequence[Link]) -> list[int]:
    """Strongly connected components (Kosaraju): for each node a representative."""
    forward: list[list[int]] = [[] for _ in range(count)]
    backward: list[list[int]] = [[] for _ in range(count)]
    for e in links:
        forward[e.source].append(e.target)
        backward[e.target].append(e.source)
    finished: list[int] = []
    seen = [False] * count
    for root in range(count):
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(forward[root]))]
        while stack:
            node, rest = stack[-1]
            following = next((n for n in rest if not seen[n]), None)
            if following is None:
                finished.append(stack.pop()[0])
            else:
                seen[following] = True
                stack.append((following, iter(forward[following])))
    component = [-1] * count
    for root in reversed(finished):
        reach = [root] if component[root] < 0 else []
        for node in reach:  # grows while it is read
            if component[node] < 0:
                component[node] = root
                reach += [n for n in backward[node] if component[n] < 0]
    return component


def _layers(count: int, downward: Sequence[tuple[int, int]]) -> list[int]:
    """For each node of an acyclic graph, the length of the longest path to it."""
    below: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for upper, lower in downward:
        below[upper].append(lower)
        waiting[lower] += 1
    layer = [0] * count
    ready = [n for n in range(count) if not waiting[n]]
    for node in ready:  # grows while it is read
        for lower in below[node]:
            layer[lower] = max(layer[lower], layer[node] + 1)
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    return layer
