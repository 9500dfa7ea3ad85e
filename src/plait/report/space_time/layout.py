"""The geometry of the space-time diagram: lanes are columns, steps are rows, time goes down.

Time goes down because a run has many more steps than processes, and pages scroll down. Names of handlers are wide and
not high, so rows can be close together. There is one event per row, which leaves room for its label.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from plait.kernel.trace import Event, Sent, Trace
from plait.report.markup import shorten
from plait.report.space_time.flow import Journey, journeys
from plait.report.wording import event_label, message_text, sent_groups, visible

ROW = 38
HEAD = 44
"""Height of the names of the lanes at the top."""
TOP = HEAD + 22
"""Vertical position of the initial state."""
RADIUS = 5.0
BAR = 11.0
"""Distance between an event and the bar of its quorum transition, which is above it."""
LINE = 11.0
"""Height of a line of a label."""
SLOT = 8.0
"""Distance between the arrows that end in one bar."""
_CHARACTER = 6.3
"""An upper bound for the width of a character of a label."""
_SMALL_CHARACTER = 5.4
_LABEL_LIMIT = 24
_CAREFUL = 1000
"""In diagrams with more steps than this, labels may cover arrows."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclasses.dataclass(frozen=True)
class Arrow:
    """One line of a message: from the event that sent it to the event that took or lost it, or to an open end."""

    journey: Journey
    kind: str
    """delivered, redelivered, lost, dropped, copied, merged or pending."""
    start: Point
    end: Point
    to_step: int | None
    loops: bool = False
    """Whether sender and receiver are the same: then it is drawn as an arc beside the lane."""


@dataclasses.dataclass(frozen=True)
class Label:
    """The text beside an event, and its position."""

    lines: tuple[str, ...]
    x: float
    y: float
    """Baseline of the first line."""
    anchor: str


