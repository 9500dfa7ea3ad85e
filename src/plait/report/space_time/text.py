"""The space-time drawing for a terminal: a column per lane, a row per step, message numbers at both ends of an arrow.

A send is a line from the sender to each receiver, with the number of the message at the head. The step that takes the
message shows the same number after its mark. The line is drawn in the row of the send: delivery is later.
"""

from __future__ import annotations

import re

from plait.kernel.trace import Event, Trace
from plait.report.markup import shorten
from plait.report.space_time.flow import accesses, lane_status
from plait.report.wording import access_lines, mark_texts, place_text, plural, visible

_MARKS = {"step": "●", "lose": "×", "duplicate": "+", "crash": "X", "recover": "○", "tick": "◦"}
_ACCESSES = {"reads": "◇", "writes": "◆"}
_LEGEND = {
    "lose": "× lost",
    "duplicate": "+ duplicated",
    "crash": "X crashed",
    "recover": "○ recovered",
    "tick": "◦ tick",
}
_REST = {"crashed": "┊", "down": "┊", "unborn": " "}
_LEAST_COLUMN = 7
_LEAST_LABEL = 8
_LONGEST_ACCESS = 32
_GAP = 2


def draw(trace: Trace, width: int, hidden: range = range(0)) -> list[str]:
    """The rows of the drawing, without those of hidden steps. Empty if it does not fit, or if there is nothing to draw."""
    if not trace.events or not trace.lanes:
        return []
    full = [visible(lane.name) for lane in trace.lanes]
    gutter = len(str(len(trace.events))) + 5
    values = [_values(trace, lane.name) for lane in trace.lanes]
    for names, room in ((full, values), (full, [0] * len(full)), (_short(full), [0] * len(full))):
        columns = [max(_LEAST_COLUMN, len(name) + _GAP, wide + _GAP) for name, wide in zip(names, room, strict=True)]
        if gutter + sum(columns) <= width:
            return _rows(trace, names, columns, gutter, width, hidden)
    return []


def _values(trace: Trace, lane: str) -> int:
    """The width of what steps read and write on the lane of a shared object, with its mark."""
    return max((len(_access(trace, event, lane)) + 2 for event in trace.events), default=0)


def _access(trace: Trace, event: Event, lane: str) -> str:
    """What a step reads and writes on the lane of a shared object. Empty if this is not known."""
    return shorten(", ".join(access_lines(trace, event, lane)), _LONGEST_ACCESS)


def _short(names: list[str]) -> list[str]:
    """The capitals and digits of names (`LockServer10` → `LS10`). The full names, if two short names were equal."""
    short = ["".join(re.findall(r"[A-Z]|\d+", name)) or name for name in names]
    return short if len(set(short)) == len(short) else names


def _rows(trace: Trace, names: list[str], columns: list[int], gutter: int, width: int, hidden: range) -> list[str]:
    at = {lane.name: gutter + sum(columns[:i]) for i, lane in enumerate(trace.lanes)}
    right = gutter + sum(columns)
    status = lane_status(trace)
    messages = {m.id: m for m in trace.messages}
    rows = [" " * gutter + "".join(f"{name:<{w}}" for name, w in zip(names, columns, strict=True))]

    marks = mark_texts(trace)
    for step, event in enumerate(trace.events, start=1):
        if step in hidden:
            if step == hidden.start:
                rows.append(f"{'⋮':>{gutter - 2}}  {plural(len(hidden), 'step')} not shown")
            continue
        for label, *_ in marks.get(step - 1, []):
            rows.append(f"{' ' * (gutter - 2)}── {label} ──"[:width])
        row = [" "] * right
        for lane in trace.lanes:
            # If a process crashes or recovers in this step, its mark shows it. So the line follows the state before.
            row[at[lane.name]] = _REST.get(status[step - 1].get(lane.name, ""), "│")
        loop = " "
        if trace.loop is not None and step > trace.loop:
            loop = "┌" if step == trace.loop + 1 else "└" if step == len(trace.events) else "│"
            if trace.loop + 1 == len(trace.events):
                loop = "["
        number = f" {loop} {step:>{gutter - 5}}"
        row[: len(number)] = number
        own = at.get(event.lane)
        if own is not None:
            _draw_event(
                row, own, event, {i: at.get(messages[i].receiver) for i in event.sent if i in messages}, columns
            )
        elif event.kind == "tick":  # of all processes
            row[gutter:right] = ["┼" if row[i] != " " else "─" for i in range(gutter, right)]
        for shared, how in accesses(trace, event).items():
            row[at[shared]] = _ACCESSES[how]
            column = columns[[lane.name for lane in trace.lanes].index(shared)]
            said = shorten(f" {_access(trace, event, shared)}", column - _GAP + 1).rstrip()
            row[at[shared] + 1 : at[shared] + 1 + len(said)] = said
        room = width - right - 1
        label = "  ".join(filter(None, (place_text(event), visible(event.label))))
        if room >= _LEAST_LABEL:
            label = label if len(label) <= room else label[: room - 1] + "…"
            row += [" ", *label]
        rows.append("".join(row).rstrip())

    used = {event.kind for event in trace.events if event.lane in at}
    legend = ["● step", *(word for kind, word in _LEGEND.items() if kind in used)]
    objects = any(lane.shared for lane in trace.lanes)
    legend[1:1] = ["◇ reads", "◆ writes"] if objects else []
    if trace.messages or not objects:
        legend[1:1] = ["▶n ◀n message n sent", "◂n taken"]
    rows.append("")
    rows.append(" " * gutter + "   ".join(legend))
    if len(rows[-1]) > width:
        rows[-2:] = []
    return rows


def _draw_event(row: list[str], own: int, event: Event, targets: dict[int, int | None], columns: list[int]) -> None:
    """The mark, the numbers of messages taken, and a line to every receiver. Numbers are drawn over lines."""
    # A copy appears at the receiver, which is the lane of the event itself. So there is no line.
    heads = {i: x for i, x in targets.items() if x is not None and x != own}
    for x in heads.values():
        low, high = min(own, x), max(own, x)
        for i in range(low + 1, high):
            row[i] = "┼" if row[i] in "│┊┼" else "─"
    for x in set(heads.values()):
        row[x] = "▶" if x > own else "◀"
    room = min(columns) - 2
    for x in set(heads.values()):
        _number(row, x, "", [i for i, target in heads.items() if target == x], room)
    row[own] = _MARKS[event.kind]
    if event.kind in ("lose", "duplicate"):
        _number(row, own, "", event.consumed or event.sent, room)
    elif event.consumed:
        _number(row, own, "◂", event.consumed, room)


def _number(row: list[str], x: int, prefix: str, ids: list[int], room: int) -> None:
    said = prefix + ",".join(map(str, ids))
    if len(said) > room:
        said = f"{prefix}({len(ids)})"
    row[x + 1 : x + 1 + len(said)] = said
