"""Violation witnesses in the exchange format of SV-COMP: GraphML, version 1.0, with the extension for threads.

A witness is an automaton, here a path: one node before and after each step, and an edge for each step with its thread
and its line. The first edge creates the main thread. After an edge that creates another thread, an edge of this thread
enters its function; its steps come later (Beyer and Friedberger 2020). The values of `__VERIFIER_nondet_*` are
assumptions. A trace that leaves out steps is enough: a validator finds the steps between two edges itself.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from plait.bmc.program.definition import ASSERTIONS, MEMORY, OVERFLOW, RACES, Program
from plait.kernel.errors import UsageError
from plait.kernel.trace import Event, Trace
from plait.kernel.values import text

KEYS = {
    "witness-type": ("graph", "string"),
    "sourcecodelang": ("graph", "string"),
    "producer": ("graph", "string"),
    "specification": ("graph", "string"),
    "programfile": ("graph", "string"),
    "programhash": ("graph", "string"),
    "architecture": ("graph", "string"),
    "creationtime": ("graph", "string"),
    "entry": ("node", "boolean"),
    "violation": ("node", "boolean"),
    "threadId": ("edge", "string"),
    "createThread": ("edge", "string"),
    "startline": ("edge", "int"),
    "enterFunction": ("edge", "string"),
    "assumption": ("edge", "string"),
    "assumption.scope": ("edge", "string"),
    "assumption.resultfunction": ("edge", "string"),
    "sourcecode": ("edge", "string"),
}
"""The kinds of data in a witness: what each belongs to, and its type."""

_SPECIFICATIONS = {
    ASSERTIONS: "G ! call(reach_error())",
    OVERFLOW: "G ! overflow",
    MEMORY: "G valid-deref",
    RACES: "G ! data-race",
}
_INPUT = re.compile(r"\b__VERIFIER_nondet_\w+")
_C = (".c", ".i", ".h")


class Edge(NamedTuple):
    """An edge of the automaton: its data, by key."""

    data: dict[str, str]


def witness(
    program: Program,
    trace: Trace,
    *,
    architecture: str = "64bit",
    created: datetime.datetime | None = None,
    source: bytes | None = None,
) -> str:
    """The witness of a violation, as the text of a GraphML file.

    `source` is the content of the program's file, for its hash (by default, the file is read). `created` is the time of
    the witness (by default, now). The program is in C: the format knows no other language of ours.
    """
    if not program.source.name.endswith(_C):
        raise UsageError(
            f"{program.source.name}: the format of witnesses knows only programs in C",
            hint="leave the witness out: a trace in ITF or JSON describes the run of any program",
        )
    property_ = program.find(trace.property or "")
    if property_ is not None and property_.kind == "reachable":
        raise UsageError(f"{property_.name} is reached: there is no violation to witness", hint="leave the witness out")
    when = created or datetime.datetime.now(datetime.UTC)
    graph_data = {
        "witness-type": "violation_witness",
        "sourcecodelang": "C",
        "producer": _producer(),
        "specification": f"CHECK( init(main()), LTL({_formula(trace.property or '')}) )",
        "programfile": program.source.name,
        "programhash": hashlib.sha256(_content(program) if source is None else source).hexdigest(),
        "architecture": architecture,
        "creationtime": when.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    return _graphml(graph_data, edges(program, trace))


def edges(program: Program, trace: Trace) -> list[Edge]:
    """The edges of the automaton, in order. Thread ids are the numbers of the processes."""
    numbers = {code.name: number for number, code in enumerate(program.processes)}
    found: list[Edge] = []
    for number, code in enumerate(program.processes):
        if not code.spawned:
            function = _function(program, number)
            found.append(Edge({"createThread": str(number), "threadId": str(number), "enterFunction": function}))
    for event in trace.events:
        number = numbers[event.lane]
        data = {"threadId": str(number), **_place(program, event), **_assumption(program, number, event)}
        children = [numbers[child] for child in event.spawned]
        if not children or "create" not in event.label:
            found.append(Edge(data))
            data = {"threadId": str(number)}
        for child in children:
            found.append(Edge({**data, "createThread": str(child)}))
            found.append(Edge({"threadId": str(child), "enterFunction": _function(program, child)}))
            # The step may start several threads. The line is that of the first one.
            data = {"threadId": str(number)}
    return found


def _function(program: Program, number: int) -> str:
    """The function that a thread executes."""
    return "main" if number == 0 else program.processes[number].role


def _place(program: Program, event: Event) -> dict[str, str]:
    """The line and the text of a step, if it is in the program's file."""
    if not event.place or event.place.file != program.source.name:
        return {}
    line = str(event.place.line)
    return {"startline": line, "sourcecode": event.label}


def _assumption(program: Program, number: int, event: Event) -> dict[str, str]:
    """The value that the environment chose, if the statement says which function returns it."""
    functions = set(_INPUT.findall(event.label))
    if len(event.choices) != 1 or len(functions) != 1:
        return {}
    value = event.choices[0]
    shown = str(int(value)) if isinstance(value, bool) else text(value)
    return {
        "assumption": f"\\result == {shown}",
        "assumption.scope": _function(program, number),
        "assumption.resultfunction": functions.pop(),
    }


def _formula(name: str) -> str:
    return _SPECIFICATIONS.get(name, f"G ! {name}")


def _producer() -> str:
    from importlib.metadata import version

    return f"plait {version('plait')}"


def _content(program: Program) -> bytes:
    """The content of the program's file, or its text if it has no file."""
    try:
        return Path(program.source.name).read_bytes()
    except OSError:
        return program.source.text.encode()


def _graphml(graph_data: dict[str, str], path: list[Edge]) -> str:
    space = "http://graphml.graphdrawing.org/xmlns"
    root = ElementTree.Element("graphml", {"xmlns": space})
    for key, (owner, kind) in KEYS.items():
        described = {"id": key, "for": owner, "attr.name": key, "attr.type": kind}
        declared = ElementTree.SubElement(root, "key", described)
        if kind == "boolean":
            ElementTree.SubElement(declared, "default").text = "false"
    graph = ElementTree.SubElement(root, "graph", {"edgedefault": "directed"})
    _add(graph, graph_data)
    for number in range(len(path) + 1):
        node = ElementTree.SubElement(graph, "node", {"id": f"N{number}"})
        if number == 0:
            _add(node, {"entry": "true"})
        if number == len(path):
            _add(node, {"violation": "true"})
    for number, edge in enumerate(path):
        ends = {"id": f"E{number}", "source": f"N{number}", "target": f"N{number + 1}"}
        _add(ElementTree.SubElement(graph, "edge", ends), edge.data)
    ElementTree.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add(owner: ElementTree.Element, data: dict[str, str]) -> None:
    """Add data. Characters that XML forbids are replaced."""
    for key, value in data.items():
        ElementTree.SubElement(owner, "data", {"key": key}).text = _FORBIDDEN.sub("\ufffd", value)


_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
