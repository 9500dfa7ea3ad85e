"""Which events come before which: those of a process in their order, a send before its receive, and by vector clocks.

The times of different machines are never compared.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence

from plait.conform.log import Event, bad

Reference = tuple[int, int]
"""A process and the number of one of its events."""


@dataclasses.dataclass
class Order:
    """The order of the events of processes."""

    before: list[list[list[Reference]]]
    """By process and event, the last events of other processes that come before it."""
    apart: list[list[int]]
    """By process and event, how many events of the same process come before it by way of other processes."""
    links: dict[Reference, list[Reference]]
    """By event that receives a message with an id, the event that sends it (one per message; itself if none is known)."""


def ordered(events: Sequence[Sequence[Event]]) -> Order:
    """The order of events by process. Raise an error if it is a cycle."""
    sent = _sends(events)
    positions = {name: number for number, own in enumerate(events) for name in {event.record.at for event in own}}
    clocks = [[event.record.clock.get(event.record.at) for event in own] for own in events]
    counted = [all(count is not None for count in own) for own in clocks]
    before: list[list[list[Reference]]] = []
    links: dict[Reference, list[Reference]] = {}
    for process, own in enumerate(events):
        before.append([])
        for number, event in enumerate(own):
            found: dict[int, int] = {}
            for message in event.record.received:
                source = None if message.id is None else sent.get(message.id)
                if source is not None:
                    links.setdefault((process, number), []).append(source)
                    if source == (process, number) or (source[0] == process and source[1] > number):
                        raise bad(event.place, f"it receives the message {message.id!r}, which is sent later", _CAUSE)
                    if source[0] != process:
                        found[source[0]] = max(found.get(source[0], -1), source[1])
            for name, count in event.record.clock.items():
                other = positions.get(name)
                if other is None or other == process:
                    continue
                if not counted[other]:
                    raise bad(
                        event.place,
                        f"its clock counts events of {name}, but not all of these have a clock",
                        f"give each event of {name} a clock with the number of the event",
                    )
                last = bisect.bisect_right(clocks[other], count) - 1  # type: ignore[type-var]
                if last >= 0:
                    found[other] = max(found.get(other, -1), last)
            before[-1].append(sorted(found.items()))
    return Order(before, _apart(events, before), links)


_CAUSE = "a message is sent before it is received: check the ids of messages and the order of each process"


def _sends(events: Sequence[Sequence[Event]]) -> dict[object, Reference]:
    """By id of a message, the event that sends it."""
    sent: dict[object, Reference] = {}
    for process, own in enumerate(events):
        for number, event in enumerate(own):
            for message in event.record.sent:
                if message.id is None:
                    continue
                if sent.setdefault(message.id, (process, number)) != (process, number):
                    raise bad(
                        event.place,
                        f"the message {message.id!r} is sent by another event, too",
                        "give each message an id of its own; a broadcast is one event with a list of receivers",
                    )
    return sent


def _apart(events: Sequence[Sequence[Event]], before: Sequence[Sequence[Sequence[Reference]]]) -> list[list[int]]:
    """By topological order: for each event, how many events of each process come before it, or are it."""
    count = len(events)
    past: list[list[list[int]]] = [[] for _ in events]
    apart: list[list[int]] = [[] for _ in events]
    moving = True
    while moving:
        moving = False
        for process, own in enumerate(events):
            while len(past[process]) < len(own):
                number = len(past[process])
                others = before[process][number]
                if any(len(past[other]) <= last for other, last in others):
                    break
                seen = list(past[process][-1]) if number else [0] * count
                away = 0
                for other, last in others:
                    theirs = past[other][last]
                    away = max(away, theirs[process])
                    seen = [max(pair) for pair in zip(seen, theirs, strict=True)]
                seen[process] = number + 1
                past[process].append(seen)
                apart[process].append(away)
                moving = True
    for process, own in enumerate(events):
        if len(past[process]) < len(own):
            raise bad(own[len(past[process])].place, "the event comes before itself, by way of other events", _CAUSE)
    return apart
