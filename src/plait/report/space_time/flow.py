"""What happened to each message and each lane in a trace. All drawings need this.

Steps are counted as in all formats: 0 is the initial state, and k is the state after event k.
"""

from __future__ import annotations

import dataclasses

from plait.kernel.trace import Event, Sent, Snapshot, Trace


@dataclasses.dataclass(frozen=True)
class Journey:
    """What happened to one message instance, from its send to its end."""

    message: Sent
    born: int
    """The step that sent it. 0 if it is pending in the initial state."""
    deliveries: tuple[int, ...] = ()
    """The steps that took it. On a duplicating network there may be several."""
    lost: int | None = None
    dropped: int | None = None
    """The step that dropped it: its receiver crashed in this step, or had crashed before the send."""
    copy_of: int | None = None
    """The original, if the network made this message as a copy."""
    copied: tuple[int, ...] = ()
    """The steps at which the network copied this message."""
    merged: int | None = None
    """The equal message that was pending already, on a network that keeps only one of them."""
    pending: bool = False
    """Whether it is pending in the last state."""


def states(trace: Trace) -> list[Snapshot]:
    """All states of the run, beginning with the initial state."""
    return [trace.initial, *(event.state for event in trace.events)]


def _waiting(state: Snapshot) -> set[int]:
    return {message for inbox in state.pending.values() for message in inbox}


def _original(trace: Trace, event: Event, copy: Sent, born: dict[int, int]) -> int | None:
    """The original of a copy: the message that the event names, else an equal message that was sent earlier."""
    if event.consumed:
        return event.consumed[0]
    return next((m.id for m in trace.messages if m.id in born and m.id != copy.id and _equal(m, copy)), None)


def _equal(one: Sent, other: Sent) -> bool:
    """Whether two messages have the same content, sender and receiver."""
    return (one.type, one.fields, one.sender, one.receiver) == (other.type, other.fields, other.sender, other.receiver)


def journeys(trace: Trace) -> list[Journey]:
    """A journey for each message of the trace, in the order of `trace.messages`."""
    by_id = {m.id: m for m in trace.messages}
    snapshots = [_waiting(s) for s in states(trace)]
    tracked = any(snapshots)
    born: dict[int, int] = dict.fromkeys(snapshots[0], 0)
    taken: dict[int, list[int]] = {}
    lost: dict[int, int] = {}
    dropped: dict[int, int] = {}
    copy_of: dict[int, int] = {}
    copied: dict[int, list[int]] = {}

    for step, event in enumerate(trace.events, start=1):
        before, after = snapshots[step - 1], snapshots[step]
        vanished = before - after - set(event.consumed)
        if event.kind == "duplicate":
            # The event may list the copy as sent. Otherwise the copy is a new pending message.
            made = [*event.sent, *sorted(after - before)]
            for message in made:
                if message in by_id and message not in born:
                    original = _original(trace, event, by_id[message], born)
                    if original is not None:
                        copy_of[message] = original
            originals = {copy_of[m] for m in made if m in copy_of} | set(event.consumed)
            for message in originals:
                copied.setdefault(message, []).append(step)
        elif event.kind == "lose":
            lost.update(dict.fromkeys(event.consumed or vanished, step))
            vanished = set()
        elif event.kind == "crash":
            vanished |= set(event.consumed)
        else:
            for message in event.consumed:
                taken.setdefault(message, []).append(step)
        if event.kind != "duplicate":
            dropped.update(dict.fromkeys(vanished, step))
        for message in [*event.sent, *sorted(after - before)]:
            born.setdefault(message, step)

    result = []
    for m in trace.messages:
        start = born.get(m.id, 0)
        gone = m.id in taken or m.id in lost or m.id in dropped
        waits = m.id in snapshots[-1] if tracked else not gone
        merged = None
        if not gone and not waits and m.id not in copied:
            merged = next((i for i in sorted(snapshots[start]) if i in by_id and _equal(by_id[i], m)), None)
            if merged is None:
                dropped[m.id] = start
        result.append(
            Journey(
                message=m,
                born=start,
                deliveries=tuple(taken.get(m.id, ())),
                lost=lost.get(m.id),
                dropped=dropped.get(m.id),
                copy_of=copy_of.get(m.id),
                copied=tuple(copied.get(m.id, ())),
                merged=merged,
                pending=waits,
            )
        )
    return result


def accesses(trace: Trace, event: Event) -> dict[str, str]:
    """The lanes of shared objects that an event reads ("reads") or writes ("writes", perhaps after it read them)."""
    found = {}
    for lane in (lane.name for lane in trace.lanes if lane.shared):
        if any(name.startswith(f"{lane}.") for name in event.changed):
            found[lane] = "writes"
        elif any(name.startswith(f"{lane}.") for name in event.read):
            found[lane] = "reads"
    return found


def lane_status(trace: Trace) -> list[dict[str, str]]:
    """For each state, the lanes that are not running. A crash event counts even if no state records the crash."""
    result = [dict(trace.initial.status)]
    crashed: dict[str, str] = {}
    for event in trace.events:
        if event.kind == "crash":
            crashed[event.lane] = "crashed"
        elif event.kind == "recover":
            crashed.pop(event.lane, None)
        result.append({**crashed, **event.state.status})
    return result
