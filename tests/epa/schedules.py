"""Random small traces, and all their permutations, in the most obvious way."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cache

from plait.epa.events import Event

BARRIER, LOCKS, RWLOCK = 900, (1000, 1001), 2000


def _programs(r: random.Random) -> list[list[Event]]:
    """What each thread does: thread 0 creates the others, and joins some of them."""
    children = r.randrange(1, 4)
    barrier = r.random() < 0.35
    programs: list[list[Event]] = []
    for thread in range(children + 1):
        body: list[Event] = []
        for _ in range(r.randrange(1, 4)):
            body += _block(r, thread)
        programs.append(body)
    if barrier:
        for thread, body in enumerate(programs):
            if thread:
                at = r.choice(_outside(body))
                body[at:at] = [Event(thread, "arrive", BARRIER), Event(thread, "depart", BARRIER)]
    main = programs[0]
    anywhere = r.random() < 0.5
    places = sorted(r.choices(range(len(main) + 1) if anywhere else _outside(main), k=children))
    for shift, (place, child) in enumerate(zip(places, range(1, children + 1), strict=True)):
        main.insert(place + shift, Event(0, "create", child))
    for child in range(1, children + 1):
        if r.random() < 0.6:
            created = next(i for i, s in enumerate(main) if s.op == "create" and s.object == child)
            later = [i for i in (range(len(main) + 1) if anywhere else _outside(main)) if i > created]
            main.insert(r.choice(later), Event(0, "join", child))
    for thread, body in enumerate(programs):
        body.insert(0, Event(thread, "start"))
        body.append(Event(thread, "end"))
    if barrier:
        main.insert(1, Event(0, "barrier", BARRIER, children))
    return programs


def _block(r: random.Random, thread: int) -> list[Event]:
    def access() -> Event:
        size = r.choice([1, 1, 4])
        offset = r.choice([0, 0, 2]) if size == 1 else 0
        writes = r.random() < 0.5
        return Event(thread, "access", r.randrange(3), offset, size, writes, r.randrange(2))

    inside = [access() for _ in range(r.randrange(1, 3))]
    kind = r.random()
    if kind < 0.45:
        return inside
    if kind < 0.85:
        lock = r.choice(LOCKS)
        section = [Event(thread, "lock", lock), *inside, Event(thread, "unlock", lock)]
        if r.random() < 0.2:
            other = next(m for m in LOCKS if m != lock)
            section[1:-1] = [Event(thread, "lock", other), *inside, Event(thread, "unlock", other)]
        return section
    return [Event(thread, r.choice(["read lock", "write lock"]), RWLOCK), *inside, Event(thread, "rw unlock", RWLOCK)]


def _outside(body: list[Event]) -> list[int]:
    """Places of a body that are in no critical section, and between no arrival and departure."""
    depth, found = 0, [0]
    for i, step in enumerate(body):
        depth += step.op in ("lock", "read lock", "write lock", "arrive")
        depth -= step.op in ("unlock", "rw unlock", "depart")
        if depth == 0:
            found.append(i + 1)
    return found


class Semantics:
    """Which thread may go on, given how far all are."""

    def __init__(self, programs: list[list[Event]], order: list[Event] | None = None) -> None:
        self.programs = programs
        self.order = order
        """A trace whose order of conflicting acquisitions all runs keep (replay)."""

    def enabled(self, at: tuple[int, ...]) -> Iterator[int]:
        for thread, program in enumerate(self.programs):
            if at[thread] < len(program) and self._may(program[at[thread]], at) and self._in_turn(thread, at):
                yield thread

    def _in_turn(self, thread: int, at: tuple[int, ...]) -> bool:
        step = self.programs[thread][at[thread]]
        if self.order is None or step.op not in ("lock", "read lock", "write lock"):
            return True
        reached = [0] * len(self.programs)
        for earlier in self.order:
            place = reached[earlier.thread]
            reached[earlier.thread] += 1
            if (earlier.thread, place) == (thread, at[thread]):
                return True
            acquires = earlier.op in ("lock", "read lock", "write lock") and earlier.object == step.object
            conflicts = acquires and not (earlier.op == step.op == "read lock")
            if conflicts and earlier.thread != thread and at[earlier.thread] <= place:
                return False
        return True

    def _done(self, at: tuple[int, ...]) -> Iterator[Event]:
        for thread, program in enumerate(self.programs):
            yield from program[: at[thread]]

    def _may(self, step: Event, at: tuple[int, ...]) -> bool:
        done = list(self._done(at))
        if step.op == "start":
            return step.thread == 0 or any(s.op == "create" and s.object == step.thread for s in done)
        if step.op == "join":
            return any(s.op == "end" and s.thread == step.object for s in done)
        if step.op in ("lock", "read lock", "write lock"):
            mine = [s for s in done if s.object == step.object]
            readers = sum(s.op == "read lock" for s in mine)
            writers = sum(s.op in ("lock", "write lock") for s in mine)
            released = sum(s.op in ("unlock", "rw unlock") for s in mine)
            free = readers + writers == released
            holders_read = not free and self._holders_read(step.object, at)
            return free or (step.op == "read lock" and holders_read)
        if step.op == "depart":
            rounds = sum(s.op == "depart" and s.thread == step.thread for s in done) + 1
            users = [p for p in self.programs if any(s.op == "arrive" for s in p)]
            arrived = [sum(s.op == "arrive" for s in p[: at[p[0].thread]]) for p in users]
            return all(n >= rounds for n in arrived)
        return True

    def _holders_read(self, lock: int, at: tuple[int, ...]) -> bool:
        kinds = []
        for thread, program in enumerate(self.programs):
            held = None
            for step in program[: at[thread]]:
                if step.object == lock and "lock" in step.op:
                    held = None if "unlock" in step.op else step.op
            if held:
                kinds.append(held)
        return all(k == "read lock" for k in kinds)

    @property
    def end(self) -> tuple[int, ...]:
        return tuple(map(len, self.programs))


def random_trace(seed: int) -> list[Event] | None:
    """A trace of a random program under a random scheduler; None if it deadlocked."""
    r = random.Random(seed)
    semantics = Semantics(_programs(r))
    at = tuple(0 for _ in semantics.programs)
    trace: list[Event] = []
    while at != semantics.end:
        choices = list(semantics.enabled(at))
        if not choices:
            return None
        thread = r.choice(choices)
        trace.append(semantics.programs[thread][at[thread]])
        at = tuple(n + (t == thread) for t, n in enumerate(at))
    return trace


def traces(count: int, start: int = 0) -> list[list[Event]]:
    """Random traces that are neither trivial nor too long for all permutations."""
    found = (t for t in map(random_trace, itertools.count(start)) if t is not None and 8 <= len(t) <= 26)
    return list(itertools.islice(found, count))


def can_be_reversed(trace: list[Event], *, benign_same_value: bool = False, replay: bool = False) -> bool:
    """Definition 5, condition 2, by looking at every state that a complete permutation can pass through."""
    threads = max(s.thread for s in trace) + 1
    programs = [[s for s in trace if s.thread == t] for t in range(threads)]
    semantics = Semantics(programs, trace if replay else None)

    @cache
    def completes(at: tuple[int, ...]) -> bool:
        return at == semantics.end or any(completes(_step(at, t)) for t in semantics.enabled(at))

    start = tuple(0 for _ in programs)
    seen, queue = {start}, [start]
    for at in queue:
        for thread in semantics.enabled(at):
            following = _step(at, thread)
            if following not in seen and completes(following):
                seen.add(following)
                queue.append(following)
    place = [sum(o.thread == s.thread for o in trace[:i]) for i, s in enumerate(trace)]
    for j, late in enumerate(trace):
        for i, early in enumerate(trace[:j]):
            if early.depends(late, benign_same_value=benign_same_value) and any(
                at[late.thread] > place[j] and at[early.thread] <= place[i] for at in seen
            ):
                return True
    return False


def _step(at: tuple[int, ...], thread: int) -> tuple[int, ...]:
    return tuple(n + (t == thread) for t, n in enumerate(at))
