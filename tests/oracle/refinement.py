"""Refinement, the slow and obvious way: every step of every state, and every set of states that a fair run ends up in."""

from __future__ import annotations

from typing import Any

from plait import System
from plait.model.refinement import Refinement
from tests.oracle.explorer import Exploration, explore, view_of
from tests.oracle.lassos import Runs
from tests.oracle.relation import State, freeze_fields, initial_states, successors


def refined(system: System, truth: Exploration, prop: Refinement) -> str:
    """How a System violates a refinement, if it does: initial, step or stuttering; otherwise "holds"."""
    abstract = prop.abstract
    mapped = {state: image(system, prop, state) for state in truth.seen}
    waiting = initial_states(abstract)
    reached = {fields(start): start for start in waiting}
    if any(depth == 0 and mapped[state] not in reached for state, depth in truth.seen.items()):
        return "initial"
    steps: set[tuple[Any, Any]] = set()
    for state in waiting:  # grows while it is read
        for t in successors(abstract, state):
            if t.state is not None:
                steps.add((fields(state), fields(t.state)))
                if fields(t.state) not in reached:
                    reached[fields(t.state)] = t.state
                    waiting.append(t.state)
    for state in truth.seen:
        for t in successors(system, state):
            if (
                t.state is not None
                and mapped[t.state] != mapped[state]
                and (mapped[state], mapped[t.state]) not in steps
            ):
                return "step"
    runs = Runs(system, truth, system.fairness)
    fair = Runs(abstract, explore(abstract), abstract.fairness)
    for value in set(mapped.values()):
        ends = runs.ends({state for state in truth.seen if mapped[state] == value})
        if fair.enabled(reached[value]) and any(ends):
            return "stuttering"
    return "holds"


def image(system: System, prop: Refinement, state: State) -> Any:
    return tuple(freeze_fields(process) for process in prop.processes(view_of(system, state)))


def fields(state: State) -> Any:
    return tuple(slot.fields for slot in state.slots)
