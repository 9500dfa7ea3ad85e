"""A state graph as text: every state with what is new in it, and where it leads."""

from __future__ import annotations

from plait.kernel.graph import Move, StateGraph
from plait.report import states
from plait.report.facts import plural


def listing(graph: StateGraph) -> str:
    """A paragraph for each state, in breadth-first order."""
    lines = [states.heading(graph)]
    if (cut := states.missing(graph)) is not None:
        lines.append(cut)
    leading: dict[int, list[Move]] = {}
    for move in graph.moves:
        leading.setdefault(move.source, []).append(move)
    for state in graph.states:
        marks = ", ".join(states.marks(state))
        came = f"from s{state.predecessor}" if state.predecessor is not None else ""
        lines += ["", "  ".join(part for part in (state.name, came, marks) if part)]
        lines += [f"    {line}" for line in states.new(graph, state)]
        lines += [f"    taken or lost: {line}" for line in states.gone(graph, state)]
        for move in leading.get(state.number, []):
            where = f"s{move.target}" if move.target is not None else "✕ a failed assertion"
            lines.append(f"  → {where}  {states.move_text(move)}")
        if state.hidden:
            lines.append(f"  → … {plural(state.hidden, 'transition')} to states that are not shown")
    return "\n".join(lines)
