"""Infinite runs, the slow and obvious way: all lassos up to a length, and all sets of states that a run may end up in.

Nothing here knows of automata. A lasso is fair if its loop is, by the definitions of `plait.model.fairness`; a formula is
evaluated on it by unrolling what its operators mean.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import networkx

from plait import System, everybody, tick
from plait.model.fairness import Fairness
from plait.model.process import Process, Recovery
from plait.model.system import plays
from plait.model.temporal import Formula
from tests.oracle.explorer import Exploration, evaluate
from tests.oracle.relation import State, Transition, make_message, rests, successors
from tests.oracle.relation import moves as leads_on


class Edge(NamedTuple):
    source: State
    target: State
    classes: frozenset[Any]  # the classes of steps that it is in


class Runs:
    """The graph of a small system, for one set of assumptions."""

    def __init__(self, system: System, truth: Exploration, assumed: Sequence[Fairness]) -> None:
        self.system, self.assumed = system, assumed
        self.starts = [state for state, depth in truth.seen.items() if depth == 0]
        self.edges: dict[State, list[Edge]] = {}
        self.silent: dict[State, frozenset[Any]] = {}  # the classes of steps that change nothing
        for state in truth.seen:
            transitions = list(successors(system, state))
            silent = [self.classes(t) for t in transitions if t.state == state]
            self.silent[state] = frozenset().union(*silent)
            moves = [t for t in transitions if t.state not in (None, state)]
            self.edges[state] = [Edge(state, t.state, self.classes(t)) for t in moves if t.state is not None]
            if not leads_on(system, state, moves) or rests(system, state):
                self.edges[state].append(Edge(state, state, frozenset()))  # a run may stay there

    def classes(self, t: Transition) -> frozenset[Any]:
        if t.kind == "tick":
            return frozenset((number, t.process) for number, one in enumerate(self.assumed) if one.of is tick)
        found: set[Any] = set()
        cls = self.system.classes[t.process]
        for number, one in enumerate(self.assumed):
            if one.by_message:
                if t.kind == "step" or (t.kind == "lose" and one.demand == "loss"):
                    named = ((entry, make_message(self.system, entry)) for entry in t.consumed)
                    own = {(number, t.process, entry, t.kind) for entry, m in named if isinstance(m, one.of)}  # type: ignore[arg-type]
                    found |= own
            elif one.of is everybody:
                found |= {(number, t.process)} if t.kind in ("step", "recover") else set()
            elif isinstance(one.of, Recovery):
                found |= {(number, t.process)} if t.kind == "recover" and plays(cls, one.of.role) else set()
            elif t.kind != "step":
                continue
            elif isinstance(one.of, type) and issubclass(one.of, Process):
                found |= {(number, t.process)} if plays(cls, one.of) else set()
            elif any(getattr(base, t.label, None) is one.of for base in cls.__mro__):
                found |= {(number, t.process)}
        return frozenset(found)

    def enabled(self, state: State) -> frozenset[Any]:
        return frozenset().union(*(edge.classes for edge in self.edges[state]))

    def is_fair(self, states: Sequence[State], edges: Sequence[Edge]) -> bool:
        """Whether a run is fair that is in these states, and takes these edges, again and again."""
        happens = frozenset().union(*(edge.classes for edge in edges))
        enabled = [self.enabled(state) for state in states]
        for one in frozenset().union(*enabled) - happens:
            demand = self.assumed[one[0]].demand
            if demand == "strong" or (demand == "weak" and all(one in here for here in enabled)):
                return False
        lost = {one for one in happens if one[-1] == "lose"}
        delivered = happens.union(*(self.silent[state] for state in states))
        return all((*one[:-1], "step") in delivered for one in lost)

    def lassos(self, length: int) -> Iterator[tuple[list[State], int]]:
        """All fair lassos of so many states: the states, and where the loop begins. The edge back is the last one."""
        stack: list[tuple[list[State], list[Edge]]] = [([start], []) for start in self.starts]
        while stack:
            states, edges = stack.pop()
            for edge in self.edges.get(states[-1], []):  # a state outside of the bound has none
                for begin in (i for i, state in enumerate(states) if state == edge.target):
                    if self.is_fair(states[begin:], [*edges[begin:], edge]):
                        yield states, begin
                if len(states) < length:
                    stack.append(([*states, edge.target], [*edges, edge]))

    def ends(self, among: set[State]) -> Iterator[frozenset[State]]:
        """All sets of states that a fair run may be in again and again, of these."""
        whole = [e for s in among for e in self.edges[s] if e.target in among]
        losses = {one for e in whole for one in e.classes if one[-1] == "lose"}
        # A run may do without some losses.
        for avoided in itertools.chain.from_iterable(itertools.combinations(losses, n) for n in range(len(losses) + 1)):
            graph = networkx.MultiDiGraph()
            graph.add_nodes_from(among)
            graph.add_edges_from((e.source, e.target) for e in whole if not e.classes & {*avoided})
            for component in networkx.strongly_connected_components(graph):
                for size in range(1, len(component) + 1):
                    for some in itertools.combinations(component, size):
                        inside = [e for e in whole if e.source in some and e.target in some]
                        edges = [e for e in inside if not e.classes & {*avoided}]
                        if edges and networkx.is_strongly_connected(graph.subgraph(some)) and self.is_fair(some, edges):
                            yield frozenset(some)

    def reach(self, sources: set[State], among: set[State]) -> set[State]:
        """What can be reached from some states, through these."""
        found = sources & among
        waiting = list(found)
        for state in waiting:
            new = {e.target for e in self.edges[state]} & among - found
            found |= new
            waiting += new
        return found

    def truth(self, predicate: Any) -> set[State]:
        return {state for state in self.edges if evaluate(self.system, state, predicate)}


def holds_on(formula: Formula, states: Sequence[State], begin: int, truths: dict[str, set[State]], at: int = 0) -> bool:
    """Whether a formula is true at a position of a lasso: each operator by its definition, over what lies ahead."""
    name = type(formula).__name__
    ahead = list(range(at, len(states))) + list(range(begin, min(at, len(states))))

    def true(part: Formula, where: int) -> bool:
        return holds_on(part, states, begin, truths, where)

    parts = formula.parts
    match name:
        case "Constant":
            return bool(formula.value)  # type: ignore[attr-defined]
        case "Atom":
            return states[at] in truths[str(formula)]
        case "Not":
            return not true(parts[0], at)
        case "And":
            return true(parts[0], at) and true(parts[1], at)
        case "Or":
            return true(parts[0], at) or true(parts[1], at)
        case "Implies":
            return not true(parts[0], at) or true(parts[1], at)
        case "Next":
            return true(parts[0], at + 1 if at + 1 < len(states) else begin)
        case "Globally":
            return all(true(parts[0], i) for i in ahead)
        case "Finally":
            return any(true(parts[0], i) for i in ahead)
        case "Until" | "WeakUntil":
            for i in ahead:
                if true(parts[1], i):
                    return True
                if not true(parts[0], i):
                    return False
            return name == "WeakUntil"
        case "Release":
            for i in ahead:
                if not true(parts[1], i):
                    return False
                if true(parts[0], i):
                    return True
            return True
    raise TypeError(name)
