"""The space-time diagram: it is XML, and its arrows say what the trace says."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from plait.kernel.trace import Trace
from plait.report.space_time.layout import ROW
from plait.report.space_time.svg import space_time
from tests.report import samples

SVG = "{http://www.w3.org/2000/svg}"


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
        numbers = [float(n) for n in path.attrib["d"].replace("M", " ").replace("C", " ").split()]
        return numbers[0], numbers[1], numbers[-2], numbers[-1]

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


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_labels_stay_inside_and_apart(name: str) -> None:
    diagram = Diagram(samples.SAMPLES[name]())
    width = float(diagram.root.attrib["width"])
    boxes = []
    for event in diagram.of_class("event"):
        for label in event.iter(f"{SVG}text"):
            wide = len(label.text or "") * 5.2
            x, y = float(label.attrib["x"]), float(label.attrib["y"])
            left = x if label.attrib["text-anchor"] == "start" else x - wide
            boxes.append((left, y - 8, left + wide, y))
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0
        assert right <= width + 20
        for other in boxes[i + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_step_can_be_found(name: str) -> None:
    trace = samples.SAMPLES[name]()
    steps = [int(e.attrib["data-step"]) for e in Diagram(trace).of_class("event")]
    assert steps == list(range(1, len(trace.events) + 1))


@settings(max_examples=100, deadline=None)
@given(samples.traces())
def test_any_trace_is_drawn_as_xml(trace: Trace) -> None:
    ET.fromstring(space_time(trace))
