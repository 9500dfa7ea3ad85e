"""A state graph as SVG: a box for each state with its changes, and arrows with the transitions.

Shapes carry the same information as colours, as in the space-time diagram. An arrow without source points to the
initial state. Terminal states have a double border, violations a thick border and a cross, states with successors
beyond the limit a dashed border. Every state is a group with `data-state`, every arrow a group with `data-from` and
`data-to`. Tooltips have all details.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

from plait.kernel.graph import Edge, State, StateGraph
from plait.report.markup import asset, diagram_styles, escape, shorten, text_width
from plait.report.state_graph import wording as states
from plait.report.state_graph.layout import Arrangement, Box, Link, LinkPath, Point, arrange
from plait.report.wording import plural, visible

MARGIN = 26.0
HEAD = 26.0
"""Height of a line of the heading."""
LINE = 13.0
PAD = 9.0
SMALL = 10.5
"""Font size of labels and details, as in the stylesheet."""
BOLD = 14.0
"""Font size of a plain text that is as wide as bold names."""
LOOP = 22.0
"""Width of a self-loop."""
_DETAILS = 9
_DETAIL_LENGTH = 46
_LABELS = 4
_LABEL_LENGTH = 34
_CROWDED = 12
"""If a layer has at least this number of outgoing arrows, labels have short names of processes."""


def graph_svg(graph: StateGraph, *, standalone: bool = True) -> str:
    """Draw a state graph. `standalone` adds what a separate file needs."""
    drawing = _Drawing(graph)
    w, h = _n(drawing.width), _n(drawing.height)
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    parts = [
        f'<svg{space} class="plait-diagram plait-graph" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img">',
        f"<title>{escape('State graph. ' + states.heading(graph))}</title>",
        f"<style>{diagram_styles()}{asset('state_graph.css')}</style>",
        f'<rect class="paper" width="{w}" height="{h}"/>',
        *drawing.heading(),
        *(drawing.arrow(number) for number in range(len(drawing.arrows))),
        *(drawing.state(state) for state in graph.states),
        *(drawing.label(number) for number in range(len(drawing.arrows))),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


@dataclasses.dataclass
class _Arrow:
    """All transitions from one state to another."""

    source: int
    target: int
    edges: list[Edge]


class _Drawing:
    def __init__(self, graph: StateGraph) -> None:
        self.graph = graph
        self.arrows: list[_Arrow] = []
        self.loops: dict[int, list[Edge]] = {}
        """For each state, the transitions that lead back to it, and those that fail."""
        by_pair: dict[tuple[int, int], _Arrow] = {}
        for edge in graph.edges:
            if edge.target is None or edge.target == edge.source:
                self.loops.setdefault(edge.source, []).append(edge)
            elif (edge.source, edge.target) in by_pair:
                by_pair[edge.source, edge.target].edges.append(edge)
            else:
                by_pair[edge.source, edge.target] = arrow = _Arrow(edge.source, edge.target, [edge])
                self.arrows.append(arrow)
        self.short = self._short_names()
        self.details = {s.number: self._details(s) for s in graph.states}
        boxes = [self._box(state) for state in graph.states]
        links = [Link(a.source - 1, a.target - 1, self._label_box(a.edges)) for a in self.arrows]
        self.half = [box.left for box in boxes]
        self.tall = [box.height for box in boxes]
        self.plan: Arrangement = arrange(boxes, links)
        self.said = self._heading()
        self.width = max(self.plan.width, *(text_width(line, size) for _, line, size in self.said)) + 2 * MARGIN
        self.left = (self.width - self.plan.width) / 2
        self.top = 14 + HEAD * len(self.said)
        self.height = self.top + self.plan.height + MARGIN

    # -- words and sizes ---------------------------------------------------------------------------------------------

    def _short_names(self) -> dict[str, str]:
        """Short names of the processes. Empty if full names are not too wide, or if two short names were equal."""
        depth = {state.number: state.depth for state in self.graph.states}
        layers: dict[int, int] = {}
        for arrow in self.arrows:
            layers[depth[arrow.source]] = layers.get(depth[arrow.source], 0) + 1
        names = list(self.graph.states[0].snapshot.fields)
        if max(layers.values(), default=0) < _CROWDED:
            return {}
        short = {name: "".join(c for c in name if c.isupper() or c.isdigit()) or name for name in names}
        return short if len(set(short.values())) == len(names) else {}

    def _said(self, line: str) -> str:
        """A line with short names, if they are used."""
        for name, short in self.short.items():
            for mark in (":", ".", " is"):
                line = line.replace(f"{name}{mark}", f"{short}{mark}", 1)
        return line

    def _details(self, state: State) -> list[str]:
        new = states.new(self.graph, state) or [f"without {line}" for line in states.gone(self.graph, state)]
        lines = [shorten(self._said(line), _DETAIL_LENGTH) for line in new]
        if len(lines) > _DETAILS:
            lines = [*lines[: _DETAILS - 1], f"… {len(lines) - _DETAILS + 1} more"]
        if state.hidden:
            lines.append(f"… {plural(state.hidden, 'hidden transition')}")
        return lines

    def _title(self, state: State) -> str:
        return "  ".join([state.name, *(shorten(m, _DETAIL_LENGTH) for m in states.marks(state))])

    def _box(self, state: State) -> Box:
        details = self.details[state.number]
        widths = [text_width(self._title(state), BOLD), *(text_width(line, SMALL) for line in details), 24.0]
        wide = max(widths) + 2 * PAD
        high = 18 + LINE * len(details) + PAD
        loops = self._labels(self.loops.get(state.number, []))
        beside = LOOP + 6 + max(text_width(line, SMALL) for line in loops) if loops else 0.0
        high = max(high, len(loops) * LINE + 4)
        return Box(wide / 2, wide / 2 + beside, high)

    def _labels(self, edges: list[Edge]) -> list[str]:
        """A line for transitions with the same text."""
        said = Counter(("✕ " if m.target is None else "") + self._said(states.edge_text(m)) for m in edges)
        lines = [shorten(line, _LABEL_LENGTH) + (f" ×{count}" if count > 1 else "") for line, count in said.items()]
        return lines if len(lines) <= _LABELS else [*lines[: _LABELS - 1], f"… {len(lines) - _LABELS + 1} more"]

    def _label_box(self, edges: list[Edge]) -> Box:
        lines = self._labels(edges)
        half = max(text_width(line, SMALL) for line in lines) / 2 + 2
        return Box(half, half, LINE * len(lines))

    # -- drawing -----------------------------------------------------------------------------------------------------

    def _at(self, point: Point) -> Point:
        return (point[0] + self.left, point[1] + self.top)

    def _heading(self) -> list[tuple[str, str, float]]:
        """The heading: the model and the size of the graph, what is left out, and the meaning of short names."""
        lines = [("heading", states.heading(self.graph), 15.0)]
        if (cut := states.missing(self.graph)) is not None:
            lines.append(("missing", cut, 13.0))
        if self.short:
            lines.append(("names", ", ".join(f"{s}: {visible(n)}" for n, s in self.short.items()), SMALL))
        return lines

    def heading(self) -> list[str]:
        """The lines above the drawing."""
        return [
            f'<text class="{kind}" x="{_n(MARGIN)}" y="{_n(HEAD * (i + 1))}">{escape(line)}</text>'
            for i, (kind, line, _) in enumerate(self.said)
        ]

    def state(self, state: State) -> str:
        """A box, with its self-loops beside it."""
        (x, y), half, tall = self._at(self.plan.places[state.number - 1]), *self._size(state.number)
        left, top = x - half, y - tall / 2
        kinds = ["state", *("terminal" for _ in range(state.terminal)), *("violating" for _ in state.violated[:1])]
        kinds += ["cut"] if state.hidden else []
        tip = "\n".join([f"{state.name}: {', '.join(states.marks(state)) or f'depth {state.depth}'}"]
                        + [f"an example of {visible(name)}" for name in state.examples]
                        + states.whole(self.graph, state))  # fmt: skip
        parts = [f'<g class="{" ".join(kinds)}" data-state="{state.number}"><title>{escape(tip)}</title>']
        if state.predecessor is None:
            parts.append(f'<path class="entry" d="M{_n(left - 20)} {_n(top + 14)} H{_n(left - 7)}"/>')
            parts.append(_tip((left, top + 14), (-1.0, 0.0), "entry-tip"))
        parts.append(_rect("box", left, top, 2 * half, tall))
        if state.terminal:
            parts.append(_rect("inner", left + 3, top + 3, 2 * half - 6, tall - 6))
        name, *marks = self._title(state).split("  ")
        spans = "".join(f'<tspan class="mark" dx="7">{escape(mark)}</tspan>' for mark in marks)
        first = top + 18
        parts.append(f'<text class="name" x="{_n(left + PAD)}" y="{_n(first)}">{escape(name)}{spans}</text>')
        for i, line in enumerate(self.details[state.number], start=1):
            arrival = " arrival" if line.startswith("→") else ""
            parts.append(
                f'<text class="detail{arrival}" x="{_n(left + PAD)}" y="{_n(first + 1 + LINE * i)}">{escape(line)}</text>'
            )
        return "".join([*parts, *self._loop(state.number, x + half, y), "</g>"])

    def _size(self, number: int) -> tuple[float, float]:
        return self.half[number - 1], self.tall[number - 1]

    def _loop(self, number: int, x: float, y: float) -> list[str]:
        edges = self.loops.get(number)
        if not edges:
            return []
        tip = escape("\n".join(states.edge_details(self.graph, edge) for edge in edges))
        parts = [f'<g class="arrow loop-back" data-from="{number}" data-to="{number}">']
        parts.append(f"<title>{tip}</title>")
        out = x + LOOP - 2
        if all(edge.target is None for edge in edges):
            parts.append(f'<path class="line dead-end" d="M{_n(x)} {_n(y)} H{_n(out - 2)}"/>')
        else:
            curve = [(x, y - 7), (out, y - 13), (out, y + 13), (x + 6, y + 7)]
            first, *rest = (f"{_n(a)} {_n(b)}" for a, b in curve)
            parts.append(f'<path class="line" d="M{first} C{" ".join(rest)}"/>')
            parts.append(_tip((x + 1, y + 6), (1.0, 0.25)))
        parts += _text(self._labels(edges), x + LOOP, y, "start")
        return [*parts, "</g>"]

    def arrow(self, number: int) -> str:
        """A curve with its tip. It is vertical where it passes a row."""
        arrow, way = self.arrows[number], self.plan.paths[number]
        points = [self._at(point) for point in way.points]
        (x, y), below = points[-1], 1.0 if way.upward else -1.0
        points[-1] = (x, y + below * 7)
        path = f"M{_n(points[0][0])} {_n(points[0][1])}"
        for (x1, y1), (x2, y2) in itertools.pairwise(points):
            half = (y1 + y2) / 2
            path += f" C{_n(x1)} {_n(half)} {_n(x2)} {_n(half)} {_n(x2)} {_n(y2)}"
        return (
            f'<g class="{self._kind(arrow, way)}" data-from="{arrow.source}" data-to="{arrow.target}">'
            f'<title>{escape(self._tooltip(arrow))}</title><path class="line" d="{path}"/>{_tip((x, y), (0.0, below))}</g>'
        )

    def _kind(self, arrow: _Arrow, way: LinkPath) -> str:
        fault = " fault" if all(edge.kind != "step" for edge in arrow.edges) else ""
        return f"arrow{' upward' if way.upward else ''}{fault}"

    def _tooltip(self, arrow: _Arrow) -> str:
        return "\n".join(states.edge_details(self.graph, edge) for edge in arrow.edges)

    def label(self, number: int) -> str:
        """The label of an arrow. Labels are drawn after all arrows, so that no arrow covers them."""
        arrow, way = self.arrows[number], self.plan.paths[number]
        x, y = self._at(way.label)
        box = self._label_box(arrow.edges)
        paper = (
            f'x="{_n(x - box.left)}" y="{_n(y - box.height / 2)}" width="{_n(2 * box.left)}" height="{_n(box.height)}"'
        )
        lines = f'<rect class="paper" {paper}/>' + "".join(_text(self._labels(arrow.edges), x, y, "middle"))
        kind = self._kind(arrow, way).replace("arrow", "label", 1)
        return f'<g class="{kind}" data-from="{arrow.source}"><title>{escape(self._tooltip(arrow))}</title>{lines}</g>'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _rect(kind: str, x: float, y: float, w: float, h: float) -> str:
    radius = 7 if kind == "box" else 4.5
    return f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" rx="{radius}"/>'


def _text(lines: list[str], x: float, y: float, anchor: str) -> list[str]:
    """Lines of text, centred at a point."""
    top = y - LINE * (len(lines) - 1) / 2 + 3.5
    return [
        f'<text class="edge-label{" failing" if line.startswith("✕") else ""}" x="{_n(x)}" y="{_n(top + LINE * i)}" '
        f'text-anchor="{anchor}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]


def _tip(tip: Point, tail: Point, kind: str = "tip") -> str:
    """An arrow head. `tail` is a point from which the arrow comes."""
    (x, y), (dx, dy) = tip, tail
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    dx, dy = dx / length * 8, dy / length * 8
    points = [tip, (x + dx - dy * 0.45, y + dy + dx * 0.45), (x + dx + dy * 0.45, y + dy - dx * 0.45)]
    return f'<path class="{kind}" d="M' + " L".join(f"{_n(a)} {_n(b)}" for a, b in points) + ' Z"/>'
