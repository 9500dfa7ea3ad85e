"""Whether a run repeats, and fairly, on a model as it is now; and if not, which assumption it breaks.

What fairness means for a loop is said in one place, `plait.check.live.lasso.is_fair`. Here it is asked about one
assumption at a time, in order to name the one that fails.
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
    """Whether the run goes on for ever as it says; fields that are auxiliary to the properties may go on changing.

    A lasso of relevant parts (`plait.check.explain.lifting`) repeats in all that predicates and steps depend on.
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
    """The first assumption that the loop does not meet, and what is put off for ever, in words; None if it meets all."""
    for one in given:
        for strong, places, by_message in engine_fairness(system, [one]):
            for process in sorted({process for process, _ in places}):
                own = [place for place in places if place[0] == process]
                if not is_fair(lasso, [(strong, own, by_message)]):
                    often = "again and again in the loop" if strong else "all along the loop"
                    if by_message:
                        said = f"{_message(lasso, own, strong)} is deliverable {often} and never delivered"
                    else:
                        said = f"{_steps(lasso, own)} is enabled {often} and never happens"
                    return f"{one}: {said}"
    return None


def _possible(lasso: Lasso, places: Sequence[tuple[int, int]]) -> list[list[Transition]]:
    """Per state of the loop, the steps of these handlers that lead out of it."""
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
    """A message that could be taken by the process, and is not."""
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
    return f"{_told(tracer, content, sender)} to {tracer.names[places[0][0]]}"


def _told(tracer: Tracer, content: bytes, sender: int) -> str:
    name, kind, fields = tracer.message(content, sender)
    return f"{kind}({', '.join(f'{key}={text(value)}' for key, value in fields.items())}) from {name}"
