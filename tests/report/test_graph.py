"""State graphs as SVG, text and DOT: everything is there, once, and hostile names are harmless."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from plait.check.explain.graph import state_graph
from plait.kernel.graph import Edge, State, StateGraph
from plait.kernel.trace import Sent, Snapshot
from plait.model.loading.loader import load
from plait.protocols.two_phase_commit import two_phase_commit
from plait.report.state_graph import wording as states
from plait.report.state_graph.dot import dot
from plait.report.state_graph.svg import graph_svg
from plait.report.state_graph.text import listing
from tests.report.samples import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, **parameters: object) -> StateGraph:
    return state_graph(load(str(EXAMPLES / f"{name}.py"), parameters, parse=False))


def hostile() -> StateGraph:
    sent = Sent(0, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, HOSTILE)
    first = Snapshot(
        {HOSTILE: {HOSTILE: HOSTILE}}, {HOSTILE: [0]}, {HOSTILE: {HOSTILE: "\x00\x1b[2J"}}, budgets={HOSTILE: 1}
    )
    second = Snapshot({HOSTILE: {HOSTILE: 1}}, {HOSTILE: []}, {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE}, {HOSTILE: 0})
    return StateGraph(
        model=HOSTILE,
        parameters={HOSTILE: HOSTILE},
        messages=[sent],
        states=[
            State(1, 0, first, violated=[HOSTILE], hidden=3),
            State(2, 1, second, 1, terminal=True, violated=["assertions"], examples=[HOSTILE]),
        ],
        edges=[
            Edge(1, 2, HOSTILE, "step", HOSTILE, [0], [HOSTILE]),
            Edge(2, 2, HOSTILE, "lose", "lose"),
            Edge(2, 1, HOSTILE, "recover", HOSTILE),
            Edge(2, None, HOSTILE, "step", HOSTILE, note=HOSTILE + "\x00\n" + HOSTILE),
        ],
        reductions=[HOSTILE],
    )


class Drawing:
    def __init__(self, graph: StateGraph) -> None:
        self.root = ET.fromstring(graph_svg(graph))

    def of_class(self, name: str, within: ET.Element | None = None) -> list[ET.Element]:
        return [e for e in (within or self.root).iter() if name in e.attrib.get("class", "").split()]

    def text(self) -> str:
        return "\n".join("".join(e.itertext()) for e in self.root.iter(f"{SVG}text"))


@pytest.mark.parametrize(
    ("made", "count", "pairs"),
    [
        pytest.param(lambda: example("two_messages"), 7, 7, id="two messages"),
        pytest.param(lambda: example("lease"), 51, 90, id="lease"),
        pytest.param(lambda: state_graph(two_phase_commit(2)), 56, None, id="2pc"),
    ],
)
def test_a_box_per_state_and_an_arrow_per_pair(made: Callable[[], StateGraph], count: int, pairs: int | None) -> None:
    graph = made()
    drawing = Drawing(graph)
    boxes = drawing.of_class("state")
    assert (
        [int(box.attrib["data-state"]) for box in boxes] == [s.number for s in graph.states] == [*range(1, count + 1)]
    )
    drawn = [(int(a.attrib["data-from"]), int(a.attrib["data-to"])) for a in drawing.of_class("arrow")]
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == {(m.source, m.target) for m in graph.edges}
    assert pairs is None or len(drawn) == pairs


def test_figure_1_of_the_paper() -> None:
    """The names are breadth-first numbers: the paper's s6 is s5 here, its s5 is s6, and its s is s7."""
    drawing = Drawing(example("two_messages"))
    arrows = {(a.attrib["data-from"], a.attrib["data-to"]) for a in drawing.of_class("arrow")}
    assert arrows == {tuple(pair) for pair in ("12", "23", "34", "35", "46", "57", "67")}
    assert not drawing.of_class("upward")
    labels = ["".join(e.itertext()) for e in drawing.of_class("edge-label")]
    assert labels.count("Receiver0: acknowledge") == 2
    assert "Receiver0: take_both" in labels


def test_marks() -> None:
    graph = example("lease")
    drawing = Drawing(graph)
    assert len(drawing.of_class("entry")) == 1
    for kind, wanted in (
        ("terminal", [s.number for s in graph.states if s.terminal]),
        ("violating", [s.number for s in graph.states if s.violated]),
    ):
        assert wanted
        assert [int(box.attrib["data-state"]) for box in drawing.of_class(kind)] == wanted
    assert "violates no_stale_write" in drawing.text()
    assert "C0: Client0, C1: Client1, L0: Lock0, S0: Store0" in drawing.text(), "what the short names stand for"


def test_tooltips_have_the_whole_state() -> None:
    drawing = Drawing(example("lease"))
    tips = {b.attrib["data-state"]: b.findtext(f"{SVG}title") or "" for b in drawing.of_class("state")}
    assert "Store0  fencing=False, log=[2, 1]" in tips["51"]
    assert "waiting: Acquire() from Client1" in tips["1"]
    arrows = {
        (a.attrib["data-from"], a.attrib["data-to"]): a.findtext(f"{SVG}title") for a in drawing.of_class("arrow")
    }
    assert arrows["1", "2"] == "s1 → s2: Lock0: grant\ntakes Acquire() from Client0"


def test_a_graph_that_is_cut_says_where() -> None:
    graph = state_graph(two_phase_commit(2), max_states=6)
    assert len(graph.states) == 6
    assert not graph.complete
    cut = [s.number for s in graph.states if s.hidden]
    assert cut == [2, 3, 4, 5, 6]
    drawing = Drawing(graph)
    assert [int(box.attrib["data-state"]) for box in drawing.of_class("cut")] == cut
    total = sum(s.hidden for s in graph.states)
    said = f"Not all states are shown: {total} transitions from s2–s6 lead to states that are left out."
    assert said == states.missing(graph)
    for text in (drawing.text(), listing(graph), dot(graph)):
        assert said in text
    assert states.missing(state_graph(two_phase_commit(2))) is None


def test_hostile_names() -> None:
    graph = hostile()
    drawing = Drawing(graph)
    assert {e.tag.removeprefix(SVG) for e in drawing.root.iter()} <= {
        "svg", "title", "style", "rect", "text", "tspan", "g", "path",
    }  # fmt: skip
    assert "\x1b" not in listing(graph)
    assert "\x1b" not in dot(graph)
    assert "\x00" not in graph_svg(graph)
    assert len(drawing.of_class("upward")) == 2, "the arrow and its label"


def test_dot_strings_end_where_they_should() -> None:
    """Outside of strings, there is nothing but the language: no part of a name escapes."""
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", dot(hostile()), flags=re.DOTALL)
    assert re.fullmatch(r"[\w\s\[\]{}=,;>-]*", outside)
    text = dot(example("two_messages"))
    assert len(re.findall(r"^  s\d+ \[", text, re.MULTILINE)) == 7
    assert len(re.findall(r"^  s\d+ -> s\d+ \[", text, re.MULTILINE)) == 7


def test_the_listing() -> None:
    lines = listing(example("two_messages")).splitlines()
    at = lines.index("s6  from s4")
    assert lines[at : at + 4] == [
        "s6  from s4",
        "    Receiver0.received = {'first', 'second'}",
        "    Receiver0.history = {'second'}",
        "  → s7  Receiver0: acknowledge",
    ]
    assert "s7  from s5  terminal" in lines
    assert "    taken or lost: Acquire() from Client0" in listing(example("lease")).splitlines()
