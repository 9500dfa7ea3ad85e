"""The slow, obvious checker: breadth first over whole global states.

No tabulation, no interning, no hashing tricks, no native code. A state is a nested tuple; a successor is made by
running a handler on fresh copies of everything. What the native engine counts and finds must equal what this does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from plait.model.properties import Property
from plait.model.system import System
from plait.model.view import View
from tests.oracle.relation import State, Transition, initial, make_message, successors
from tests.oracle.replay import replay
from tests.oracle.values import make, thaw_fields

__all__ = ["Exploration", "Result", "State", "Transition", "evaluate", "explore", "initial", "replay", "successors"]


@dataclasses.dataclass
class Result:
    """A property, and the number of steps to the nearest counterexample (of a reachable one: the nearest example)."""

    kind: str
    length: int | None = None

    @property
    def violated(self) -> bool:
        return (self.length is None) == (self.kind == "reachable")

    def found(self, depth: int) -> None:
        if self.length is None:
            self.length = depth


@dataclasses.dataclass
class Exploration:
    seen: dict[State, int]
    """All reachable states, with their distance from the initial one."""
    properties: dict[str, Result]
    """By name, with "assertions" for the handlers' own."""
    transitions: int = 0
    terminal: int = 0
    complete: bool = True

    @property
    def states(self) -> int:
        return len(self.seen)

    @property
    def depth(self) -> int:
        return max(self.seen.values())

    @property
    def violated(self) -> set[str]:
        return {name for name, result in self.properties.items() if result.violated}


def explore(
    system: System,
    *,
    keep_going: bool = True,
    limit: int | None = None,
    visit: Callable[[State, list[Transition]], None] | None = None,
) -> Exploration:
    """Search all states breadth first; without `keep_going`, until the first counterexample.

    With more than `limit` states it gives up. `visit` is called with every state and its transitions.
    """
    start = initial(system)
    results = {"assertions": Result("always"), **{p.name: Result(p.kind) for p in system.properties}}
    found = Exploration({start: 0}, results)
    queue = [start]
    for state in queue:  # grows while it is read: first in, first out
        depth, moves = found.seen[state], list(successors(system, state))
        terminal = not any(t.kind == "step" and t.state != state for t in moves)
        found.transitions += len(moves)
        found.terminal += terminal
        for prop in system.properties:
            asked = terminal or prop.kind != "final"
            if asked and evaluate(system, state, prop) == (prop.kind == "reachable"):
                results[prop.name].found(depth)
        if any(t.state is None for t in moves):
            results["assertions"].found(depth + 1)
        if visit is not None:
            visit(state, moves)
        stop = not keep_going and any(r.violated for r in results.values() if r.kind != "reachable")
        if stop or (limit is not None and found.states > limit):
            found.complete = False
            break
        for t in moves:
            if t.state is not None and t.state not in found.seen:
                found.seen[t.state] = depth + 1
                queue.append(t.state)
    return found


def evaluate(system: System, state: State, prop: Property) -> bool:
    view = View(
        system,
        lambda i: (state.slots[i].status, thaw_fields(system.classes[i], state.slots[i].fields)),  # type: ignore[arg-type, return-value]
        lambda i: tuple(make_message(system, entry) for entry in state.slots[i].inbox),
        lambda i: make(type(system.monitors[i]), state.monitors[i]),
    )
    try:
        return bool(prop(view))
    except AssertionError:
        return False
