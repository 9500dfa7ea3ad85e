"""The space-time diagram of a trace as SVG: a lane per process, time downwards, an arrow per message.

Shapes carry the same information as colours, so that a print without colour is readable: lost messages end in a cross,
pending messages are dotted and end in a ring, copies start at a plus, and a quorum transition collects its arrows in a
bar. Every event is a group with `data-step`, every message a group with `data-from` and `data-to`. The viewer uses them
to highlight parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.kernel.trace import Event, Trace
from plait.report.markup import diagram_styles, escape, shorten
from plait.report.space_time.flow import accesses, lane_status
from plait.report.space_time.layout import BAR, HEAD, LINE, RADIUS, ROW, Arrow, Label, Layout, is_quorum
from plait.report.space_time.routing import Point, Route, rounded, shortened, toward
from plait.report.wording import access_lines, idle_steps, message_text, plural, trace_heading, visible


def space_time(
    trace: Trace,
    *,
    standalone: bool = True,
    rows: Sequence[float] | None = None,
    marked: Mapping[int, str] | None = None,
    heading: str | None = None,
) -> str:
    """Draw a trace. `standalone` adds what a separate file needs; a page that embeds the drawing does not need it.

    `rows` has the row of each step, if some rows stay empty. `marked` has classes for highlighted events. `heading` is
    the title of the trace.
    """
    return drawing(Layout(trace, rows), standalone=standalone, marked=marked, heading=heading)


def drawing(
    layout: Layout,
    *,
    standalone: bool,
    marked: Mapping[int, str] | None = None,
    heading: str | None = None,
    dark: bool = True,
) -> str:
    """Draw a trace whose layout is known. With `dark`, the drawing is dark if the reader prefers this."""
    trace = layout.trace
    idle = {i + 1 for i in idle_steps(trace)}
    w, h = _n(layout.width), _n(layout.height)
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    parts = [
        f'<svg{space} class="plait-diagram" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img">',
        f"<title>{escape('Space-time diagram. ' + (heading or trace_heading(trace)))}</title>",
        f"<style>{diagram_styles(dark=dark)}</style>",
        f'<rect class="paper" width="{w}" height="{h}"/>',
        *_rows(layout),
        *_lanes(layout),
        *_loop(layout),
        *_marks(layout),
        *_spawns(layout),
        *_accesses(layout),
        *(_arrow(arrow, bool(idle & {arrow.journey.born, arrow.to_step})) for arrow in layout.arrows),
        *_initial(layout),
        *(
            _event(layout, step, event, (marked or {}).get(step, "idle" if step in idle else ""))
            for step, event in enumerate(trace.events, start=1)
        ),
        *_heads(layout),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _rows(layout: Layout) -> list[str]:
    """A band for each step. It marks the current step, and can be clicked."""
    rows = []
    for step in range(len(layout.trace.events) + 1):
        y = layout.y(step)
        top = y - ROW / 2
        rows.append(
            f'<g class="row" data-step="{step}">'
            f'<rect x="0" y="{_n(top)}" width="{_n(layout.width)}" height="{ROW}"/>'
            f'<text x="{_n(layout.left - 8)}" y="{_n(y + 4)}" text-anchor="end">{step}</text></g>'
        )
    return rows


def _lanes(layout: Layout) -> list[str]:
    """Each lane as segments of equal status: solid if it runs, dashed if it is down, nothing before it is created."""
    status = lane_status(layout.trace)
    lines = []
    for lane in layout.trace.lanes:
        x = layout.x[lane.name]
        start, current = float(HEAD), status[0].get(lane.name, "running")
        for step in range(1, len(status) + 1):
            now = status[step].get(lane.name, "running") if step < len(status) else None
            if now != current:
                end = layout.y(step) if now is not None else layout.bottom
                lines.append(
                    f'<line class="lane {escape(current)}" data-lane="{escape(lane.name)}" '
                    f'x1="{_n(x)}" y1="{_n(start)}" x2="{_n(x)}" y2="{_n(end)}"/>'
                )
                start, current = end, now or current
    return lines


def _heads(layout: Layout) -> list[str]:
    """The names of the lanes, last, so that nothing covers them. They are a group, which the viewer keeps visible."""
    parts = ['<g class="heads">', f'<rect class="paper" width="{_n(layout.width)}" height="{HEAD - 6}"/>']
    for lane in layout.trace.lanes:
        x, name = layout.x[lane.name], visible(lane.name)
        wide = layout.spacing - 12
        parts.append(
            f'<g class="head" data-lane="{escape(lane.name)}"><title>{escape(f"{name}: {visible(lane.role)}")}</title>'
            f'<rect x="{_n(x - wide / 2)}" y="8" width="{_n(wide)}" height="26" rx="6"/>'
            f'<text x="{_n(x)}" y="25" text-anchor="middle">{escape(shorten(name, 18))}</text></g>'
        )
    return [*parts, "</g>"]


def _loop(layout: Layout) -> list[str]:
    """A bracket on the left around the steps that repeat, with an arrow back to the first step."""
    loop = layout.trace.loop
    if loop is None:
        return []
    top, bottom, x = layout.y(loop + 1) - ROW / 2 + 4, layout.y(len(layout.trace.events)) + ROW / 2 - 4, 18.0
    middle = (top + bottom) / 2
    return [
        f'<g class="loop"><title>Steps {loop + 1} to {len(layout.trace.events)} repeat for ever</title>'
        f'<path d="M{x + 10} {_n(bottom)} H{x} V{_n(top)} H{x + 10}"/>'
        f'<path class="tip" d="M{x + 5} {_n(top - 4)} L{x + 13} {_n(top)} L{x + 5} {_n(top + 4)} Z"/>'
        f'<text x="{x - 5}" y="{_n(middle)}" text-anchor="middle" '
        f'transform="rotate(-90 {x - 5} {_n(middle)})">repeats</text></g>'
    ]


def _marks(layout: Layout) -> list[str]:
    """For each mark, a horizontal line with its label."""
    parts = []
    x = 34 if layout.trace.loop is not None else 4
    for label, top in layout.boundaries():
        parts.append(
            f'<g class="boundary"><line x1="0" y1="{_n(top + 4)}" x2="{_n(layout.width)}" y2="{_n(top + 4)}"/>'
            f'<text x="{x}" y="{_n(top + 15)}">{escape(label)}</text></g>'
        )
    return parts


def _spawns(layout: Layout) -> list[str]:
    parts = []
    for step, event in enumerate(layout.trace.events, start=1):
        for child in event.spawned:
            if child not in layout.x or child == event.lane:
                continue
            (x, y), (cx, _) = layout.at(event.lane, step), layout.at(child, step)
            side = 1 if cx > x else -1
            parts.append(
                f'<g class="spawn" data-step="{step}"><title>{escape(f"spawns {visible(child)}")}</title>'
                f'<line x1="{_n(x + side * RADIUS)}" y1="{_n(y)}" x2="{_n(cx - side * 5)}" y2="{_n(y)}"/>'
                f'<rect x="{_n(cx - 5)}" y="{_n(y - 5)}" width="10" height="10"/></g>'
            )
    return parts


def _accesses(layout: Layout) -> list[str]:
    """A line from an event to the lane of each shared object that it uses: to a ring if it reads, to a disc if it writes."""
    parts = []
    for step, event in enumerate(layout.trace.events, start=1):
        for lane, how in accesses(layout.trace, event).items():
            (x, y), (sx, _) = layout.at(event.lane, step), layout.at(lane, step)
            side = 1 if sx > x else -1
            names = [*event.changed, *event.read] if how == "writes" else event.read
            known = access_lines(layout.trace, event, lane)
            used = ", ".join(known or dict.fromkeys(visible(n) for n in names if n.startswith(f"{lane}.")))
            label = layout.value_label(step, lane)
            fill = "var(--d-loop)" if how == "writes" else "var(--d-paper)"
            parts.append(
                f'<g class="access {how}" data-step="{step}"><title>{escape(f"{how} {used}")}</title>'
                f'<line x1="{_n(x + side * RADIUS)}" y1="{_n(y)}" x2="{_n(sx - side * 4)}" y2="{_n(y)}" '
                'style="stroke:var(--d-loop);stroke-width:1;stroke-dasharray:1.5 3"/>'
                f'<circle cx="{_n(sx)}" cy="{_n(y)}" r="4" style="fill:{fill};stroke:var(--d-loop);stroke-width:1.6"/>'
                f"{'' if label is None else _values(label)}</g>"
            )
    return parts


def _values(label: Label) -> str:
    """What a step reads and writes, with values."""
    return "".join(
        f'<text class="value" x="{_n(label.x)}" y="{_n(label.y + LINE * i)}">{escape(line)}</text>'
        for i, line in enumerate(label.lines)
    )


def _tip(tip: Point, tail: Point) -> str:
    """An arrow head as a separate path. Markers need ids, which would not be unique in a page with two diagrams."""
    base = toward(tip, tail, 9)
    dx, dy = (tip[0] - base[0]) / 9 * 3.6, (tip[1] - base[1]) / 9 * 3.6
    points = [tip, (base[0] - dy, base[1] + dx), (base[0] + dy, base[1] - dx)]
    return '<path class="tip" d="M' + " L".join(map(_points, points)) + ' Z"/>'


def _cross(x: float, y: float, size: float) -> str:
    a, b, c, d = _n(x - size), _n(x + size), _n(y - size), _n(y + size)
    return f'<path class="cross" d="M{a} {c} L{b} {d} M{a} {d} L{b} {c}"/>'


def _arrow(arrow: Arrow, idle: bool) -> str:
    m = arrow.journey.message
    to = "" if arrow.to_step is None else f' data-to="{arrow.to_step}"'
    kind = f"{arrow.kind} idle" if idle else arrow.kind
    said = f"#{m.id} {message_text(m)} from {visible(m.sender)} to {visible(m.receiver)}"
    what = {
        "pending": ", still pending",
        "lost": ", lost",
        "dropped": ", dropped",
        "redelivered": ", delivered again",
        "merged": ", merged with an equal pending message",
    }
    parts = [
        f'<g class="message {kind}" data-message="{m.id}" data-from="{arrow.journey.born}"{to}>',
        f"<title>{escape(said + what.get(arrow.kind, ''))}</title>",
    ]
    delivered = arrow.kind.endswith("delivered")
    last = len(arrow.routes) - 1
    for number, route in enumerate(arrow.routes):
        from_plus = number > 0 or arrow.journey.copy_of is not None
        room = (
            RADIUS + 1
            if number == last and delivered
            else 0
            if number == last and arrow.kind != "copied"
            else RADIUS + 2
        )
        shown = shortened(route, RADIUS + (2 if from_plus else 0), room)
        parts.append(_line(shown))
    end, before = shown.points[-1], shown.points[-2]
    if delivered:
        parts.append(_tip(end, before))
    elif arrow.kind in ("pending", "merged"):
        parts.append(f'<circle class="open" cx="{_n(end[0])}" cy="{_n(end[1])}" r="3.2"/>')
    elif arrow.kind in ("dropped", "lost") and arrow.to_step is None:
        parts.append(_cross(*end, 3.5))
    if arrow.kind == "redelivered":
        parts.append(_plus(*toward(arrow.end, before, 24)))
    return "".join([*parts, "</g>"])


def _line(route: Route) -> str:
    """A line, a curve, or a path with rounded corners."""
    first, *others = route.points
    if route.kind == "straight":
        (x1, y1), (x2, y2) = route.points
        return f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"/>'
    if route.kind == "curve":
        drawn = f"{'Q' if len(others) == 2 else 'C'}{_points(*others)}"
    else:
        drawn = "".join(f"L{_points(a)} Q{_points(corner, b)} " for a, corner, b in rounded(route.points))
        drawn += f"L{_points(others[-1])}"
    return f'<path class="arc" d="M{_points(first)} {drawn}"/>'


def _points(*points: Point) -> str:
    return " ".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _plus(x: float, y: float) -> str:
    return (
        f'<g class="copy"><circle cx="{_n(x)}" cy="{_n(y)}" r="6"/>'
        f'<path d="M{_n(x - 3.5)} {_n(y)} H{_n(x + 3.5)} M{_n(x)} {_n(y - 3.5)} V{_n(y + 3.5)}"/></g>'
    )


def _initial(layout: Layout) -> list[str]:
    """A small ring for messages that are pending in the initial state."""
    senders = {a.journey.message.sender for a in layout.arrows if a.journey.born == 0}
    points = [layout.at(s, 0) for s in sorted(senders) if s in layout.x]
    return [f'<circle class="origin" cx="{_n(x)}" cy="{_n(y)}" r="{RADIUS - 1}"/>' for x, y in points]


def _event(layout: Layout, step: int, event: Event, mark: str) -> str:
    x, y = layout.at(event.lane, step)
    parts = [
        f'<g class="event {event.kind}{f" {mark}" if mark else ""}" data-step="{step}" data-lane="{escape(event.lane)}">',
        f"<title>{escape(f'Step {step}: {visible(event.lane)} {visible(event.label)}')}</title>",
    ]
    if event.kind == "crash":
        parts.append(_cross(x, y, 7))
    elif event.kind == "tick" and event.lane not in layout.x:  # of all processes: a line across all lanes
        parts.append(f'<path class="tick" d="M{_n(x)} {_n(y)} H{_n(max(layout.x.values(), default=x))}"/>')
    elif event.kind == "lose":
        lost = [a.end for a in layout.arrows if a.kind == "lost" and a.to_step == step]
        parts += [_cross(*end, 5) for end in lost or [(x, y)]]
    elif event.kind == "duplicate":
        points = [point for (at, _), point in layout.copies.items() if at == step]
        parts += [_plus(*point) for point in points or [(x, y)]]
    else:
        if is_quorum(event):
            half, _ = layout.bar(event)
            parts.append(
                f'<g class="quorum"><title>{escape(plural(len(event.consumed), "message") + " taken at once")}</title>'
                f'<path d="M{_n(x - half)} {_n(y - BAR + 4)} H{_n(x + half)} M{_n(x)} {_n(y - BAR + 4)} V{_n(y)}"/></g>'
            )
        parts.append(f'<circle class="mark" cx="{_n(x)}" cy="{_n(y)}" r="{RADIUS}"/>')
    return "".join([*parts, _label(layout.labels[step - 1]), "</g>"])


def _label(label: Label) -> str:
    spans = [
        f'<text class="{"does" if i == 0 else "sends"}" x="{_n(label.x)}" y="{_n(label.y + LINE * i)}" '
        f'text-anchor="{label.anchor}">{escape(line)}</text>'
        for i, line in enumerate(label.lines)
    ]
    return "".join(spans)
