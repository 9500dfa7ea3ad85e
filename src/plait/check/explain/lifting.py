"""From a run of relevant parts to a run of the model: a counterexample shows every field (DBSS, Theorem 1).

After a search with decomposition, the local states of a path have holes. By Definition 1, the same transitions are
possible from the full initial state, and lead to states with the same relevant parts. This module takes them on an
engine without decomposition. If no transition fits, that is a bug of Plait. It is never reported as a violation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait._native import Transition
from plait.check.explain.tracing import Tracer
from plait.check.reduce.relevance import Relevance
from plait.check.runner import Runner
from plait.kernel.trace import Event
from plait.model.properties import Property


def lifted(runner: Runner, start: Sequence[int], path: Sequence[Transition]) -> tuple[Tracer, list[Event]]:
    """Take the transitions of a reduced run on the full model, from an initial state with the same relevant part."""
    plain = Runner(runner.system)
    wanted = _contents(runner, start)
    full = next((state for state, _ in plain.initial if _relevant(runner, plain, state) == wanted), None)
    if full is None:
        raise RuntimeError("the relevant part of the initial state is not the one of the search")
    tracer = Tracer(plain, full)
    events = []
    for number, step in enumerate(path, 1):
        target = None if step.failure else _contents(runner, step.state)
        fits = (
            t
            for t in plain.engine.successors(tracer.state)
            if signature(t) == signature(step) and (t.failure or _relevant(runner, plain, t.state) == target)
        )
        chosen = next(fits, None)
        if chosen is None:
            raise RuntimeError(f"step {number} of a run of relevant parts is not possible in the model")
        events.append(tracer.step(chosen))
    return tracer, events


def confirm(tracer: Tracer, prop: Property) -> None:
    """The last full state must decide the property."""
    runner = tracer.runner
    number = [p.name for p in runner.system.properties].index(prop.name)
    decided = runner.holds(number, tracer.state) == (prop.kind == "reachable")
    if not decided or (prop.kind == "final" and not runner.is_terminal(tracer.state)):
        raise RuntimeError(f"the run that was found for {prop.name} does not decide it")


def signature(t: Transition) -> tuple[Any, ...]:
    """The part of a transition that does not depend on fields."""
    consumed = sorted((sender, content) for _, sender, content in t.consumed)
    return t.kind, t.process, t.handler, consumed, t.choices, list(t.spawned), bool(t.failure)


def _contents(runner: Runner, state: Sequence[int]) -> tuple[Any, ...]:
    """A state as content. The ids of two engines cannot be compared."""
    locals_, inboxes, monitors, budgets = runner.engine.components(state)
    store = runner.engine.store
    return (
        [store.local(i) for i in locals_],
        [_inbox(runner, i) for i in inboxes],
        [store.monitor(i) for i in monitors],
        list(budgets),
        runner.engine.leads(state),
    )


def _relevant(reduced: Runner, plain: Runner, state: Sequence[int]) -> tuple[Any, ...]:
    tabulation = reduced.tabulation
    assert isinstance(tabulation, Relevance)
    locals_, *rest = _contents(plain, state)
    return ([tabulation.erased(i, local) for i, local in enumerate(locals_)], *rest)


def _inbox(runner: Runner, inbox: int) -> list[tuple[int, bytes]]:
    pending = [(sender, content) for _, sender, content in runner.engine.store.inbox(inbox)]
    if runner.system.network.kind == "mailbox":
        return pending
    if runner.system.network.kind == "fifo":
        return sorted(pending, key=lambda message: message[0])  # the order within a queue matters
    return sorted(pending)
