"""The sentences of drawings and listings of a state graph. They are in one place, so that all formats say the same."""

from __future__ import annotations

from collections import Counter

from plait.kernel.graph import Edge, State, StateGraph
from plait.kernel.trace import Snapshot
from plait.kernel.values import text
from plait.report.wording import FAULTS, STATUS_WORDS, message_text, plural, record_text, visible


def heading(graph: StateGraph) -> str:
    """The model, and the size of the graph."""
    parameters = f" ({record_text(graph.parameters)})" if graph.parameters else ""
    return f"{visible(graph.model)}{parameters}: {size(graph)}"


def size(graph: StateGraph) -> str:
    """The numbers of states and transitions, and the reductions that were applied."""
    count = plural(len(graph.states), "state")
    reduced = f", reduced by {', '.join(map(visible, graph.reductions))}" if graph.reductions else ""
    only = "" if graph.complete else "the first "
    return f"{only}{count} and {plural(len(graph.edges), 'transition')}{reduced}"


def missing(graph: StateGraph) -> str | None:
    """What a graph leaves out because of its limit, and where. None if it is complete."""
    cut = [state for state in graph.states if state.hidden]
    if not cut:
        return None
    names = _ranges([state.number for state in cut])
    left_out = sum(state.hidden for state in cut)
    lead = "leads to a state that is" if left_out == 1 else "lead to states that are"
    return f"Not all states are shown: {plural(left_out, 'transition')} from {names} {lead} left out."


def _ranges(numbers: list[int]) -> str:
    """The names of states, with ranges.

    >>> _ranges([3, 5, 6, 7, 9])
    's3, s5–s7, s9'
    """
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(f"s{a}" if a == b else f"s{a}–s{b}" if b > a + 1 else f"s{a}, s{b}" for a, b in runs)


def marks(state: State) -> list[str]:
    """What is special about a state."""
    words = ["initial"] if state.predecessor is None else []
    words += ["terminal"] if state.terminal else []
    return words + [f"violates {visible(name)}" for name in state.violated]


def edge_text(edge: Edge) -> str:
    """`process: handler` with its choices, or the fault."""
    what = FAULTS[edge.kind].split(" ", 1)[1].lower() if edge.kind in FAULTS else visible(edge.label)
    if edge.kind == "recover" and edge.label != "recover":
        what = f"{what} ({visible(edge.label)})"
    chosen = f" {', '.join(visible(text(choice)) for choice in edge.choices)}" if edge.choices else ""
    return f"{visible(edge.lane)}: {what}{chosen}"


def edge_details(graph: StateGraph, edge: Edge) -> str:
    """A transition in full: source, target, handler, and the messages that it takes."""
    target = f"s{edge.target}" if edge.target is not None else "a failed assertion"
    verb = {"lose": "loses", "duplicate": "copies"}.get(edge.kind, "takes")
    taken = [f"{verb} {message_text(m)} from {visible(m.sender)}" for m in (graph.messages[i] for i in edge.consumed)]
    noted = [visible(line) for line in (edge.note or "").splitlines()]
    return "\n".join([f"s{edge.source} → {target}: {edge_text(edge)}", *taken, *noted])


def whole(graph: StateGraph, state: State) -> list[str]:
    """The whole state: a line for each process, monitor and pending message."""
    snapshot = state.snapshot
    lines = []
    for lane, fields in snapshot.fields.items():
        status = snapshot.status.get(lane)
        word = f"[{STATUS_WORDS.get(status, visible(status))}] " if status else ""
        lines.append(f"{visible(lane)}  {word}{record_text(fields) if status != 'unborn' else ''}".rstrip())
        lines += [f"    waiting: {_message(graph, i)}" for i in snapshot.pending.get(lane, [])]
    lines += [f"{visible(name)}  {_monitor(value)}" for name, value in snapshot.monitors.items()]
    if snapshot.budgets:
        lines.append("faults left: " + ", ".join(f"{visible(n)}: {c}" for n, c in snapshot.budgets.items()))
    return lines


def new(graph: StateGraph, state: State) -> list[str]:
    """The changes since the state from which it was first reached. For the initial state, all fields and messages."""
    before = _before(graph, state)
    lines = []
    now = state.snapshot
    for lane, status in now.status.items():
        if before.status.get(lane) != status and status != "unborn":
            lines.append(f"{visible(lane)} is {STATUS_WORDS.get(status, visible(status))}")
    for lane in before.status:
        if lane not in now.status:
            lines.append(f"{visible(lane)} is up")
    for lane, fields in now.fields.items():
        old = before.fields.get(lane, {})
        for name, value in fields.items():
            if name not in old or old[name] != value:
                lines.append(f"{visible(lane)}.{visible(name)} = {visible(text(value))}")
    for name, value in now.monitors.items():
        was = before.monitors.get(name)
        for field, part in value.items() if isinstance(value, dict) else ():
            if not isinstance(was, dict) or field not in was or was[field] != part:
                lines.append(f"{visible(name)}.{visible(field)} = {visible(text(part))}")
    for lane, pending in now.pending.items():
        arrived = Counter(pending) - Counter(before.pending.get(lane, []))
        lines += [f"→ {visible(lane)}: {message_text(graph.messages[i])}" for i in arrived.elements()]
    return lines


def gone(graph: StateGraph, state: State) -> list[str]:
    """The messages that were pending in the state before, and are not pending any more."""
    before = _before(graph, state)
    lines = []
    for lane, pending in before.pending.items():
        taken = Counter(pending) - Counter(state.snapshot.pending.get(lane, []))
        lines += [_message(graph, i) for i in taken.elements()]
    return lines


def _before(graph: StateGraph, state: State) -> Snapshot:
    return graph.states[state.predecessor - 1].snapshot if state.predecessor is not None else Snapshot(fields={})


def _message(graph: StateGraph, number: int) -> str:
    m = graph.messages[number]
    return f"{message_text(m)} from {visible(m.sender)}"


def _monitor(value: object) -> str:
    return record_text(value) if isinstance(value, dict) else visible(text(value))
