"""What a process goes through: its sequences of local states without repetitions, as the language of a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from plait import System
from tests.oracle.relation import State, initial, successors

Local = Hashable


class Graph(NamedTuple):
    """A finite transition graph, and the local states of all processes in each node."""

    start: Any
    moves: dict[Any, list[Any]]
    locals: Callable[[Any], tuple[Local, ...]]

    @property
    def reachable(self) -> set[tuple[Local, ...]]:
        """The combinations of local states that are reached."""
        return {self.locals(node) for node in self.moves}


class TooLargeError(Exception):
    """The graph has more nodes than wanted."""


def graph(
    start: Any, step: Callable[[Any], Iterable[Any]], locals_: Callable[[Any], tuple[Local, ...]], limit: int
) -> Graph:
    """All that is reached from a start."""
    moves: dict[Any, list[Any]] = {}
    pending = [start]
    while pending:
        node = pending.pop()
        if node in moves:
            continue
        if len(moves) > limit:
            raise TooLargeError
        moves[node] = list(dict.fromkeys(step(node)))
        pending += [n for n in moves[node] if n not in moves]
    known = {node: locals_(node) for node in moves}
    return Graph(start, moves, known.__getitem__)


def locals_of(system: System, fields: list[str]) -> Callable[[State], tuple[Local, ...]]:
    """The local states in a state of a System: of each process its status and these fields count."""

    def locals_(state: State) -> tuple[Local, ...]:
        found = []
        for cls, slot in zip(system.classes, state.slots, strict=True):
            values = dict(zip(cls.__plait_fields__, slot.fields, strict=bool(slot.fields)))
            gone = slot.status == "crashed" or values.get("rounds_silent") == (bool, True)
            found.append(("crashed" if gone else slot.status, *(values.get(name) for name in fields)))
        return tuple(found)

    return locals_


def graph_of(system: System, fields: list[str], limit: int = 10_000) -> Graph:
    """The graph of a System, by the oracle."""

    def step(state: State) -> Iterable[State]:
        return (t.state for t in successors(system, state) if t.state is not None)

    return graph(initial(system), step, locals_of(system, fields), limit)


def difference(one: Graph, other: Graph, process: int) -> list[Local] | None:
    """A sequence of local states of a process that only one of the two has, or None: both are the same language.

    Subset construction on both at once: all nodes that can be reached with the sequence so far, and what can come next.
    """
    todo = [(_same(one, {one.start}, process), _same(other, {other.start}, process), [])]
    seen = set()
    while todo:
        here, there, sequence = todo.pop()
        if (here, there) in seen:
            continue
        seen.add((here, there))
        mine, theirs = _next(one, here, process), _next(other, there, process)
        for value in mine.keys() | theirs.keys():
            if value not in mine or value not in theirs:
                return [*sequence, value]
            todo.append((_same(one, mine[value], process), _same(other, theirs[value], process), [*sequence, value]))
    return None


def _same(g: Graph, nodes: set[Any], process: int) -> frozenset[Any]:
    """The nodes reached from these without a change of the process."""
    found, pending = set(nodes), list(nodes)
    while pending:
        node = pending.pop()
        for after in g.moves[node]:
            if after not in found and g.locals(after)[process] == g.locals(node)[process]:
                found.add(after)
                pending.append(after)
    return frozenset(found)


def _next(g: Graph, nodes: frozenset[Any], process: int) -> dict[Local, set[Any]]:
    """What the process may change to, and where that leads."""
    found: dict[Local, set[Any]] = {}
    for node in nodes:
        for after in g.moves[node]:
            value = g.locals(after)[process]
            if value != g.locals(node)[process]:
                found.setdefault(value, set()).add(after)
    return found
