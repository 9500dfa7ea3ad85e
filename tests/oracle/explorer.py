"""The slow, obvious checker: breadth first over whole global states, without tabulation, interning or native code."""

from __future__ import annotations

import math
from typing import NamedTuple

from plait import Property, System
from plait.model.view import View
from tests.oracle.relation import State, initial, make, make_message, successors


class Result(NamedTuple):
    kind: str
    length: int | None  # steps to the nearest counterexample (of a reachable property: to the nearest example)
    violated: bool


class Exploration(NamedTuple):
    seen: dict[State, int]  # all reachable states, with their distance from the initial one
    states: int
    depth: int
    transitions: int
    terminal: int
    properties: dict[str, Result]  # by name, with the built-in ones
    violated: set[str]
    complete: bool
    __repr__ = lambda self: f"Exploration({self.states} states, {self.transitions} transitions)"  # noqa: E731


def explore(system: System, *, limit: float = math.inf) -> Exploration:
    """Search all states breadth first, and give up beyond a limit."""
    start, transitions, terminals = initial(system), 0, 0
    properties = [p for p in system.properties if p.kind != "temporal"]  # those are in tests/oracle/lassos.py
    seen, queue, lengths = {start: 0}, [start], dict[str, int]()
    for state in queue:  # grows while it is read: first in, first out
        depth, moves = seen[state], list(successors(system, state))
        terminal = not any(t.kind == "step" and t.state != state for t in moves)
        transitions, terminals = transitions + len(moves), terminals + terminal
        for prop in properties:
            asked = terminal or prop.kind != "final"
            if asked and evaluate(system, state, prop) == (prop.kind == "reachable"):
                lengths.setdefault(prop.name, depth)
        for t in moves:
            if t.state is None:
                lengths.setdefault(t.violates, depth + 1)
        if len(seen) > limit:
            break
        for t in moves:
            if t.state is not None and t.state not in seen:
                seen[t.state] = depth + 1
                queue.append(t.state)
    kinds = {"assertions": "always", "no_exceptions": "always", **{p.name: p.kind for p in properties}}
    results = {n: Result(k, lengths.get(n), (n not in lengths) == (k == "reachable")) for n, k in kinds.items()}
    violated, size, depth = {n for n, r in results.items() if r.violated}, len(seen), max(seen.values())
    return Exploration(seen, size, depth, transitions, terminals, results, violated, size <= limit)


def evaluate(system: System, state: State, prop: Property) -> bool:
    view = View(
        system,
        lambda i: (state.slots[i].status, vars(make(system.classes[i], state.slots[i].fields))),  # type: ignore[arg-type, return-value]
        lambda i: tuple(make_message(system, entry) for entry in state.slots[i].inbox),
        lambda i: make(type(system.monitors[i]), state.monitors[i]),
    )
    try:
        return bool(prop(view))
    except AssertionError:
        return False
