"""The round-based semantics of Sequentialization, section 4.1, in the most obvious way: lock step, with the oracle's steps.

A node is (round, stage, process, state). In the SEND stage each process fires actions whose messages are of this round.
Then who hears whom is chosen at once, for all, and what is not heard is thrown away. In the UPDATE stage each process
consumes messages of this round until it cannot any more, and the rest is thrown away.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from plait import System
from tests.oracle.relation import State, edit, enabled, execute, initial, make_message
from tests.rounds.languages import Graph, graph

Hears = dict[int, set[int]]
Predicate = Callable[[Hears, dict[int, set[int]]], bool]
"""Of who hears whom, and who sent to whom (receiver: senders)."""


def place(system: System, entry: Any) -> int:
    """The number of a message's round, counted through."""
    message: Any = make_message(system, entry)
    return (message.phase - 1) * len(system.rounds) + system.rounds.index(type(message).__name__) + 1


def sent(system: System, before: State, after: State) -> list[int]:
    """The rounds of what a step sent."""
    found = []
    for one, other in zip(before.slots, after.slots, strict=True):
        rest = list(other.inbox)
        for entry in one.inbox:
            if entry in rest:
                rest.remove(entry)
        found += [place(system, entry) for entry in rest]
    return found


def receipts(system: System, state: State, index: int, number: int) -> Iterator[State]:
    for handler in system.classes[index].__plait_handlers__:
        if handler.kind == "message":
            for consumed in enabled(system, state, index, handler):
                if all(place(system, entry) == number for entry in consumed):
                    for t in execute(system, state, index, handler, "step", consumed):
                        assert t.state is not None
                        yield t.state


def actions(system: System, state: State, index: int, number: int, *, silent_only: bool) -> Iterator[State]:
    """Actions that send in this round, or (only) those that send nothing."""
    for handler in system.classes[index].__plait_handlers__:
        if handler.kind == "action":
            for consumed in enabled(system, state, index, handler):
                for t in execute(system, state, index, handler, "step", consumed):
                    assert t.state is not None
                    places = sent(system, state, t.state)
                    if not places or (not silent_only and min(places) == number):
                        yield t.state


def round_graph(system: System, phases: int, predicate: Predicate, fields: list[str], limit: int = 10_000) -> Graph:
    """All runs of so many phases in which who hears whom satisfies the predicate in every round."""
    n, last = len(system.processes), phases * len(system.rounds)

    def without(state: State, number: int, index: int, unheard: set[int] | None) -> State:
        """The state without the messages of this round to a process, from these senders or from all."""
        inbox = state.slots[index].inbox
        kept = tuple(e for e in inbox if place(system, e) != number or (unheard is not None and e[0] not in unheard))
        return edit(state, index, inbox=kept)

    def step(node: Any) -> Iterator[Any]:
        number, stage, index, state, took = node
        if number > last:
            return
        if stage == "send":
            for after in actions(system, state, index, number, silent_only=False):
                yield number, "send", index, after, False
            yield (number, "send", index + 1, state, False) if index + 1 < n else (number, "hear", 0, state, False)
        elif stage == "hear":
            senders = {
                i: {e[0] for e in slot.inbox if place(system, e) == number} for i, slot in enumerate(state.slots)
            }
            subsets = [
                [set(c) for size in range(n + 1) for c in itertools.combinations(range(n), size)] for _ in range(n)
            ]
            for choice in itertools.product(*subsets):
                hears = dict(enumerate(choice))
                if predicate(hears, senders):
                    after = state
                    for i in range(n):
                        after = without(after, number, i, set(range(n)) - hears[i])
                    yield number, "update", 0, after, False
        else:
            must = False
            for after in receipts(system, state, index, number):
                must = True
                yield number, "update", index, after, True
            if took:
                for after in actions(system, state, index, number, silent_only=True):
                    yield number, "update", index, after, True
            if not must:
                rest = without(state, number, index, None)
                following = (number, "update", index + 1) if index + 1 < n else (number + 1, "send", 0)
                yield *following, rest, False

    def locals_(node: Any) -> tuple[Any, ...]:
        found = []
        for cls, slot in zip(system.classes, node[3].slots, strict=True):
            values = dict(zip(cls.__plait_fields__, slot.fields, strict=True))
            found.append((slot.status, *(values.get(name) for name in fields)))
        return tuple(found)

    return graph((1, "send", 0, initial(system), False), step, locals_, limit)


def everything(hears: Hears, senders: dict[int, set[int]]) -> bool:
    return all(senders[p] <= hears[p] for p in hears)


def all_but(missing: int) -> Predicate:
    def predicate(hears: Hears, senders: dict[int, set[int]]) -> bool:
        least = len(hears) - missing
        return all(len(senders[p] & hears[p]) >= min(least, len(senders[p])) for p in hears)

    return predicate


def kernel(hears: Hears, senders: dict[int, set[int]]) -> bool:
    """Some k: what it sends is heard by all, and it hears all that is sent to it."""
    return any(
        all((k not in senders[p] or k in hears[p]) and (p not in senders[k] or p in hears[k]) for p in hears)
        for k in hears
    )


def common(hears: Hears, senders: dict[int, set[int]]) -> bool:
    """Some k: what it sends is heard by all."""
    return any(all(k not in senders[p] or k in hears[p] for p in hears) for k in hears)
