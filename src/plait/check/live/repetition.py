"""Whether a run repeats fairly on the present model. If not, which assumption it violates.

`plait.check.live.lasso.is_fair` defines fairness of a loop. This module asks about one assumption at a time, to name
the one that fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait._native import Transition
from plait.check.explain.tracing import Tracer
from plait.check.live.lasso import (
    EngineFairness,
    Lasso,
    changes,
    closes,
    differences,
    happening,
    is_fair,
    place_of,
)
from plait.check.live.search import engine_fairness, flattened
from plait.check.reduce.decomposition import decompose
from plait.check.source.dataflow import Owner
from plait.kernel.values import text
from plait.model.fairness import Fairness
from plait.model.properties import Property
from plait.model.system import System


def comes_back(lasso: Lasso, system: System, properties: Sequence[Property]) -> bool:
    """Whether the loop of the run repeats. Fields that are auxiliary for the properties may change all the time.

    A lasso of relevant parts (`plait.check.explain.lifting`) repeats everything that predicates and steps read.
    """
    if closes(lasso):
        return True
    if lasso.loop is None or not changes(lasso):
        return False
    found = differences(lasso)
    if found is None:
        return False
    auxiliary = decompose(flattened(system, properties), "auto").auxiliary
    owners: list[Owner] = [*system.classes, *map(system.shared_class, system.cells)]
    return all(name in auxiliary.get(owners[index], ()) for index, name in found)


def broken(lasso: Lasso, system: System, given: Sequence[Fairness]) -> str | None:
    """The first assumption that the loop does not meet, and what never happens, as text; None if it meets all."""
    if lasso.loop is None and not lasso.tracer.runner.may_end(lasso.tracer.state):
        return None  # the run goes on
    for one in given:
        for assumed in engine_fairness(system, [one]):
            if assumed.demand == "loss":
                if not is_fair(lasso, [assumed]):
                    return f"{one}: {_lost(lasso, assumed)} is lost again and again and never delivered"
                continue
            for process in sorted({process for process, _ in assumed.handlers}):
                own = assumed._replace(handlers=[place for place in assumed.handlers if place[0] == process])
                if not is_fair(lasso, [own]):
                    often = "in some states of the loop" if own.demand == "strong" else "in all states of the loop"
                    often = often if lasso.loop is not None else "in the last state"
                    if own.messages is not None:
                        missed = f"{_message(lasso, own, own.messages)} is deliverable {often} and never delivered"
                    else:
                        missed = f"{_steps(lasso, own.handlers)} is enabled {often} and never happens"
                    return f"{one}: {missed}"
    return None


def _possible(lasso: Lasso, places: Sequence[tuple[int, int]]) -> list[list[Transition]]:
    """For each state of the loop, the steps of these handlers that lead out of the state."""
    successors = lasso.tracer.runner.engine.successors
    return [
        [t for t in successors(state) if place_of(t) in places and not t.failure and t.state != state]
        for state in lasso.repeated
    ]


def _steps(lasso: Lasso, places: Sequence[tuple[int, int]]) -> str:
    """The process, and its handlers that could run."""
    tracer = lasso.tracer
    steps = [t for possible in _possible(lasso, places) for t in possible]
    labels = dict.fromkeys(tracer.label(t) for t in steps)
    return f"{tracer.lane(steps[0])} {' or '.join(labels)}"


def _lost(lasso: Lasso, assumed: EngineFairness) -> str:
    """A message that is lost in the loop, and not taken."""
    happens = happening(lasso, [assumed])
    missed = (one.message for one in happens if one.lost and one._replace(lost=False) not in happens)
    receiver, sender, content = min(message for message in missed if message is not None)
    return f"{_message_text(lasso.tracer, content, sender)} to {lasso.tracer.names[receiver]}"


def _message(lasso: Lasso, own: EngineFairness, heads: tuple[bytes, ...]) -> str:
    """A message that the process could take, and does not."""
    tracer, places = lasso.tracer, own.handlers

    def consumed(steps: Sequence[Transition]) -> set[tuple[int, bytes]]:
        return {(sender, m) for t in steps for _, sender, m in t.consumed if m.startswith(heads)}

    waiting = [consumed(steps) for steps in _possible(lasso, places)]
    some = set.union(*waiting) if own.demand == "strong" else set.intersection(*waiting)
    repeated = [] if lasso.loop is None else tracer.taken[lasso.loop :]
    taken = consumed([t for t in repeated if (t.process, t.handler) in places])
    sender, content = min(some - taken)
    return f"{_message_text(tracer, content, sender)} to {tracer.names[places[0][0]]}"


def _message_text(tracer: Tracer, content: bytes, sender: int) -> str:
    name, kind, fields = tracer.message(content, sender)
    return f"{kind}({', '.join(f'{key}={text(value)}' for key, value in fields.items())}) from {name}"
