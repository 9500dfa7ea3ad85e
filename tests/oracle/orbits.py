"""The images of a state under the permutations of symmetric processes, by renaming every process id in it."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from plait.kernel.pid import Pid
from plait.model.shared import Shared
from plait.model.system import System
from tests.oracle.explorer import Exploration, evaluate
from tests.oracle.relation import Frozen, Inbox, Slot, State, is_atom

Permutation = tuple[int, ...]  # the new position of every process


class Orbits(NamedTuple):
    states: int
    terminal: int
    closed: bool  # whether the images of reachable states are reachable
    impartial: bool  # whether the properties say the same of all images of a state


def permutations(system: System) -> Iterator[Permutation]:
    """All that permute processes of one class within a symmetric role, and rotate rings."""
    groups = [
        [i for i in system.members(role) if system.classes[i] is cls]
        for role in system.symmetric
        for cls in dict.fromkeys(system.classes[i] for i in system.members(role))
    ]
    rings = [system.members(role) for role in system.rotations]
    turns = [[ring[i:] + ring[:i] for i in range(len(ring))] for ring in rings]
    for orders in itertools.product(*map(itertools.permutations, groups), *turns):
        moved = dict(zip(itertools.chain(*groups, *rings), itertools.chain(*orders), strict=True))
        yield tuple(moved.get(i, i) for i in range(len(system.classes)))


def rename(frozen: Frozen, names: dict[Pid, Pid]) -> Frozen:
    kind, *content = frozen
    if issubclass(kind, Shared):
        return frozen
    if kind is Pid:
        return kind, names[content[0]]
    if is_atom(kind):
        return frozen
    renamed = [rename(part, names) for part in content]
    if kind is defaultdict:
        return kind, renamed[0], *sorted(renamed[1:], key=repr)
    return kind, *(sorted(renamed, key=repr) if kind in (set, frozenset, dict, Counter) else renamed)


def image(system: System, state: State, permutation: Permutation) -> State:
    names = {pid: system.pids[to] for pid, to in zip(system.pids, permutation, strict=True)}
    queues = system.network.kind == "fifo"

    def inbox(entries: Inbox) -> Inbox:
        moved = [(permutation[sender], rename(content, names)) for sender, content in entries]
        return tuple(sorted(moved, key=lambda e: (e[0], "" if queues else repr(e[1]))))

    slots: list[Slot] = list(state.slots)
    for slot, to in zip(state.slots, permutation, strict=True):
        slots[to] = slot._replace(fields=tuple(rename(f, names) for f in slot.fields), inbox=inbox(slot.inbox))
    monitors = tuple(tuple(rename(f, names) for f in fields) for fields in state.monitors)
    shared = tuple(tuple(rename(f, names) for f in fields) for fields in state.shared)
    return state._replace(slots=tuple(slots), monitors=monitors, shared=shared)


def orbits(system: System, truth: Exploration) -> Orbits:
    """How many orbits the reachable states have, and what shows that the permutations are no symmetries."""
    moves, met, ends = list(permutations(system)), set[State](), set(truth.ends)
    count = terminal = 0
    closed = impartial = True
    for state in truth.seen:
        if state in met:
            continue
        images = {image(system, state, permutation) for permutation in moves}
        met |= images
        count += 1
        terminal += state in ends
        closed &= all(i in truth.seen for i in images)
        impartial &= all(len({evaluate(system, i, p) for i in images}) == 1 for p in system.properties)
    return Orbits(count, terminal, closed, impartial)


def multisets(managers: int) -> int:
    """The states of two-phase commit in which resource managers are only counted, not named.

    What a state knows of a resource manager: its own state, whether it has sent Prepared, and whether that was noted. The
    messages of the transaction manager follow from its own state.
    """
    start = ("working", ((("working", False, False), managers),))
    met, waiting = {start}, [start]
    while waiting:
        manager, counts = waiting.pop()
        those: list[tuple[str, Counter[tuple[str, bool, bool]]]] = []
        if manager == "working":
            those.append(("aborted", Counter(dict(counts))))
            if all(noted for (_, _, noted), _ in counts):
                those.append(("committed", Counter(dict(counts))))
        for kind, _ in counts:
            own, sent, noted = kind
            after = [("prepared", True, noted), ("aborted", sent, noted)] if own == "working" else []
            after += [(own, sent, True)] if manager == "working" and sent else []
            after += [(manager, sent, noted)] if manager != "working" else []
            for other in after:
                those.append((manager, Counter(dict(counts)) - Counter([kind]) + Counter([other])))
        for manager, counter in those:
            state = (manager, tuple(sorted(counter.items())))
            if state not in met:
                met.add(state)
                waiting.append(state)
    return len(met)
