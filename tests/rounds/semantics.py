"""The runs of so many phases, by hand from the definitions of docs/reference/rounds.md, with the oracle's steps.

`phase_graph` has the asynchronous runs. A node is (state, clocks). No message of a later phase is consumed, and the clock of
a process that is past the last phase does not advance.

`round_graph` has the runs of the round-based semantics under a network assumption (Sequentialization, section 4.1), in lock
step. In the SEND stage each process fires actions whose messages are of this round. Then who hears whom is chosen at once,
for all, and what is not heard is thrown away. In the UPDATE stage each process consumes messages of this round until it
cannot any more, and the rest is thrown away. After the last round there is one more SEND stage, for the actions that leave
the last phase. An action that sends nothing runs in the UPDATE stage when nothing can be consumed, if the process has not
yet sent in a later round; or in a SEND stage, if the process continues to an action that sends there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from plait import System
from plait.model.tag import tag_of
from tests.oracle.relation import State, Transition, edit, enabled, execute, initial, make_message, successors
from tests.rounds.languages import Graph, graph, locals_of

Hears = dict[int, set[int]]
Predicate = Callable[[Hears, dict[int, set[int]]], bool]
"""Of who hears whom, and who sent to whom (receiver: senders)."""
Clocks = tuple[int, ...]
"""Per process 2 t after a send in round t, 2 t + 1 after a receipt in round t; -1 if it begins after the last round."""


def place(system: System, entry: Any) -> int:
    """The number of a message's round, counted through."""
    message = make_message(system, entry)
    tag = tag_of(type(message))
    assert tag is not None
    return (tag.phase_of(message) - 1) * len(system.rounds) + system.rounds.index(tag.round) + 1


def places(system: System, t: Transition) -> list[int]:
    """The rounds of what a step sent."""
    return [place(system, entry) for entry in t.sends]


def started(system: System) -> tuple[State, Clocks]:
    """The initial state, and the clocks after the @init methods."""
    state, clocks = initial(system), [0] * len(system.classes)
    for slot in state.slots:
        for entry in slot.inbox:
            clocks[entry[0]] = max(clocks[entry[0]], 2 * place(system, entry))
    return state, tuple(clocks)


def ticked(system: System, clock: int, t: Transition) -> int:
    """The clock of a process after a step of its own, which must satisfy the conditions 1 to 5."""
    received, sent = {2 * place(system, entry) + 1 for entry in t.consumed}, [2 * u for u in places(system, t)]
    assert len(received) <= 1
    assert all(clock <= r for r in received)
    clock = max([clock, *received])
    assert all(clock <= s for s in sent)
    return max([clock, *sent])


def advance(clocks: Clocks, index: int, clock: int) -> Clocks:
    return (*clocks[:index], clock, *clocks[index + 1 :])


def phase_graph(system: System, phases: int, fields: list[str], limit: int = 10_000) -> Graph:
    """All asynchronous runs of so many phases."""
    last = phases * len(system.rounds)
    past = 2 * last + 1

    def step(node: tuple[State, Clocks]) -> Iterator[Any]:
        state, clocks = node
        for t in successors(system, state):
            assert t.state is not None
            clock = clocks[t.process]
            if t.kind == "crash":
                yield t.state, clocks
                continue
            after = ticked(system, clock, t)
            if (
                clock < 0
                or any(place(system, entry) > last for entry in t.consumed)
                or (clock > past and after > clock)
            ):
                continue
            now = advance(clocks, t.process, after)
            for child, (one, other) in enumerate(zip(state.slots, t.state.slots, strict=True)):
                if one.status == "unborn" != other.status:  # it takes part in the next round
                    parent = max([clock, *(2 * place(system, entry) + 1 for entry in t.consumed)])
                    born = 2 * (parent // 2 + 1) + 1
                    now = advance(now, child, born if born <= past else -1)
            yield t.state, now

    locals_ = locals_of(system, fields)
    return graph(started(system), step, lambda node: locals_(node[0]), limit)


def receipts(system: System, state: State, index: int, number: int) -> Iterator[Transition]:
    for handler in system.classes[index].__plait_handlers__:
        if handler.kind == "message":
            for consumed in enabled(system, state, index, handler):
                if all(place(system, entry) == number for entry in consumed):
                    yield from execute(system, state, index, handler, "step", consumed)


def actions(system: System, state: State, index: int) -> Iterator[Transition]:
    for handler in system.classes[index].__plait_handlers__:
        if handler.kind == "action":
            for consumed in enabled(system, state, index, handler):
                yield from execute(system, state, index, handler, "step", consumed)


def round_graph(system: System, phases: int, predicate: Predicate, fields: list[str], limit: int = 10_000) -> Graph:
    """All runs of so many phases in which who hears whom satisfies the predicate in every round."""
    n, last = len(system.processes), phases * len(system.rounds)

    def without(state: State, number: int, index: int, unheard: set[int] | None) -> State:
        """The state without the messages of this round to a process, from these senders or from all."""
        inbox = state.slots[index].inbox
        kept = tuple(e for e in inbox if place(system, e) != number or (unheard is not None and e[0] not in unheard))
        return edit(state, index, inbox=kept)

    def sends_in(number: int, clock: int, found: list[int]) -> bool:
        """Whether an action with messages of these rounds belongs to this SEND stage."""
        if number <= last:
            return bool(found) and min(found) == number
        return bool(found) and min(found) > last and (clock <= 2 * last + 1 or all(2 * u == clock for u in found))

    def prepares(state: State, index: int, number: int, clock: int) -> bool:
        """Whether steps that send nothing lead to an action of this SEND stage."""
        known, todo = set(), [state]
        while todo:
            state = todo.pop()
            if state not in known:
                known.add(state)
                for t in actions(system, state, index):
                    assert t.state is not None
                    if sends_in(number, clock, places(system, t)):
                        return True
                    todo += [t.state] if not t.sends else []
        return False

    def step(node: Any) -> Iterator[Any]:
        number, stage, index, state, clocks, owes = node
        if stage == "send":
            for t in actions(system, state, index):
                assert t.state is not None
                if sends_in(number, clocks[index], places(system, t)):
                    yield (
                        number,
                        "send",
                        index,
                        t.state,
                        advance(clocks, index, ticked(system, clocks[index], t)),
                        False,
                    )
                elif not t.sends and prepares(t.state, index, number, clocks[index]):
                    yield number, "send", index, t.state, clocks, True
            if not owes and index + 1 < n:
                yield number, "send", index + 1, state, clocks, False
            elif not owes and number <= last:
                yield number, "hear", 0, state, clocks, False
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
                    yield number, "update", 0, after, clocks, False
        else:
            found = list(receipts(system, state, index, number))
            if not found and clocks[index] <= 2 * number + 1:
                found = [t for t in actions(system, state, index) if not t.sends]
            for t in found:
                yield number, "update", index, t.state, advance(clocks, index, ticked(system, clocks[index], t)), False
            if not any(t.consumed for t in found):
                rest = without(state, number, index, None)
                following = (number, "update", index + 1) if index + 1 < n else (number + 1, "send", 0)
                yield *following, rest, clocks, False

    locals_ = locals_of(system, fields)
    return graph((1, "send", 0, *started(system), False), step, lambda node: locals_(node[3]), limit)


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
