"""A state graph in the language of Graphviz, for other tools to draw."""

from __future__ import annotations

from plait.kernel.graph import StateGraph
from plait.report.markup import shorten
from plait.report.state_graph import wording as states

_LINE = 60


def dot(graph: StateGraph) -> str:
    """A `digraph` with a box for each state. The tooltip of a box has the full state."""
    lines = [
        f"digraph {_quote(graph.model)} {{",
        f"  label={_quote(states.heading(graph) + _below(states.missing(graph)))};",
        '  labelloc="t"; node [shape=box, style=rounded, fontname="sans-serif", fontsize=10];',
        '  edge [fontname="sans-serif", fontsize=9];',
    ]
    for state in graph.states:
        said = [" ".join([state.name, *states.marks(state)]), *states.new(graph, state)]
        look = ", peripheries=2" if state.terminal else ""
        look += ", color=red, penwidth=2" if state.violated else ""
        look += ', style="rounded,dashed"' if state.hidden else ""
        label = _quote("\n".join(shorten(line, _LINE) for line in said))
        lines.append(f"  {state.name} [label={label}, tooltip={_quote(_lines(states.whole(graph, state)))}{look}];")
    for number, edge in enumerate(graph.edges):
        target = f"s{edge.target}" if edge.target is not None else f"failure{number}"
        if edge.target is None:
            lines.append(f'  {target} [label="✕", shape=plaintext, fontcolor=red];')
        style = ", style=dashed" if edge.kind != "step" else ""
        tip = _quote(states.edge_details(graph, edge))
        lines.append(f"  s{edge.source} -> {target} [label={_quote(states.edge_text(edge))}, tooltip={tip}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _below(text: str | None) -> str:
    return f"\n{text}" if text else ""


def _lines(lines: list[str]) -> str:
    return "\n".join(lines)


def _quote(text: str) -> str:
    r"""A string in the language of Graphviz, with backslashes and quotes escaped.

    >>> print(_quote('say "\\N"'))
    "say \"\\N\""
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
