"""Whether a run repeats fairly on the present model. If not, which assumption it violates.

`plait.check.live.lasso.is_fair` defines fairness of a loop. This module asks about one assumption at a time, to name
the one that fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait._native import Transition
from plait.check.explain.tracing import Tracer
from plait.check.live.lasso import Lasso, changes, closes, is_fair
from plait.check.live.search import engine_fairness, flattened
from plait.check.reduce.decomposition import decompose
from plait.kernel.values import text
from plait.model.fairness import Fairness
from plait.model.properties import Property
from plait.model.system import System, with_properties


def comes_back(lasso: Lasso, system: System, properties: Sequence[Property]) -> bool:
    """Whether the loop of the run repeats. Fields that are auxiliary for the properties may change all the time.

    A lasso of relevant parts (`plait.check.explain.lifting`) repeats everything that predicates and steps read.
    """
    if closes(lasso):
        return True
    if lasso.loop is None or not changes(lasso):
        return False
    runner, visited = lasso.tracer.runner, lasso.tracer.visited
    start, end = (runner.engine.components(visited[i]) for i in (lasso.loop, -1))
    if start[1:] != end[1:]:
        return False
    auxiliary = decompose(with_properties(system, flattened(properties)), "auto").auxiliary
    for index, cls in enumerate(runner.system.classes):
        (was, before), (now, after) = (runner.tabulation.local_value(index, local[0][index]) for local in (start, end))
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        if was != now or not changed <= auxiliary.get(cls, frozenset()):
            return False
    return True


def broken(lasso: Lasso, system: System, given: Sequence[Fairness]) -> str | None:
    """The first assumption that the loop does not meet, and what never happens, as text; None if it meets all."""
    for one in given:
        for strong, places, by_message in engine_fairness(system, [one]):
            for process in sorted({process for process, _ in places}):
                own = [place for place in places if place[0] == process]
                if not is_fair(lasso, [(strong, own, by_message)]):
                    often = "in some states of the loop" if strong else "in all states of the loop"
                    if by_message:
                        missed = f"{_message(lasso, own, strong)} is deliverable {often} and never delivered"
                    else:
                        missed = f"{_steps(lasso, own)} is enabled {often} and never happens"
                    return f"{one}: {missed}"
    return None


def _possible(lasso: Lasso, places: Sequence[tuple[int, int]]) -> list[list[Transition]]:
    """For each state of the loop, the steps of these handlers that lead out of the state."""
    successors = lasso.tracer.runner.engine.successors
    return [
        [
            t
            for t in successors(state)
            if t.kind == "step" and (t.process, t.handler) in places and not t.failure and t.state != state
        ]
        for state in lasso.tracer.visited[lasso.loop : -1]
    ]


def _steps(lasso: Lasso, places: Sequence[tuple[int, int]]) -> str:
    """The process, and its handlers that could run."""
    tracer = lasso.tracer
    labels = dict.fromkeys(tracer.label(t) for steps in _possible(lasso, places) for t in steps)
    return f"{tracer.names[places[0][0]]} {' or '.join(labels)}"


def _message(lasso: Lasso, places: Sequence[tuple[int, int]], strong: bool) -> str:
    """A message that the process could take, and does not."""
    tracer = lasso.tracer
    waiting = [{(sender, m) for t in steps for _, sender, m in t.consumed} for steps in _possible(lasso, places)]
    some = set.union(*waiting) if strong else set.intersection(*waiting)
    taken = {
        (sender, m)
        for t in tracer.taken[lasso.loop :]
        if (t.process, t.handler) in places
        for _, sender, m in t.consumed
    }
    sender, content = min(some - taken)
    return f"{_message_text(tracer, content, sender)} to {tracer.names[places[0][0]]}"


def _message_text(tracer: Tracer, content: bytes, sender: int) -> str:
    name, kind, fields = tracer.message(content, sender)
    return f"{kind}({', '.join(f'{key}={text(value)}' for key, value in fields.items())}) from {name}"
