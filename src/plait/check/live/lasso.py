"""Lassos that people can read: fewer steps, and fewer changes from process to process, in the stem and in the loop.

As for other runs (`plait.check.explain.tidy`), each changed run is executed. The steps of its loop must change
something and return to the start of the loop. The run must violate the formula by the definition of the operators, and
must be fair: a changed loop visits other states, in which other steps are enabled. Stem and loop are reordered
separately, so that the first state of the loop stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from plait._native import Transition
from plait.check.explain.lifting import signature
from plait.check.explain.tidy import (
    MOST_STEPS,
    executed,
    left_out,
    ordered,
    rearranged,
    shortened,
    switches,
    unrepeated,
)
from plait.check.explain.tracing import Tracer
from plait.check.runner import Runner
from plait.kernel.trace import Event
from plait.kernel.values import to_data
from plait.model.fairness import Demand


class Lasso(NamedTuple):
    """A run that ends at the start of its loop; without a loop, in a terminal state."""

    tracer: Tracer
    events: list[Event]
    loop: int | None

    @property
    def repeated(self) -> list[list[int]]:
        """The states of the loop; without a loop, the last state, in which the run stays."""
        return self.tracer.visited[-1:] if self.loop is None else self.tracer.visited[self.loop : -1]

    @property
    def stem(self) -> int:
        """The number of steps before the loop."""
        return len(self.events) if self.loop is None else self.loop


RECOVERY = 2**16 - 1
TICK = 2**16 - 2


class EngineFairness(NamedTuple):
    """An assumption as the engine takes it."""

    demand: Demand
    handlers: Sequence[tuple[int, int]]
    """Each with its process. `RECOVERY` in place of a handler is the recovery of the process, `TICK` is the tick."""
    messages: tuple[bytes, ...] | None
    """One assumption for each message whose content begins with one of these; None: one for all steps together."""


class StepClass(NamedTuple):
    """Steps that an assumption names."""

    assumption: int
    message: tuple[int, int, bytes] | None = None
    """If there is an assumption for each message: the receiver, the sender and the content."""
    lost: bool = False
    """The message is lost, and not taken."""


Shows = Callable[[Lasso], bool]


def closes(lasso: Lasso) -> bool:
    """Whether the loop returns to its first state; without a loop, whether the run may end there."""
    tracer = lasso.tracer
    if lasso.loop is None:
        return tracer.runner.may_end(tracer.state)
    return changes(lasso) and tracer.visited[-1] == tracer.visited[lasso.loop]


def changes(lasso: Lasso) -> bool:
    """Whether there is a loop whose steps change something. A step that changes nothing does not count."""
    if lasso.loop is None or lasso.loop >= len(lasso.events):
        return False
    return all(here != there for here, there in pairwise(lasso.tracer.visited[lasso.loop :]))


def differences(lasso: Lasso) -> list[tuple[int, str]] | None:
    """The fields, each with the position of its process or cell, that differ before and after the loop.

    None if anything else differs.
    """
    runner, visited = lasso.tracer.runner, lasso.tracer.visited
    start, end = (runner.engine.components(visited[i]) for i in (lasso.stem, -1))
    if start[1:] != end[1:]:
        return None
    processes = len(runner.system.classes)
    found: list[tuple[int, str]] = []
    for number, cell in enumerate(runner.system.cells, processes):
        if start[0][number] != end[0][number]:
            found.append((number, cell.name))
    for index in range(processes):
        (was, before), (now, after) = (runner.tabulation.local_value(index, local[0][index]) for local in (start, end))
        if was != now:
            return None
        found += [(index, name) for name in before if to_data(before[name]) != to_data(after.get(name))]
    return found


def is_fair(lasso: Lasso, assumed: Sequence[EngineFairness]) -> bool:
    """Whether the loop meets assumptions.

    Weak: steps that are enabled in all states of the loop happen in it. Strong: steps that are enabled in any state do.
    Fair loss: a message that is lost in the loop is also taken in it.
    """
    tracer = lasso.tracer
    happens = happening(lasso, assumed)
    enabled = [_enabled(tracer.runner, state, assumed) for state in lasso.repeated]
    if any(one.lost and one._replace(lost=False) not in happens for one in happens):
        return False
    missing: set[StepClass] = set().union(*enabled) - happens

    def is_due(one: StepClass) -> bool:
        demand = assumed[one.assumption].demand
        return demand == "strong" or (demand == "weak" and all(one in here for here in enabled))

    return not any(is_due(one) for one in missing)


def happening(lasso: Lasso, assumed: Sequence[EngineFairness]) -> set[StepClass]:
    """The classes that have a step in the loop. A message is also taken by a step that changes nothing."""
    tracer = lasso.tracer
    silent: set[StepClass] = set()
    if any(one.demand == "loss" for one in assumed):
        for state in lasso.repeated:
            steps = (t for t in tracer.runner.engine.successors(state) if not t.failure and t.state == list(state))
            silent.update(*(_classes(t, assumed) for t in steps))
    taken = {one for one in silent if assumed[one.assumption].demand == "loss"}
    repeated = [] if lasso.loop is None else tracer.taken[lasso.loop :]
    return taken.union(*(_classes(t, assumed) for t in repeated))


def _classes(step: Transition, assumed: Sequence[EngineFairness]) -> set[StepClass]:
    found: set[StepClass] = set()
    for number, (demand, places, messages) in enumerate(assumed):
        lost = step.kind == "lose" and demand == "loss"
        if not lost and place_of(step) not in places:
            continue
        if messages is None:
            found.add(StepClass(number))
        else:
            named = ((sender, content) for _, sender, content in step.consumed if content.startswith(messages))
            found |= {StepClass(number, (step.process, *message), lost) for message in named}
    return found


def place_of(step: Transition) -> tuple[int, int | None]:
    """The process and the handler of a step, as assumptions name them."""
    return step.process, {"step": step.handler, "recover": RECOVERY, "tick": TICK}.get(step.kind)


def _enabled(runner: Runner, state: Sequence[int], assumed: Sequence[EngineFairness]) -> set[StepClass]:
    """The classes that have a step here. Steps that change nothing or fail do not count."""
    steps = (t for t in runner.engine.successors(state) if not t.failure and t.state != list(state))
    return set().union(*(_classes(t, assumed) for t in steps))


def tidied_lasso(lasso: Lasso, shows: Shows) -> tuple[Lasso, str | None]:
    """A lasso that shows the same and is easier to read, and what was changed, as text; or the same lasso."""
    if not 1 < len(lasso.events) <= MOST_STEPS or not shows(lasso):
        return lasso, None
    steps, begin = len(lasso.events), lasso.loop

    def lasso_of(tracer: Tracer, events: list[Event], kept: Sequence[int]) -> Lasso:
        return Lasso(tracer, events, None if begin is None else sum(i < begin for i in kept))

    lasso = _without_repeats(_rolled(lasso, shows), shows)
    begin = lasso.loop
    lasso = lasso_of(*shortened(lasso.tracer, lasso.events, lambda *some: shows(lasso_of(*some))))
    lasso = _rolled(lasso, shows)
    before = switches([event.lane for event in lasso.events])
    lasso = _reordered(lasso, shows)
    after = switches([event.lane for event in lasso.events])
    return lasso, "; ".join([*left_out(len(lasso.events), steps), *rearranged(after, before)]) or None


def _rolled(lasso: Lasso, shows: Shows) -> Lasso:
    """The same infinite run. Its loop begins as early as possible."""
    tracer, loop, end = lasso.tracer, lasso.loop, len(lasso.events)
    if loop is None:
        return lasso
    states, names = tracer.visited, [signature(step) for step in tracer.taken]
    while loop > 0 and states[loop - 1] == states[end - 1] and names[loop - 1] == names[end - 1]:
        loop, end = loop - 1, end - 1
    return _accepted(lasso, range(end), loop, shows)


def _without_repeats(lasso: Lasso, shows: Shows) -> Lasso:
    """Leave out steps of stem and loop that lead from a state back to the same state, unless they are needed."""
    stem = unrepeated(lasso.tracer.visited[: lasso.stem + 1])
    lasso = _accepted(lasso, [*stem, *range(lasso.stem, len(lasso.events))], lasso.loop and len(stem), shows)
    if lasso.loop is None:
        return lasso
    loop = unrepeated(lasso.tracer.visited[lasso.loop : -1])
    last = len(lasso.events) - 1
    return _accepted(lasso, [*range(lasso.loop), *(lasso.loop + i for i in loop), last], lasso.loop, shows)


def _accepted(lasso: Lasso, kept: Sequence[int], loop: int | None, shows: Shows) -> Lasso:
    """The lasso with some of its steps, if it shows the same; otherwise the whole lasso."""
    if len(kept) < len(lasso.events):
        again = executed(lasso.tracer.runner, lasso.tracer.visited[0], [lasso.tracer.taken[i] for i in kept])
        if again is not None and shows(made := Lasso(*again, loop)):
            return made
    return lasso


def _reordered(lasso: Lasso, shows: Shows) -> Lasso:
    """The lasso with the fewest changes from process to process, in the stem and in the loop."""
    for start, end in ((0, lasso.stem), (lasso.stem, len(lasso.events))):
        part = lasso.events[start:end]
        if len(part) < 2:
            continue
        order = [start + i for i in ordered(part)]
        whole = [*range(start), *order, *range(end, len(lasso.events))]
        lanes = [event.lane for event in lasso.events]
        if switches([lanes[i] for i in whole]) < switches(lanes):
            again = executed(lasso.tracer.runner, lasso.tracer.visited[0], [lasso.tracer.taken[i] for i in whole])
            if again is not None and shows(made := Lasso(*again, lasso.loop)):
                lasso = made
    return lasso
