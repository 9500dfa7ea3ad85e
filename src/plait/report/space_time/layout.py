"""The geometry of the space-time diagram: lanes are columns, steps are rows, time goes down.

Time goes down because a run has many more steps than processes, and pages scroll down. Names of handlers are wide and
not high, so rows can be close together. There is one event per row, which leaves room for its label. The labels of
boundaries (rounds) have bands of their own between rows.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

from plait.kernel.trace import Event, Sent, Trace
from plait.report.markup import shorten, text_width
from plait.report.space_time.flow import Journey, accesses, journeys
from plait.report.space_time.routing import CLEAR, NEAR, Mark, Point, Route, Router, distance, toward
from plait.report.wording import access_lines, event_label, message_text, place_text, sent_groups, visible

ROW = 38
HEAD = 44
"""Height of the names of the lanes at the top."""
TOP = HEAD + 22
"""Vertical position of the initial state."""
RADIUS = 5.0
BAR = 11.0
"""Distance between an event and the ends of the arrows of its quorum transition, which are above it."""
BAND = 22
"""Height of the label of a boundary between rows."""
LINE = 11.0
"""Height of a line of a label."""
TEXT, SMALL_TEXT = 11.0, 9.5
"""Sizes of the lines of a label: the first one, the others."""
_SLOT = 8.0
"""Distance between the arrows that end in one bar."""
_STUB = 36.0
"""Length of a message that no step took."""
_STUB_ANGLES = (16, 12, 20, 24, 8, 28, 32, 36, 40, 44, 48, 52)
"""Its slope in degrees: the best first."""
_LABEL_LIMIT = 24
_MOST_VALUES = 3
"""A step shows at most this many lines beside the lane of a shared object: a row has room for no more."""
_BOLD = 1.1
"""How much wider bold text is."""
_HALO = 4.0
"""Labels hide what is behind them, with this margin."""
_CAREFUL = 1000
"""In diagrams with more steps than this, labels may cover arrows, and arrows are not curved."""

Segment = tuple[Point, Point]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclasses.dataclass(frozen=True)
class Arrow:
    """One line of a message: from the event that sent it to the event that took or lost it, or to an open end."""

    journey: Journey
    kind: str
    """delivered, redelivered, lost, dropped, copied, merged or pending."""
    routes: tuple[Route, ...]
    """The line. It has several parts if the network copied the message on its way."""
    to_step: int | None
    own: frozenset[tuple[str, object]] = frozenset()
    """The events that the line may touch."""

    @property
    def start(self) -> Point:
        return self.routes[0].points[0]

    @property
    def end(self) -> Point:
        return self.routes[-1].points[-1]

    @functools.cached_property
    def segments(self) -> list[tuple[Point, Point]]:
        """The line as straight segments."""
        return [segment for route in self.routes for segment in itertools.pairwise(route.flat())]


@dataclasses.dataclass(frozen=True)
class Label:
    """The text beside an event, and its position."""

    lines: tuple[str, ...]
    x: float
    y: float
    """Baseline of the first line."""
    anchor: str
    wide: float

    @property
    def box(self) -> Box:
        """The rectangle of the text."""
        left = self.x if self.anchor == "start" else self.x - self.wide
        top = self.y - 9.5
        return (left, top, left + self.wide, top + LINE * len(self.lines))


def rows_with_bands(places: Sequence[int], bands: Sequence[int]) -> list[float]:
    """The row of each step, if it is at this place, with room for the labels of boundaries.

    `bands` has the places before which there is a boundary, once for each boundary.

    >>> [round(row, 2) for row in rows_with_bands([0, 1, 2], [2])]
    [0.0, 1.0, 2.58]
    """
    ordered = sorted(bands)
    return [place + bisect.bisect_right(ordered, place) * BAND / ROW for place in places]


class Layout:
    """All coordinates of a diagram."""

    def __init__(self, trace: Trace, rows: Sequence[float] | None = None) -> None:
        self.trace = trace
        steps = len(trace.events)
        bands = [mark.before + 1 for mark in trace.marks]
        self.rows = rows_with_bands(range(steps + 1), bands) if rows is None else rows
        """For each step, its row. If two diagrams are side by side, some rows are empty."""
        names = [visible(lane.name) for lane in trace.lanes]
        longest = max((len(shorten(n, 18)) for n in names), default=6)
        self.spacing = max(104.0, longest * 7.2 + 26)
        self.left = 30.0 + 8 * len(str(steps)) + (26 if trace.loop is not None else 0)
        first = self.left + self.spacing / 2
        self.x = {lane.name: first + i * self.spacing for i, lane in enumerate(trace.lanes)}
        self.texts = [self._text(event) for event in trace.events]
        # The labels of the last lane need room of their own.
        last = trace.lanes[-1].name if trace.lanes else ""
        widest = max((text_wide(t) for t, e in zip(self.texts, trace.events, strict=True) if e.lane == last), default=0)
        room = max(24.0, min(96.0, widest + 16 - self.spacing / 2))
        self.values = {
            (step, lane): values
            for step, event in enumerate(trace.events, start=1)
            for lane in accesses(trace, event)
            if (values := self._values(event, lane))
        }
        """For each step and shared object that it uses: what it reads and writes, with values, on the right of the lane."""
        widest = max((_values_wide(lines) for (_, lane), lines in self.values.items() if lane == last), default=0.0)
        room = max(room, widest + 16 - self.spacing / 2)
        self._right = self.left + self.spacing * max(len(names), 1) + room
        self.bottom = self.y(steps) + 26 + BAND * sum(mark.before == steps for mark in trace.marks)
        self.height = self.bottom + 14
        self.journeys = journeys(trace)
        self.given_up = {i for mark in trace.marks for i in mark.lost}
        self.copies = {(step, j.message.id): self._beside(j, step, NEAR) for j in self.journeys for step in j.copied}
        """For each (step, original): where the network made the copy."""
        self.marks = self._marks()
        self.arrows = self._arrows()

    @functools.cached_property
    def width(self) -> float:
        """The width of the drawing, with all labels."""
        return max([self._right, *(label.box[2] + 4 for label in self.labels)])

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
        rows: list[list[Arrow]] = [[] for _ in self.rows]
        if len(rows) > _CAREFUL:
            return rows
        heights = [self.y(step) for step in range(len(rows))]
        for arrow in self.arrows:
            top, bottom = sorted((arrow.start[1], arrow.end[1]))
            for row in range(bisect.bisect_left(heights, top - ROW), bisect.bisect_right(heights, bottom + ROW)):
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

    def boundaries(self) -> list[tuple[str, float]]:
        """For each boundary, its label and the top of its band, which is directly above the row after it."""
        steps = len(self.trace.events)
        found = []
        for before, group in itertools.groupby(self.trace.marks, key=lambda mark: mark.before):
            marks = list(group)
            below = self.y(before + 1) - ROW / 2 if before < steps else self.y(steps) + ROW / 2 + BAND * len(marks)
            found += [(visible(m.label), below - BAND * (len(marks) - i)) for i, m in enumerate(marks)]
        return found

    def bar(self, event: Event) -> tuple[float, float]:
        """Half the width of the bar of a quorum transition, and the distance between its arrows."""
        gaps = max(1, len(event.consumed) - 1)
        slot = min(_SLOT, 2 * NEAR / gaps)
        return slot * gaps / 2 + 5, slot

    def _beside(self, journey: Journey, step: int, before: float) -> Point:
        """A point on the way of a message, this far before its receiver."""
        m = journey.message
        x, y = self.at(m.receiver, step)
        return (x - before if self.x.get(m.sender, self.left) < x else x + before, y)

    def _marks(self) -> list[Mark]:
        """Everything that a reader may take for the end of an arrow."""
        lost: dict[int, list[Point]] = {}
        for journey in self.journeys:
            if journey.lost is not None:
                lost.setdefault(journey.lost, []).append(self._beside(journey, journey.lost, 15))
        marks = [
            Mark(*self.at(sender, 0), ("sender", sender))
            for sender in sorted({j.message.sender for j in self.journeys if j.born == 0})
            if sender in self.x
        ]
        for step, event in enumerate(self.trace.events, start=1):
            x, y = self.at(event.lane, step)
            points = [(x, y)]
            if event.kind == "lose":
                points = lost.get(step, points)
            elif event.kind == "duplicate":
                points = [point for (at, _), point in self.copies.items() if at == step] or points
            elif is_quorum(event):
                half, _ = self.bar(event)
                points += [(x + shift, y - BAR + 4) for shift in (-half, 0, half)]
            marks += [Mark(*point, ("event", step)) for point in points]
            marks += [Mark(*self.at(child, step), ("spawn", child)) for child in event.spawned if child in self.x]
            marks += [Mark(*self.at(lane, step), ("access", step)) for lane in accesses(self.trace, event)]
        return marks

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

            ordered, (_, slot) = sorted(event.consumed, key=slope), self.bar(event)
            for i, message in enumerate(ordered):
                slots[step, message] = (x + slot * (i - (len(ordered) - 1) / 2), y - BAR)
        return slots

    def _arrows(self) -> list[Arrow]:
        heights = [self.y(step) for step in range(len(self.rows))]
        self.router = Router(self.marks, heights, ROW / 2, self._middle, careful=len(heights) <= _CAREFUL)
        self.slots = self._slots()
        arrows = [arrow for journey in self.journeys for arrow in self._of(journey)]
        return arrows + self._stubs(arrows)

    def _middle(self, x: float, side: int) -> float:
        """The middle between two lanes that is next to x on a side. The margins count as middles."""
        number = (x - self.left) / self.spacing
        return self.left + self.spacing * (math.ceil(number - 1e-6) if side > 0 else math.floor(number + 1e-6))

    def _of(self, journey: Journey) -> list[Arrow]:
        m, born = journey.message, journey.born
        start = self.at(m.sender, born)
        if journey.copy_of is not None:
            start = self.copies.get((born, journey.copy_of), start)
        result: list[Arrow] = []

        def line(kind: str, end: Point, to_step: int, *, loops: bool = False) -> None:
            """Add an arrow that visits the places where the network copied the message."""
            copied = [step for step in journey.copied if born < step < to_step]
            stops = [start, *(self.copies[step, m.id] for step in copied), end]
            own: set[tuple[str, object]] = {("event", step) for step in (born, *copied, to_step)}
            if born == 0:
                own.add(("sender", m.sender))
            if loops and not copied:
                routes = [self.router.arc(start, end, own)]
            else:
                routes = [self.router.route(a, b, own) for a, b in itertools.pairwise(stops)]
            result.append(Arrow(journey, kind, tuple(routes), to_step, frozenset(own)))

        for count, step in enumerate(journey.deliveries):
            event = self.event(step)
            lane = event.lane if event else m.receiver
            end = self.slots.get((step, m.id), self.at(lane, step))
            kind = "redelivered" if count else "delivered"
            line(kind, end, step, loops=m.sender == lane and journey.copy_of is None)
        if journey.lost is not None:
            line("lost", self._beside(journey, journey.lost, 15), journey.lost)
        elif journey.dropped is not None and journey.dropped > born:
            line("dropped", self.at(m.receiver, journey.dropped), journey.dropped)
        # Copies of a message that is still pending, or that was taken before it was copied.
        last = max((arrow.to_step or 0 for arrow in result), default=0)
        for step in journey.copied:
            if step > last and step == journey.copied[-1]:
                line("copied", self.copies[step, m.id], step)
                start = self.copies[step, m.id]
        return result

    def _stubs(self, arrows: list[Arrow]) -> list[Arrow]:
        """A short line towards its receiver for each message that no step took.

        Their ends are apart from each other and from other arrows, so that each can be seen.
        """
        near: dict[int, list[tuple[Point, Point]]] = {}
        for arrow in arrows:
            near.setdefault(arrow.journey.born, []).extend(arrow.segments)
        stubs: list[Arrow] = []
        for journey in sorted(self.journeys, key=self._far, reverse=True):
            m = journey.message
            dropped, merged = journey.dropped is not None, journey.merged is not None
            if journey.lost is not None or (journey.dropped or 0) > journey.born or journey.deliveries:
                continue
            if not (journey.pending or dropped or merged):
                continue
            kind = "pending" if journey.pending else "merged" if merged else "dropped"
            kind = "lost" if m.id in self.given_up else kind
            start, side = self.at(m.sender, journey.born), -1 if self._ahead(journey) < 0 else 1
            if journey.copied:
                start = self.copies[journey.copied[-1], m.id]
                side = 1 if start[0] < self.at(m.receiver, 0)[0] else -1
            elif journey.copy_of is not None:
                start = self.copies.get((journey.born, journey.copy_of), start)
            ends = [stub.end for stub in stubs if abs(stub.end[1] - start[1]) < ROW]
            end = self._stub_end(start, side, ends, near.get(journey.born, []))
            stubs.append(Arrow(journey, kind, (Route("straight", (start, end)),), None))
        return stubs

    def _stub_end(self, start: Point, side: int, ends: list[Point], lines: list[tuple[Point, Point]]) -> Point:
        """The end of a stub that can be seen best."""
        marks = [(mark.x, mark.y) for mark in self.marks if abs(mark.y - start[1]) < 2 * ROW]
        marks = [mark for mark in marks if math.dist(mark, start) > RADIUS]

        def room(end: Point) -> float:
            """The distance of an end from lines and other ends. More than enough is enough."""
            away = [math.dist(end, other) for other in ends] + [distance(end, a, b) for a, b in lines]
            return min([9.0, *away, *(distance(mark, start, end) - CLEAR + 9.0 for mark in marks)])

        turns = [math.radians(angle) for angle in _STUB_ANGLES]
        fan = [(start[0] + side * _STUB * math.cos(t), start[1] + _STUB * math.sin(t)) for t in turns]
        return max(fan, key=room)

    def _ahead(self, journey: Journey) -> float:
        """How far the receiver is to the right of the sender."""
        sender = self.x.get(journey.message.sender, self.left)
        return self.x.get(journey.message.receiver, sender + self.spacing) - sender

    def _far(self, journey: Journey) -> float:
        return abs(self._ahead(journey))

    def _text(self, event: Event) -> tuple[str, ...]:
        """The lines of the label of an event: what it does, and what it sends."""
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
            lines.append(place_text(event))
        return tuple(shorten(line, _LABEL_LIMIT) for line in lines if line)

    def _values(self, event: Event, lane: str) -> tuple[str, ...]:
        """What an event reads and writes on the lane of a shared object, in few lines."""
        lines = [shorten(line, _LABEL_LIMIT) for line in access_lines(self.trace, event, lane)]
        if len(lines) > _MOST_VALUES:
            lines[_MOST_VALUES - 1 :] = [f"… {len(lines) - _MOST_VALUES + 1} more"]
        return tuple(lines)

    def value_label(self, step: int, lane: str) -> Label | None:
        """The label with values on the right of the lane of a shared object."""
        lines = self.values.get((step, lane))
        if lines is None:
            return None
        x, y = self.at(lane, step)
        return Label(lines, x + 10, y - LINE * len(lines) / 2 + 9.0, "start", _values_wide(lines))

    def _label(self, step: int, event: Event) -> Label:
        """Put the label beside the event, inside the drawing, where it crosses the fewest arrows and lanes."""
        lines = self.texts[step - 1]
        wide, high = text_wide(lines), LINE * len(lines)
        x, y = self.at(event.lane, step)
        least = 11.0 + (self.bar(event)[0] if is_quorum(event) else 0)
        others = [*event.spawned, *accesses(self.trace, event)]
        spawned = [((x, y), self.at(other, step)) for other in others if other in self.x]
        marks = [(mark.x, mark.y) for mark in self.marks if abs(mark.y - y) < ROW / 2]
        near_arrows = [
            (arrow, [(a, b) for a, b in arrow.segments if a[1] <= y + ROW / 2 and b[1] >= y - ROW])
            for arrow in self._passing[step]
        ]
        near_arrows = [(arrow, segments) for arrow, segments in near_arrows if segments]
        choices: list[tuple[float, Label]] = []
        # On the right or on the left. Close to the event, or where two arrows leave room between them.
        for side, gap in itertools.product((1, -1), (0.0, 17.0, 34.0, 48.0)):
            # Above the event, so that it does not cover what the event sends; or at the same height. Statements of
            # threads are all above: two of them in neighbouring rows would touch otherwise.
            for top, level_cost in ((y - 2 - high, 0.1), (y - high / 2, 0.2 if event.place else 0.0)):
                near = x + side * (least + gap)
                label = Label(lines, near, top + 9.5, "start" if side > 0 else "end", wide)
                cost = self._cost(near_arrows, label.box, spawned) + 2 * sum(_holds(label.box, mark) for mark in marks)
                choices.append((cost + level_cost + gap / 60 + (0.4 if side < 0 else 0.0), label))
        return min(choices, key=lambda choice: choice[0])[1]

    def _cost(self, near: list[tuple[Arrow, list[Segment]]], box: Box, more: list[Segment]) -> float:
        left, _, right, _ = box
        cost = 100.0 if left < self.left or right > self._right else 0.0
        cost += sum(0.3 for x in self.x.values() if left < x < right)
        box = (box[0] - _HALO, box[1], box[2] + _HALO, box[3])
        for arrow, segments in near:
            if any(_crosses(a, b, box) for a, b in segments):
                # A label would hide all of an open end, which is short, or the head of an arrow.
                cost += 2.0 if arrow.to_step is None else 1.0
                tail, tip = arrow.segments[-1]
                cost += 2.0 if _crosses(toward(tip, tail, min(26.0, math.dist(tip, tail))), tip, box) else 0.0
        return cost + sum(_crosses(start, end, box) for start, end in more)


def text_wide(lines: Sequence[str]) -> float:
    """An upper bound for the width of a label."""
    sizes = (TEXT * _BOLD, *[SMALL_TEXT] * len(lines))
    return max((text_width(line, size) for line, size in zip(lines, sizes, strict=False)), default=0.0)


def _values_wide(lines: Sequence[str]) -> float:
    """An upper bound for the width of values, all of whose lines are bold."""
    return max((text_wide((line,)) for line in lines), default=0.0)


def _holds(box: Box, point: Point) -> bool:
    """Whether a mark at this point touches the box."""
    return box[0] - 6 < point[0] < box[2] + 6 and box[1] - 6 < point[1] < box[3] + 6


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
