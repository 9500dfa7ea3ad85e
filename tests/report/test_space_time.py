"""The space-time diagram: it is XML, and its arrows say what the trace says."""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from plait.kernel.trace import Trace
from plait.report.markup import text_width
from plait.report.space_time.layout import ROW
from plait.report.space_time.svg import space_time
from tests.report import samples

SVG = "{http://www.w3.org/2000/svg}"
LEAST = 11.5
"""How close a line may come to the centre of a mark of another event. The radius of a dot is 5."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]


def outline(path: str) -> list[Point]:
    """The corners of a polyline close to a path of M, L, Q and C."""
    points: list[Point] = []
    for command, numbers in re.findall(r"([MLQC])([^MLQCZ]*)", path):
        values = [float(n) for n in numbers.split()]
        given = list(zip(values[::2], values[1::2], strict=True))
        if command in "ML":
            points += given
            continue
        control = [points[-1], *given]
        for i in range(1, 41):
            row = control
            while len(row) > 1:
                row = [tuple(a + i / 40 * (b - a) for a, b in zip(p, q, strict=True)) for p, q in pairwise(row)]  # type: ignore[misc]
            points += row
    return points


def gap(point: Point, line: list[Point]) -> float:
    """The distance between a point and a polyline, by dense sampling."""
    best = math.inf
    for a, b in pairwise(line):
        pieces = max(1, int(math.dist(a, b)))
        for i in range(pieces + 1):
            best = min(best, math.dist(point, (a[0] + (b[0] - a[0]) * i / pieces, a[1] + (b[1] - a[1]) * i / pieces)))
    return best


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


class Diagram:
    """A parsed diagram, asked for places of lanes, events and arrows."""

    def __init__(self, trace: Trace) -> None:
        self.root = ET.fromstring(space_time(trace))
        self.lane = {
            head.attrib["data-lane"]: float(head.find(f"{SVG}text").attrib["x"])  # type: ignore[union-attr]
            for head in self.of_class("head")
        }
        self.row = {
            int(row.attrib["data-step"]): float(row.find(f"{SVG}rect").attrib["y"]) + ROW / 2  # type: ignore[union-attr]
            for row in self.of_class("row")
        }

    def of_class(self, name: str) -> list[ET.Element]:
        return [e for e in self.root.iter() if name in e.attrib.get("class", "").split()]

    def arrows(self, kind: str) -> list[ET.Element]:
        return [e for e in self.of_class("message") if kind in e.attrib["class"].split()]

    def ends(self, arrow: ET.Element) -> tuple[float, float, float, float]:
        line = arrow.find(f"{SVG}line")
        if line is not None:
            return (*(float(line.attrib[a]) for a in ("x1", "y1", "x2", "y2")),)  # type: ignore[return-value]
        path = arrow.find(f"{SVG}path")
        assert path is not None
        points = outline(path.attrib["d"])
        return (*points[0], *points[-1])

    def lines(self, arrow: ET.Element) -> list[list[Point]]:
        """The lines of an arrow, as the corners of polylines."""
        found = []
        for part in arrow:
            if part.tag == f"{SVG}line":
                x1, y1, x2, y2 = (float(part.attrib[a]) for a in ("x1", "y1", "x2", "y2"))
                found.append([(x1, y1), (x2, y2)])
            elif part.attrib.get("class") == "arc":
                found.append(outline(part.attrib["d"]))
        return found

    def marks(self) -> list[tuple[int, Point]]:
        """What looks like an event: a dot, a cross, a plus, a ring or a square, with its step."""
        found = []
        for event in [*self.of_class("event"), *self.of_class("spawn")]:
            step = int(event.attrib["data-step"])
            for part in event.iter():
                if part.tag == f"{SVG}circle":
                    found.append((step, (float(part.attrib["cx"]), float(part.attrib["cy"]))))
                elif part.attrib.get("class") == "cross":
                    corners = outline(part.attrib["d"].replace("M", " L").strip().replace("L", "M", 1))
                    found.append((step, (sum(x for x, _ in corners) / 4, sum(y for _, y in corners) / 4)))
                elif part.tag == f"{SVG}rect":
                    found.append((step, (float(part.attrib["x"]) + 5, float(part.attrib["y"]) + 5)))
        return found + [(0, (float(e.attrib["cx"]), float(e.attrib["cy"]))) for e in self.of_class("origin")]

    def texts(self) -> list[tuple[str, Box]]:
        """All labels with generous boxes: of events, rounds, rows and lanes."""
        found = []
        for name, size in (("event", 11.0), ("boundary", 9.5), ("row", 10.5), ("head", 12.0)):
            for element in self.of_class(name):
                for label in element.iter(f"{SVG}text"):
                    size_ = 9.5 if label.attrib.get("class") == "sends" else size
                    said = label.text or ""
                    wide = text_width(said, size_)
                    x, y = float(label.attrib["x"]), float(label.attrib["y"])
                    left = x - {"middle": wide / 2, "end": wide}.get(label.attrib.get("text-anchor", ""), 0)
                    found.append((said, (left, y - size_ * 0.8, left + wide, y + size_ * 0.2)))
        return found

    def near(self, x: float, y: float, lane: str, step: int) -> bool:
        """Closer to this event than to any other: less than half the way to the next lane or row."""
        spacing = min((abs(a - b) for a in self.lane.values() for b in self.lane.values() if a != b), default=100.0)
        return abs(x - self.lane[lane]) < spacing / 2 and abs(y - self.row[step]) < ROW / 2


@pytest.mark.parametrize("name", ["paxos", "lasso", "redelivery", "long"])
def test_every_arrow_begins_at_its_sender_and_ends_at_its_receiver(name: str) -> None:
    trace = samples.SAMPLES[name]()
    diagram = Diagram(trace)
    sent = {m: step for step, e in enumerate(trace.events, start=1) for m in e.sent}
    taken = [(m, step) for step, e in enumerate(trace.events, start=1) if e.kind == "step" for m in e.consumed]
    messages = {m.id: m for m in trace.messages}
    drawn = []
    for arrow in diagram.arrows("delivered") + diagram.arrows("redelivered"):
        number, to = int(arrow.attrib["data-message"]), int(arrow.attrib["data-to"])
        x1, y1, x2, y2 = diagram.ends(arrow)
        assert diagram.near(x1, y1, messages[number].sender, sent[number])
        assert diagram.near(x2, y2, messages[number].receiver, to)
        assert int(arrow.attrib["data-from"]) == sent[number]
        drawn.append((number, to))
    assert sorted(drawn) == sorted(taken)


def test_quorum_transition_gathers_its_arrows_in_a_bar() -> None:
    trace = samples.paxos()
    diagram = Diagram(trace)
    quorums = [step for step, e in enumerate(trace.events, start=1) if e.kind == "step" and len(e.consumed) > 1]
    events = {int(e.attrib["data-step"]): e for e in diagram.of_class("event")}
    assert quorums == [5, 8, 14, 17]
    for step, event in events.items():
        bars = [e for e in event.iter() if e.attrib.get("class") == "quorum"]
        assert bool(bars) == (step in quorums)
    ends = {diagram.ends(a)[2] for a in diagram.arrows("delivered") if a.attrib["data-to"] == "5"}
    assert len(ends) == 2, "the arrows of a quorum end side by side"


def test_lost_message_ends_in_a_cross_before_its_receiver() -> None:
    diagram = Diagram(samples.paxos())
    (lost,) = diagram.arrows("lost")
    x1, y1, x2, y2 = diagram.ends(lost)
    assert (lost.attrib["data-message"], lost.attrib["data-to"]) == ("3", "4")
    assert diagram.near(x1, y1, "Proposer0", 1)
    assert x2 < diagram.lane["Acceptor2"]
    assert y2 == diagram.row[4]
    (event,) = diagram.of_class("lose")
    assert [e for e in event.iter() if e.attrib.get("class") == "cross"]


def test_pending_messages_are_stubs() -> None:
    trace = samples.paxos()
    diagram = Diagram(trace)
    waiting = {i for inbox in trace.events[-1].state.pending.values() for i in inbox}
    stubs = diagram.arrows("pending")
    assert {int(a.attrib["data-message"]) for a in stubs} == waiting
    for stub in stubs:
        x1, y1, x2, y2 = diagram.ends(stub)
        assert "data-to" not in stub.attrib
        assert abs(x2 - x1) < 60
        assert 0 < y2 - y1 < ROW


def test_crash_and_recovery_change_the_lane() -> None:
    diagram = Diagram(samples.paxos())
    segments = [e for e in diagram.of_class("lane") if e.attrib["data-lane"] == "Acceptor1"]
    assert [e.attrib["class"] for e in segments] == ["lane running", "lane down", "lane running"]
    assert [float(e.attrib["y1"]) for e in segments[1:]] == [diagram.row[9], diagram.row[10]]
    assert len(diagram.of_class("crash")) == len(diagram.of_class("recover")) == 1


def test_crash_stop_drops_what_waits_and_what_comes_later() -> None:
    diagram = Diagram(samples.faults())
    dropped = {a.attrib["data-message"]: a.attrib.get("data-to") for a in diagram.arrows("dropped")}
    assert dropped == {"3": "5", "7": None}
    segments = [e.attrib["class"] for e in diagram.of_class("lane") if e.attrib["data-lane"] == "Server1"]
    assert segments == ["lane running", "lane crashed"]


def test_copy_starts_where_the_network_made_it() -> None:
    diagram = Diagram(samples.faults())
    (copy,) = [a for a in diagram.arrows("delivered") if a.attrib["data-message"] == "4"]
    x1, y1, x2, y2 = diagram.ends(copy)
    assert diagram.lane["Client0"] < x1 < diagram.lane["Server0"]
    assert abs(y1 - diagram.row[2]) < ROW / 2
    assert diagram.near(x2, y2, "Server0", 4)
    (event,) = diagram.of_class("duplicate")
    assert event.attrib["data-step"] == "2"


def test_second_delivery_is_marked() -> None:
    diagram = Diagram(samples.redelivery())
    assert [a.attrib["data-to"] for a in diagram.arrows("redelivered")] == ["3"]
    assert [a.attrib["data-message"] for a in diagram.arrows("merged")] == ["2"]
    assert not diagram.arrows("dropped")


def test_spawned_lane_begins_at_the_spawn() -> None:
    diagram = Diagram(samples.faults())
    unborn, running = [e for e in diagram.of_class("lane") if e.attrib["data-lane"] == "Worker0"]
    assert unborn.attrib["class"] == "lane unborn"
    assert float(running.attrib["y1"]) == diagram.row[6]
    assert [e.attrib["data-step"] for e in diagram.of_class("spawn")] == ["6"]


def test_loop_is_drawn_only_for_a_lasso() -> None:
    assert Diagram(samples.lasso()).of_class("loop")
    assert not Diagram(samples.paxos()).of_class("loop")


def touched(trace: Trace) -> list[str]:
    """The arrows that come too close to the mark of another event."""
    diagram, found = Diagram(trace), []
    marks = diagram.marks()
    copied: dict[int, set[int]] = {}
    for step, event in enumerate(trace.events, start=1):
        for message in event.consumed if event.kind == "duplicate" else ():
            copied.setdefault(message, set()).add(step)
    for arrow in diagram.of_class("message"):
        number, born, to = (int(arrow.attrib.get(f"data-{a}", -1)) for a in ("message", "from", "to"))
        own = {born, to} | copied.get(number, set())
        lines = diagram.lines(arrow)
        for step, mark in marks:
            # Several processes have a mark in the initial state. And a process that is spawned has one of its own.
            mine = step in own and (math.dist(mark, lines[0][0]) < 9 if step == 0 else True)
            heights = [y for line in lines for _, y in line]
            if not min(heights) - LEAST < mark[1] < max(heights) + LEAST:
                continue
            if not mine and (near := min(gap(mark, line) for line in lines)) < LEAST:
                found.append(f"#{number} from step {born} to step {to} passes step {step} at a distance of {near:.1f}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_no_arrow_touches_the_event_of_another_process(name: str) -> None:
    assert touched(samples.SAMPLES[name]()) == []


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(samples.runs())
def test_no_arrow_of_any_run_touches_a_foreign_event(trace: Trace) -> None:
    assert touched(trace) == []


def test_an_arrow_that_would_pass_through_a_dot_is_bent() -> None:
    """The README's example: a client sends in step 4, and another process has step 5 on the straight line to step 7."""
    run = samples.Run({"A0": {}, "B0": {}, "C0": {}, "D0": {}})
    (late,) = run.step("A0", "send", (), (("D0", "Write", {}),))
    (soon,) = run.step("B0", "send", (), (("D0", "Write", {}),))
    run.step("D0", "write", (soon,))
    run.step("D0", "write", (late,))
    trace = run.trace()
    diagram = Diagram(trace)
    x = [diagram.lane[lane] for lane in ("A0", "B0", "D0")]
    straight = [(x[0], diagram.row[1]), (x[2], diagram.row[4])]
    assert gap((x[1], diagram.row[2]), straight) < 1, "the case is as described"
    assert touched(trace) == []
    (bent,) = [a for a in diagram.arrows("delivered") if a.attrib["data-message"] == str(late)]
    assert bent.find(f"{SVG}line") is None
    assert all(a[1] <= b[1] + 0.2 for line in diagram.lines(bent) for a, b in pairwise(line)), "time goes down"


def collisions(trace: Trace) -> list[tuple[str, str]]:
    texts = [(said, box) for said, box in Diagram(trace).texts() if said]
    return [(one, other) for (one, a), (other, b) in combinations(texts, 2) if overlap(a, b)]


@pytest.mark.slow
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_labels_stay_inside_and_apart(name: str) -> None:
    trace = samples.SAMPLES[name]()
    diagram = Diagram(trace)
    assert collisions(trace) == []
    for said, (left, _, right, _) in diagram.texts():
        assert left >= 0, said
        assert right <= float(diagram.root.attrib["width"]), said


@settings(max_examples=60, deadline=None)
@given(samples.runs())
def test_labels_of_rounds_and_messages_do_not_collide(trace: Trace) -> None:
    assert collisions(trace) == []


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_step_can_be_found(name: str) -> None:
    trace = samples.SAMPLES[name]()
    steps = [int(e.attrib["data-step"]) for e in Diagram(trace).of_class("event")]
    assert steps == list(range(1, len(trace.events) + 1))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(samples.traces())
def test_any_trace_is_drawn_as_xml(trace: Trace) -> None:
    ET.fromstring(space_time(trace))
