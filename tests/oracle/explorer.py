"""The slow, obvious checker: breadth first over whole global states, without tabulation, interning or native code."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from plait import Property, System
from plait.model.view import View
from tests.oracle.relation import FIELDS, State, initial_states, make, make_message, successors
from tests.oracle.relation import moves as leads_on


class Result(NamedTuple):
    kind: str
    length: int | None  # steps to the nearest counterexample (of a reachable property: to the nearest example)
    violated: bool


class Exploration(NamedTuple):
    seen: dict[State, int]  # all reachable states within the bound, with their distance from the nearest initial one
    states: int
    depth: int
    transitions: int
    terminal: int
    properties: dict[str, Result]  # by name, with the built-in ones
    violated: set[str]
    complete: bool
    ends: list[State]  # the terminal ones
    outside: int  # the states outside of the bound: they are checked, but not expanded
    __repr__ = lambda self: f"Exploration({self.states} states, {self.transitions} transitions)"  # noqa: E731


def explore(system: System, *, limit: float = math.inf, until: str | None = None) -> Exploration:
    """Search all states breadth first, and give up beyond a limit, or when the length for a property is known."""
    starts, transitions, ends = initials(system), 0, list[State]()
    # Temporal properties are in tests/oracle/lassos.py, refinements in tests/oracle/refinement.py.
    properties = [p for p in system.properties if p.kind not in ("temporal", "refinement")]
    seen, queue, lengths, outside = dict.fromkeys(starts, 0), list(starts), dict[str, int](), set[State]()
    for state in queue:  # grows while it is read: first in, first out
        view = view_of(system, state)
        outside |= {state} if system.within is not None and not is_true(system.within, view) else set()
        depth, moves = seen[state], [] if state in outside else list(successors(system, state))
        terminal = state not in outside and not leads_on(system, state, moves)
        transitions += len(moves)
        ends += [state] if terminal else []
        view = view_of(system, state)  # again: steps have used the shared objects
        for prop in properties:
            asked = terminal or prop.kind != "final"
            if asked and is_true(prop, view) == (prop.kind == "reachable"):
                lengths.setdefault(prop.name, depth)
        for t in moves:
            if t.state is None:
                lengths.setdefault(t.violates, depth + 1)
        if len(seen) > limit or until in lengths:
            break
        for t in moves:
            if t.state is not None and t.state not in seen:
                seen[t.state] = depth + 1
                queue.append(t.state)
    kinds = {"assertions": "always", "no_exceptions": "always", **{p.name: p.kind for p in properties}}
    missing = {n: k == "reachable" and not outside for n, k in kinds.items()}  # what no state shows may be outside
    results = {
        n: Result(k, lengths.get(n), missing[n] if n not in lengths else k != "reachable") for n, k in kinds.items()
    }
    complete = len(seen) <= limit and until not in lengths
    seen = {state: depth for state, depth in seen.items() if state not in outside}
    violated, size, depth = {n for n, r in results.items() if r.violated}, len(seen), max(seen.values(), default=0)
    return Exploration(seen, size, depth, transitions, len(ends), results, violated, complete, ends, len(outside))


def initials(system: System) -> list[State]:
    """The initial states that `initially` allows."""
    allowed = system.initially
    return [state for state in initial_states(system) if allowed is None or evaluate(system, state, allowed)]


def evaluate(system: System, state: State, prop: Property) -> bool:
    return is_true(prop, view_of(system, state))


def is_true(prop: Property, view: View) -> bool:
    try:
        return bool(prop(view))
    except AssertionError:
        return False


def view_of(system: System, state: State) -> View:
    FIELDS.load(system, state)
    fields = functools.cache(lambda i: vars(make(system.classes[i], state.slots[i].fields)))
    return View(
        system,
        lambda i: (state.slots[i].status, fields(i)),  # type: ignore[arg-type, return-value]
        lambda i: tuple(make_message(system, entry) for entry in state.slots[i].inbox),
        lambda i: make(type(system.monitors[i]), state.monitors[i]),
        cell=lambda i: FIELDS.values[system.cells[i]],
    )
