"""`plait rounds show --svg`: the picture has the handlers and messages that the protocol has."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from plait import System
from plait.cli.main import main
from plait.kernel.verdict import PhaseStructure, RoundHandler
from plait.protocols.commit_rounds import commit_rounds
from plait.protocols.distal_paxos import distal_paxos
from plait.report.html import report
from plait.report.phases.svg import phases_svg
from plait.rounds.check import check_rounds
from plait.rounds.text.structure import phase_structure

_SVG = "{http://www.w3.org/2000/svg}"


def _groups(svg: str, kind: str) -> list[ET.Element]:
    return [g for g in ET.fromstring(svg).iter(f"{_SVG}g") if kind in (g.get("class") or "").split()]


def _titles(svg: str, kind: str) -> set[str]:
    return {g.findtext(f"{_SVG}title") or "" for g in _groups(svg, kind)}


@pytest.mark.parametrize("protocol", [distal_paxos(), commit_rounds()], ids=lambda system: system.name)
def test_all_handlers_and_rounds_are_drawn(protocol: System) -> None:
    svg = phases_svg(phase_structure(protocol))
    handlers = {f"{cls.__name__}.{h.name}" for cls in protocol.classes for h in cls.__plait_handlers__}
    assert {g.get("data-handler") for g in _groups(svg, "handler")} == handlers
    labels = [g.findtext(f"{_SVG}text") for g in _groups(svg, "band")]
    assert [label for label in labels if label] == [*(f"round {name}" for name in protocol.rounds), "next phase"]
    boxes = [g.find(f"{_SVG}rect") for g in _groups(svg, "handler")]
    places = [(float(b.get("x", "")), float(b.get("y", ""))) for b in boxes if b is not None]
    assert len(set(places)) == len(places) == len(handlers)


def test_messages_of_commit() -> None:
    """As the docstring of the protocol describes them."""
    svg = phases_svg(phase_structure(commit_rounds()))
    assert _titles(svg, "now") == {
        "start sends Request to vote",
        "vote sends Vote to decide",
        "decide sends Decision to obey",
    }
    assert _titles(svg, "next") == {"decide sends Request to next phase"}


def test_text_of_a_model_is_escaped() -> None:
    svg = phases_svg(PhaseStructure(["<a>"], [RoundHandler("<r>", "&h", 0, [])]))
    assert _titles(svg, "handler") == {"<r>.&h: consumes <a>, sends nothing"}


def test_in_a_file_and_in_the_report(tmp_path: Path) -> None:
    file = tmp_path / "phase.svg"
    assert main(["rounds", "show", "commit_rounds", "--svg", str(file)]) == 0
    assert file.read_text() == phases_svg(phase_structure(commit_rounds()))
    page = report(check_rounds(commit_rounds(participants=2, transactions=1), phases=1))
    assert 'data-handler="Coordinator.decide"' in page
