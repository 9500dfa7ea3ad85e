"""Counterexamples that people can read: the needed steps, in an order with few changes from process to process.

A run is changed in two ways. Each changed run is executed, so it certainly shows the same violation. It is described
only if it does: that takes longer than to execute it.

- *Fewer steps*: steps that lead from a state back to the same state are left out. Then single steps are left out, with
  all steps that depend on them, if the run still ends in a violation.
- *Fewer switches*: independent steps of different processes are exchanged, so that the run changes from process to
  process as seldom as possible. Dependent steps keep their order, so the last state stays the same.

A step depends on earlier steps of the same process, on the steps that sent its messages, on the step that spawned its
process, and on steps that read or write a shared field that it writes, or write one that it reads. Steps that announce
or spawn keep their order, because monitors and slots depend on it. A tick depends on all earlier steps, and all later
steps depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from plait._native import Transition
from plait.check.explain.lifting import signature
from plait.check.explain.tracing import Path, Tracer
from plait.check.runner import Runner
from plait.kernel.trace import Event

Shows = Callable[[Path], bool]
"""Whether a run shows what it must show."""

MOST_STEPS = 400
"""Longer runs are not changed: the time to find a better run grows with the square of the length."""
MOST_EXECUTED = 20_000
"""The limit of executed steps of changed runs, which takes a few seconds. It is a number of steps, not a time, so the
result is the same on every machine."""
MOST_CUTS = 20_000
"""The limit of positions from which orders are tried. After that, the best order so far is taken."""


def tidied(
    tracer: Tracer, events: list[Event], shows: Shows, *, shorten: bool
) -> tuple[Tracer, list[Event], str | None]:
    """A run that shows the same and is easier to read, and what was changed, as text; or the same run."""
    steps, saved, best = len(events), list[str](), len(events) + 1
    while len(events) < best:
        best, saved = len(events), []
        if shorten:
            tracer, events = _without_repeats(tracer, events, shows)
        if not 1 < len(events) <= MOST_STEPS:
            break
        if shorten:
            tracer, events, _ = shortened(tracer, events, shows=shows)
        before = switches([event.lane for event in events])
        order = ordered(events)
        after = switches([events[i].lane for i in order])
        again = executed(tracer.runner, tracer.visited[0], [tracer.taken[i] for i in order]) if after < before else None
        if again is not None and shows(again[0]):
            tracer, events = again
            saved = rearranged(after, before)
        if not shorten or len(_unrepeated(tracer)) == len(events):
            break
        # In this order, the run visits a state twice.
    return tracer, events, "; ".join([*left_out(len(events), steps), *saved]) or None


def _without_repeats(tracer: Tracer, events: list[Event], shows: Shows) -> tuple[Tracer, list[Event]]:
    """The run without steps that lead from a state back to the same state."""
    kept = _unrepeated(tracer)
    again = (
        executed(tracer.runner, tracer.visited[0], [tracer.taken[i] for i in kept]) if len(kept) < len(events) else None
    )
    return again if again is not None and shows(again[0]) else (tracer, events)


def _unrepeated(tracer: Tracer) -> list[int]:
    if tracer.taken and tracer.taken[-1].failure:  # a failing step need not change the state
        return [*unrepeated(tracer.visited[:-1]), len(tracer.taken) - 1]
    return unrepeated(tracer.visited)


def unrepeated(visited: Sequence[Sequence[int]]) -> list[int]:
    """The steps of a run through these states, without the steps that lead from a state back to the same state.

    >>> unrepeated([[0], [1], [2], [1], [3]])
    [0, 3]
    """
    last = {tuple(state): place for place, state in enumerate(visited)}
    kept, at = [], last[tuple(visited[0])]
    while at < len(visited) - 1:
        kept.append(at)
        at = last[tuple(visited[at + 1])]
    return kept


def left_out(now: int, before: int) -> list[str]:
    """The number of steps that were saved, as text; an empty list if none."""
    return [f"left out {before - now} of {before} steps that are not needed"] if now < before else []


def rearranged(now: int, before: int) -> list[str]:
    """The number of switches that were saved, as text; an empty list if none."""
    return [f"reordered: the run switches between processes {now} times instead of {before}"] if now < before else []


def switches(lanes: Sequence[str]) -> int:
    """The number of times that a run changes from one process to another.

    >>> switches(["a", "a", "b", "a"])
    2
    """
    return sum(a != b for a, b in pairwise(lanes))


def executed(runner: Runner, start: Sequence[int], steps: Sequence[Transition]) -> tuple[Tracer, list[Event]] | None:
    """The run of equal steps from an initial state, or None if it is not possible."""
    path = followed(runner, start, steps)
    return None if path is None else _described(path)


def followed(runner: Runner, start: Sequence[int], steps: Sequence[Transition]) -> Path | None:
    """The run of equal steps without a description, or None if it is not possible, or leaves the bound of the search."""
    path = Path(runner, start)
    for step in steps:
        chosen = _like(runner, path.state, step)
        if chosen is None or not runner.is_within(path.state):
            return None
        path.take(chosen)
    return path


def _described(path: Path) -> tuple[Tracer, list[Event]]:
    tracer = Tracer(path.runner, path.visited[0])
    return tracer, [tracer.step(transition) for transition in path.taken]


def _like(runner: Runner, state: Sequence[int], step: Transition) -> Transition | None:
    """The step out of a state that is equal to another step, or None."""
    wanted = signature(step)
    return next((t for t in runner.engine.successors(state) if signature(t) == wanted), None)


def dependence(events: Sequence[Event]) -> list[set[int]]:
    """For each event, the earlier events that it depends on directly."""
    last: dict[str, int] = {}
    sender: dict[int, int] = {}
    writer: dict[str, int] = {}
    readers: dict[str, set[int]] = {}
    found: list[set[int]] = []
    tick: set[int] = set()
    for number, event in enumerate(events):
        before = {sender[message] for message in event.consumed if message in sender} | tick
        if event.kind == "tick":
            before |= set(last.values())
            tick = {number}
        read, written = (
            {name for name in names if "." in name and event.kind != "tick"} for names in (event.read, event.changed)
        )
        before |= {writer[cell] for cell in read | written if cell in writer}
        for cell in written:
            before |= readers.pop(cell, set())
            writer[cell] = number
        for cell in read:
            readers.setdefault(cell, set()).add(number)
        before.discard(number)
        lanes = [event.lane, *event.spawned]
        lanes += ["#monitors"] if event.announced else []
        lanes += ["#slots"] if event.spawned else []
        for lane in lanes:
            if lane in last:
                before.add(last[lane])
            last[lane] = number
        sender |= dict.fromkeys(event.sent, number)
        found.append(before)
    return found


def shortened(
    tracer: Tracer,
    events: list[Event],
    accept: Callable[[Tracer, list[Event], list[int]], bool] = lambda *_: True,
    *,
    shows: Shows = lambda _: True,
) -> tuple[Tracer, list[Event], list[int]]:
    """Leave steps out as long as the run shows it and is accepted, from the last one to the first, until none can be.

    A step is left out together with the steps that take its messages, and so on. If that is not enough, all steps that
    depend on it are left out, or all steps that are not possible any more. Return the remaining run, and the indices of
    its steps in the given run.
    """
    indices, number, found = list(range(len(events))), len(events), False
    left = MOST_EXECUTED
    while number > 0 and left > 0:
        number -= 1
        for kept in _ways_without(tracer, events, number):
            left -= len(events)
            path = followed(tracer.runner, tracer.visited[0], [tracer.taken[i] for i in kept])
            again = _described(path) if path is not None and shows(path) else None
            if again is not None and accept(*again, [indices[i] for i in kept]):
                (tracer, events), indices, found = again, [indices[i] for i in kept], True
                number = min(number, len(events))
                break
        if number == 0 and found:  # a step that was needed may not be needed any more
            number, found = len(events), False
    return tracer, events, indices


def _ways_without(tracer: Tracer, events: Sequence[Event], number: int) -> Iterator[list[int]]:
    """The ways to leave one step out: which steps remain."""
    for before in (_needs(events), dependence(events)):
        dropped = {number}
        for later in range(number + 1, len(events)):
            if before[later] & dropped:
                dropped.add(later)
        yield [i for i in range(len(events)) if i not in dropped]
    kept, state = list(range(number)), tracer.visited[number]
    for later in range(number + 1, len(events)):
        step = _like(tracer.runner, state, tracer.taken[later])
        if step is not None:
            kept.append(later)
            state = step.state
    yield kept


def _needs(events: Sequence[Event]) -> list[set[int]]:
    """For each event, the earlier events without which it is certainly not possible.

    They send its messages, start its process, or stop the process that it restarts.
    """
    sender: dict[int, int] = {}
    started: dict[str, int] = {}
    found = []
    for number, event in enumerate(events):
        before = {sender[message] for message in event.consumed if message in sender}
        if event.lane in started:
            before.add(started[event.lane])
        sender |= dict.fromkeys(event.sent, number)
        started |= dict.fromkeys(event.spawned, number)
        if event.kind == "crash":
            started[event.lane] = number
        elif event.kind == "recover":
            started.pop(event.lane, None)
        found.append(before)
    return found


def ordered(events: Sequence[Event]) -> list[int]:
    """An order with the fewest switches.

    It is never worse to continue with a process while it can: a run that returns to it later could have stayed. So
    there is a choice only if a process cannot continue. These positions are tried breadth first, by their number of
    switches.
    """
    before = dependence(events)
    if events[-1].note:  # a failed assertion ends the run
        before[-1] = set(range(len(events) - 1))
    mine: dict[str, list[int]] = {}
    for number, event in enumerate(events):
        mine.setdefault(event.lane, []).append(number)
    lanes = list(mine)
    position = {
        number: (lanes.index(event.lane), mine[event.lane].index(number)) for number, event in enumerate(events)
    }
    needs = [[position[i] for i in before[number]] for number in range(len(events))]

    def run(cut: tuple[int, ...], lane: int) -> tuple[int, ...]:
        """Continue with a process as far as possible."""
        own = mine[lanes[lane]]
        at = cut[lane]
        while at < len(own) and all(other == lane or place < cut[other] for other, place in needs[own[at]]):
            at += 1
        return (*cut[:lane], at, *cut[lane + 1 :])

    start, end = (0,) * len(lanes), tuple(len(own) for own in mine.values())
    parents: dict[tuple[int, ...], tuple[tuple[int, ...], int] | None] = {start: None}
    layer = [start]
    while end not in parents:
        following = []
        for cut in layer:
            for lane in range(len(lanes)):
                there = run(cut, lane)
                if there not in parents:
                    parents[there] = (cut, lane)
                    following.append(there)
        if len(parents) > MOST_CUTS:  # continue from the longest prefix
            following = [max(following, key=sum)]
        layer = following
    order: list[int] = []
    here = end
    while (step := parents[here]) is not None:
        cut, lane = step
        order[:0] = mine[lanes[lane]][cut[lane] : here[lane]]
        here = cut
    return order
