"""A state graph as text: every state with its changes and its successors."""

from __future__ import annotations

from plait.kernel.graph import Edge, StateGraph
from plait.report.state_graph import wording as states
from plait.report.wording import plural


def listing(graph: StateGraph) -> str:
    """A paragraph for each state, in breadth-first order."""
    lines = [states.heading(graph)]
    if (cut := states.missing(graph)) is not None:
        lines.append(cut)
    leading: dict[int, list[Edge]] = {}
    for edge in graph.edges:
        leading.setdefault(edge.source, []).append(edge)
    for state in graph.states:
        marks = ", ".join(states.marks(state))
        came = f"from s{state.predecessor}" if state.predecessor is not None else ""
        lines += ["", "  ".join(part for part in (state.name, came, marks) if part)]
        lines += [f"    {line}" for line in states.new(graph, state)]
        lines += [f"    taken or lost: {line}" for line in states.gone(graph, state)]
        for edge in leading.get(state.number, []):
            where = f"s{edge.target}" if edge.target is not None else "✕ a failed assertion"
            lines.append(f"  → {where}  {states.edge_text(edge)}")
        if state.hidden:
            lines.append(f"  → … {plural(state.hidden, 'transition')} to states that are not shown")
    return "\n".join(lines)
