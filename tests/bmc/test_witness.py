"""Violation witnesses, checked against the rules of the published format (version 1.0, with threads)."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import msgspec
import pytest

from plait.bmc.execution.tracing import trace
from plait.bmc.execution.violation_witness import witness
from plait.bmc.load import parse_program
from plait.bmc.program.definition import RACES, Program
from plait.kernel.errors import UsageError
from tests.support.threaded_programs import counter, embrace, guess, looping_section, property_of, shortest, traced

SPACE = "{http://graphml.graphdrawing.org/xmlns}"
REQUIRED = {
    "witness-type": r"violation_witness",
    "sourcecodelang": r"C|Java",
    "producer": r".+",
    "specification": r"CHECK\( init\(main\(\)\), LTL\(.+\) \)",
    "programfile": r".+",
    "programhash": r"[0-9a-f]{64}",
    "architecture": r"32bit|64bit",
    "creationtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)",
}
"""The data that every graph has, and the form of its values."""
NODES = {"entry": "boolean", "violation": "boolean", "sink": "boolean"}
EDGES = dict.fromkeys(
    (
        "assumption", "assumption.scope", "assumption.resultfunction", "control", "enterFunction", "returnFromFunction",
        "threadId", "createThread", "sourcecode",
    ),
    "string",
) | {"startline": "int", "endline": "int", "startoffset": "int", "endoffset": "int", "enterLoopHead": "boolean"}  # fmt: skip
"""The keys that nodes and edges of a violation witness may have, and their types."""


class Automaton(NamedTuple):
    """A witness as its reader sees it."""

    graph: dict[str, str]
    edges: list[dict[str, str]]
    """The data of the edges from the entry to the violation."""


def accepted(written: str) -> Automaton:
    """Read a witness. It breaks no rule of the format."""
    root = ElementTree.fromstring(written)
    assert root.tag == f"{SPACE}graphml"
    keys = {key.get("id"): key for key in root.findall(f"{SPACE}key")}
    assert len(keys) == len(root.findall(f"{SPACE}key"))
    (graph,) = root.findall(f"{SPACE}graph")
    assert graph.get("edgedefault") == "directed"

    def data(owner: ElementTree.Element, kind: str, allowed: dict[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for item in owner.findall(f"{SPACE}data"):
            name = item.get("key") or ""
            assert name not in found, "one value for each key"
            assert (keys[name].get("for"), keys[name].get("attr.type")) == (kind, allowed[name])
            found[name] = item.text or ""
            if allowed[name] == "int":
                assert int(found[name]) > 0
            if allowed[name] == "boolean":
                assert found[name] in ("true", "false")
        return found

    about = data(graph, "graph", dict.fromkeys(REQUIRED, "string"))
    for name, form in REQUIRED.items():
        assert re.fullmatch(form, about[name]), name
    nodes = {node.get("id") or "": data(node, "node", NODES) for node in graph.findall(f"{SPACE}node")}
    entries = [name for name, marks in nodes.items() if marks.get("entry") == "true"]
    assert len(entries) == 1, "exactly one entry node"
    leaving: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for edge in graph.findall(f"{SPACE}edge"):
        source, target = edge.get("source") or "", edge.get("target") or ""
        assert {source, target} <= set(nodes), "the nodes of an edge exist"
        leaving.setdefault(source, []).append((target, data(edge, "edge", EDGES)))
    at, path, seen = entries[0], [], {entries[0]}
    while at in leaving:
        assert len(leaving[at]) == 1, "it is a path"
        at, found = leaving[at][0]
        assert at not in seen
        seen.add(at)
        path.append(found)
    assert nodes[at].get("violation") == "true", "the path ends in the violation"
    assert seen == set(nodes), "no node is apart from the path"
    _threads(path)
    return Automaton(about, path)


def _threads(path: list[dict[str, str]]) -> None:
    """A thread runs only after it was created, once, and entered its function; `\\result` says whose result it is."""
    created: set[str] = set()
    entered: set[str] = set()
    for number, edge in enumerate(path):
        child = edge.get("createThread")
        if child is not None:
            assert child not in created
            created.add(child)
        assert edge["threadId"] in created
        if "enterFunction" in edge:
            entered.add(edge["threadId"])
        assert edge["threadId"] in entered
        assert number > 0 or child == edge["threadId"], "the first edge creates the main thread"
        assert ("\\result" in edge.get("assumption", "")) == ("assumption.resultfunction" in edge)


CASES = [(counter, "assertions"), (counter, RACES), (looping_section, "small"), (guess, "assertions")]


@pytest.mark.parametrize(("make", "name"), CASES)
def test_a_witness_follows_the_format(make: Callable[[], Program], name: str) -> None:
    program = make()
    found = traced(program, name)
    automaton = accepted(witness(program, found))
    assert automaton.graph["programfile"] == program.source.name
    steps = [edge for edge in automaton.edges if "startline" in edge]
    lines = [(event.place.line, event.label) for event in found.events if event.place]
    assert [(int(edge["startline"]), edge["sourcecode"]) for edge in steps] == lines
    numbers = {code.name: str(p) for p, code in enumerate(program.processes)}
    assert [edge["threadId"] for edge in steps] == [numbers[event.lane] for event in found.events if event.place]


def test_threads_are_created_by_the_step_that_starts_them() -> None:
    automaton = accepted(witness(counter(), traced(counter(), "assertions")))
    creating = [edge for edge in automaton.edges if "createThread" in edge]
    assert [(edge["threadId"], edge["createThread"]) for edge in creating] == [("0", "0"), ("0", "1"), ("0", "2")]
    assert creating[1]["startline"] == "9"
    entering = [(edge["threadId"], edge["enterFunction"]) for edge in automaton.edges if "enterFunction" in edge]
    assert entering == [("0", "main"), ("1", "add"), ("2", "add")]


def test_values_of_the_environment_are_assumptions() -> None:
    found = traced(guess(), "assertions")
    automaton = accepted(witness(guess(), found))
    assumed = [edge for edge in automaton.edges if "assumption" in edge]
    chosen = [event.choices[0] for event in found.events if event.choices]
    assert len(chosen) == 2
    assert 2 in chosen, "only cells[2] = 3 violates the assertion"
    assert [edge["assumption"] for edge in assumed] == [f"\\result == {value}" for value in chosen]
    assert {edge["assumption.resultfunction"] for edge in assumed} == {"__VERIFIER_nondet_int"}
    assert {edge["assumption.scope"] for edge in assumed} == {"fill"}


def test_the_graph_describes_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program, found = counter(), traced(counter(), "assertions")
    said = accepted(witness(program, found, architecture="32bit")).graph
    assert said["programhash"] == hashlib.sha256(b"int x;\n").hexdigest(), "without a file: the text"
    assert said["architecture"] == "32bit"
    assert said["specification"] == "CHECK( init(main()), LTL(G ! call(reach_error())) )"
    Path("src").mkdir()
    Path("src/counter.c").write_bytes(b"int x; /* the file */\n")
    assert (
        accepted(witness(program, found)).graph["programhash"] == hashlib.sha256(b"int x; /* the file */\n").hexdigest()
    )
    given = accepted(
        witness(program, found, source=b"", created=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC))
    )
    assert given.graph["programhash"] == hashlib.sha256(b"").hexdigest()
    assert given.graph["creationtime"] == "2026-01-02T03:04:05Z"
    races = accepted(witness(program, traced(program, RACES))).graph
    assert races["specification"] == "CHECK( init(main()), LTL(G ! data-race) )"


def test_a_projection_is_a_witness_too() -> None:
    """Steps that cannot influence the violation are not in the witness."""
    program = counter()
    interpreter, start, steps = shortest(program, "assertions")
    found = trace(interpreter, "t", {}, property_of(program, "assertions"), start, steps, full=False)
    assert len(accepted(witness(program, found)).edges) == len(found.events) + 4


def test_text_of_a_program_is_text() -> None:
    found = traced(counter(), "assertions")
    odd = msgspec.structs.replace(found.events[-1], label="if (a < b && c) /* \x00 ]]> */")
    changed = msgspec.structs.replace(found, events=[*found.events[:-1], odd])
    automaton = accepted(witness(counter(), changed))
    assert automaton.edges[-1]["sourcecode"] == "if (a < b && c) /* \ufffd ]]> */"


def test_only_violations_of_c_programs_have_a_witness() -> None:
    with pytest.raises(UsageError, match="only programs in C"):
        witness(embrace(), traced(embrace(), "deadlock"))
    program = parse_program("int x = 0; process p { x = 1; } reachable one: x == 1;", name="one.c")
    with pytest.raises(UsageError, match="there is no violation"):
        witness(program, traced(program, "one"))
