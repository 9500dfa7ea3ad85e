"""Temporal properties: the comparison of a verdict with all short lassos, and two small processes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from plait import (
    Process,
    Verdict,
    action,
    check,
    ltl,
    predicate,
)
from plait.check.explain.replay import replay
from plait.model.temporal import Formula
from tests.oracle.cyclic_systems import Drawn
from tests.oracle.lassos import Edge, Runs, holds_on
from tests.oracle.relation import State
from tests.oracle.replay import agrees, matches, successors


def verdict(made: Drawn, formula: Formula, **options: Any) -> Verdict:
    made.system.properties = [ltl(formula, name="it", fairness=made.fairness)]
    return check(made.system, explore=True, **options)


def walk(made: Drawn, runs: Runs, trace: Any) -> tuple[list[State], list[Edge]]:
    """The states and edges of a reported run, found by the oracle."""
    states, edges = [s for s in runs.starts if agrees(made.system, s, trace, trace.initial)][:1], list[Edge]()
    for event in trace.events:
        found = [
            t
            for t in successors(made.system, states[-1])
            if matches(made.system, t, trace, event) and t.state and agrees(made.system, t.state, trace, event.state)
        ]
        assert found, "the reported run is no run"
        assert found[0].state is not None
        edges.append(Edge(states[-1], found[0].state, runs.classes(found[0])))
        states.append(found[0].state)
    return states, edges


def compare(made: Drawn, formula: Formula, length: int, **options: Any) -> None:
    runs = Runs(made.system, made.truth, tuple(dict.fromkeys((*made.system.fairness, *made.fairness))))
    truths = {atom.name: runs.truth(atom) for atom in made.atoms}
    result = verdict(made, formula, **options)
    if result.status == "violated":
        assert result.trace is not None
        states, edges = walk(made, runs, result.trace)
        loop = result.trace.loop
        if loop is None:
            stay = next(e for e in runs.edges[states[-1]] if e.target == states[-1])
            edges, loop = [*edges, stay], len(states) - 1
        else:
            assert all(here != there for here, there in pairwise(states[loop:]))
            assert states.pop() == states[loop]
        assert runs.is_fair(states[loop:], edges[loop:])
        assert not holds_on(formula, states, loop, truths)
        assert len(list(replay(made.system, result.trace))) == len(result.trace)
    else:
        assert result.status == "holds"
        for states, loop in runs.lassos(length):
            assert holds_on(formula, states, loop, truths)


class Flip(Process):
    """Turns on and off for ever."""

    up: bool = False

    @action
    def flip(self) -> None:
        self.up = not self.up


class Worker(Process):
    """Has one thing to do."""

    done: bool = False

    @action(when=lambda self: not self.done)
    def work(self) -> None:
        self.done = True


@predicate
def done(s: Any) -> bool:
    return all(w.done for w in s[Worker])


@predicate
def up(s: Any) -> bool:
    return bool(s[Flip][0].up)