class Layout:
    """All coordinates of a diagram."""

    def __init__(self, trace: Trace, rows: Sequence[int] | None = None) -> None:
        self.trace = trace
        self.rows = range(len(trace.events) + 1) if rows is None else rows
        """For each step, its row. If two diagrams are side by side, some rows are empty."""
        names = [visible(lane.name) for lane in trace.lanes]
        longest = max((len(shorten(n, 18)) for n in names), default=6)
        self.spacing = max(104.0, longest * 7.2 + 26)
        self.left = 30.0 + 8 * len(str(len(trace.events))) + (26 if trace.loop is not None else 0)
        first = self.left + self.spacing / 2
        self.x = {lane.name: first + i * self.spacing for i, lane in enumerate(trace.lanes)}
        # If there is only one lane, its labels need room of their own.
        self.width = self.left + self.spacing * max(len(names), 1) + (90 if len(names) < 3 else 24)
        self.bottom = TOP + ROW * self.rows[-1] + 26
        self.height = self.bottom + 14
        self.arrows = self._arrows()

    @functools.cached_property
    def labels(self) -> list[Label]:
        """One label per event."""
        return [self._label(step, event) for step, event in enumerate(self.trace.events, start=1)]

    @functools.cached_property
    def _messages(self) -> dict[int, Sent]:
        return {m.id: m for m in self.trace.messages}

    @functools.cached_property
    def _passing(self) -> list[list[Arrow]]:
        """For each step, the arrows that pass through its row. A label is compared with these arrows only."""
        rows: list[list[Arrow]] = [[] for _ in range(self.rows[-1] + 1)]
        if len(rows) > _CAREFUL:
            return rows
        for arrow in self.arrows:
            top, bottom = ((p[1] - TOP) / ROW for p in (arrow.start, arrow.end))
            for row in range(max(0, int(top)), min(len(rows), int(bottom) + 3)):
                rows[row].append(arrow)
        return rows

    def y(self, step: int) -> float:
        """The vertical position of a step. Step 0 is the initial state."""
        return TOP + ROW * self.rows[step]

    def at(self, lane: str, step: int) -> Point:
        """A point on a lane. A lane that the trace does not list (the environment) is at the left margin."""
        return (self.x.get(lane, self.left), self.y(step))

    def event(self, step: int) -> Event | None:
        """The event of a step. None for the initial state."""
        return self.trace.events[step - 1] if step else None

    def _slots(self) -> dict[tuple[int, int], Point]:
        """For each (step, message): where its arrow ends in the bar of a quorum transition. So arrows do not cross."""
        found = {j.message.id: j for j in self.journeys}
        slots: dict[tuple[int, int], Point] = {}
        for step, event in enumerate(self.trace.events, start=1):
            if not is_quorum(event):
                continue
            x, y = self.at(event.lane, step)

            def slope(message: int, x: float = x, y: float = y) -> float:
                journey = found.get(message)
                if journey is None:
                    return 0.0
                sx, sy = self.at(journey.message.sender, journey.born)
                return (sx - x) / max(1.0, y - sy)

            ordered = sorted(event.consumed, key=slope)
            for i, message in enumerate(ordered):
                slots[step, message] = (x + SLOT * (i - (len(ordered) - 1) / 2), y - BAR)
        return slots

    def _arrows(self) -> list[Arrow]:
        self.journeys = journeys(self.trace)
        self.given_up = {i for mark in self.trace.marks for i in mark.lost}
        self.slots = self._slots()
        self.copies: dict[tuple[int, int], Point] = {}
        """For each (step, original): where on the line of the original the network made the copy."""
        arrows: list[Arrow] = []
        for journey in self.journeys:
            arrows += self._of(journey)
        return arrows

    def _of(self, journey: Journey) -> list[Arrow]:
        m = journey.message
        start = self.at(m.sender, journey.born)
        if m.sender not in self.x:
            start = (start[0], self.y(journey.born))
        if journey.copy_of is not None:
            start = self.copies.get((journey.born, journey.copy_of), start)
        result: list[Arrow] = []
        for count, step in enumerate(journey.deliveries):
            event = self.event(step)
            lane = event.lane if event else m.receiver
            end = self.slots.get((step, m.id), self.at(lane, step))
            kind = "redelivered" if count else "delivered"
            result.append(Arrow(journey, kind, start, end, step, loops=m.sender == lane and journey.copy_of is None))
        towards = 1 if self.x.get(m.receiver, 0.0) >= start[0] else -1
        if journey.lost is not None:
            x, y = self.at(m.receiver, journey.lost)
            result.append(Arrow(journey, "lost", start, (x - towards * 15, y), journey.lost))
        elif journey.dropped is not None and journey.dropped > journey.born:
            result.append(Arrow(journey, "dropped", start, self.at(m.receiver, journey.dropped), journey.dropped))
        elif journey.pending or journey.dropped is not None or journey.merged is not None:
            kind = "pending" if journey.pending else "dropped" if journey.merged is None else "merged"
            if m.id in self.given_up:
                kind = "lost"
            if not journey.deliveries:
                result.append(Arrow(journey, kind, start, self._stub(start, m.receiver), None))
        for step in journey.copied:
            # The copy is made on the line of the original if that is still in transit, else just before the receiver.
            line = next((a for a in result if a.to_step is None or a.to_step > step), None)
            x, y = self.at(m.receiver, step)
            point = (x - towards * 20, y)
            if line is None:
                result.append(Arrow(journey, "copied", start, point, step))
            elif line.to_step is not None and line.end[1] > line.start[1]:
                part = (y - line.start[1]) / (line.end[1] - line.start[1])
                point = (line.start[0] + part * (line.end[0] - line.start[0]), y)
            self.copies[step, m.id] = point
        return result

    def _stub(self, start: Point, receiver: str) -> Point:
        """The open end of a message that no step took: a short line towards its receiver."""
        x = self.x.get(receiver, start[0] + self.spacing)
        dx, dy = x - start[0], ROW * 0.8
        if dx == 0:
            return (start[0] + 22, start[1] + 18)
        scale = 36 / (dx * dx + dy * dy) ** 0.5
        return (start[0] + dx * scale, start[1] + dy * scale)

    def _label(self, step: int, event: Event) -> Label:
        """Put the label beside the event, inside the drawing, where it crosses the fewest arrows and lanes."""
        messages = self._messages
        main = event_label(event) or {"crash": "crash", "recover": "recovery"}.get(event.kind, "")
        if event.kind in ("lose", "duplicate"):
            taken = [messages[i] for i in event.consumed or event.sent if i in messages]
            main = {"lose": "lost", "duplicate": "duplicated"}[event.kind]
            lines = [main, *(message_text(m) for m in taken[:1])]
        else:
            groups = sent_groups(messages, event.sent)
            lines = [main] + [f"→ {content}" for _, content, _ in groups[:1]]
            if len(groups) > 1:
                lines[-1] = "→ " + ", ".join(content.split("(")[0] for _, content, _ in groups)
        lines = [shorten(line, _LABEL_LIMIT) for line in lines if line]
        wide = max((len(line) * (_SMALL_CHARACTER if i else _CHARACTER) for i, line in enumerate(lines)), default=0.0)
        high = LINE * len(lines)
        x, y = self.at(event.lane, step)
        gap = 11.0 + (SLOT * len(event.consumed) / 2 if is_quorum(event) else 0)
        spawned = [((x, y), self.at(child, step)) for child in event.spawned if child in self.x]
        choices: list[tuple[float, Label]] = []
        for side, left_cost in ((1, 0.0), (-1, 0.4)):
            # Above the event, so that it does not cover what the event sends; or at the same height.
            for top, level_cost in ((y - 2 - high, 0.1), (y - high / 2, 0.0)):
                near = x + side * gap
                low = near if side > 0 else near - wide
                box = (low, top, low + wide, top + high)
                cost = self._cost(step, box, spawned) + left_cost + level_cost
                choices.append((cost, Label(tuple(lines), near, top + 9.5, "start" if side > 0 else "end")))
        return min(choices, key=lambda choice: choice[0])[1]

    def _cost(self, step: int, box: Box, more: list[tuple[Point, Point]]) -> float:
        left, _, right, _ = box
        cost = 100.0 if left < self.left or right > self.width else 0.0
        cost += sum(0.3 for x in self.x.values() if left < x < right)
        lines = [
            (a.start, a.end, 2.0 if a.to_step is None else 1.0) for a in self._passing[self.rows[step]] if not a.loops
        ]
        lines += [(start, end, 1.0) for start, end in more]
        # An arc of a process to itself is close to its lane, on the right. A narrow box approximates it.
        arcs = [a for a in self._passing[self.rows[step]] if a.loops]
        cost += sum(1.0 for a in arcs if _crosses((a.start[0] + 20, a.start[1]), (a.end[0] + 20, a.end[1] + 4), box))
        # An open end is so short that a label would hide all of it.
        return cost + sum(weight for start, end, weight in lines if _crosses(start, end, box))


def is_quorum(event: Event) -> bool:
    """Whether the event takes several messages."""
    return event.kind in ("step", "recover") and len(event.consumed) > 1


def _crosses(start: Point, end: Point, box: Box) -> bool:
    """Whether the line passes through the box (clipping by Liang and Barsky)."""
    left, top, right, bottom = box
    dx, dy = end[0] - start[0], end[1] - start[1]
    enter, leave = 0.0, 1.0
    for p, q in ((-dx, start[0] - left), (dx, right - start[0]), (-dy, start[1] - top), (dy, bottom - start[1])):
        if p == 0:
            if q < 0:
                return False
        elif p < 0:
            enter = max(enter, q / p)
        else:
            leave = min(leave, q / p)
    return enter < leave
