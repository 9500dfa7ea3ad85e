"""What became of each message and of each lane in a trace: the facts that every drawing needs.

Steps are counted as the formats count them: 0 is the initial state and k the state after the k-th event.
"""

from __future__ import annotations

import dataclasses

from plait.kernel.trace import Event, Sent, Snapshot, Trace


@dataclasses.dataclass(frozen=True)
class Journey:
    """The life of one message instance."""

    message: Sent
    born: int
    """The step that sent it; 0 when it is there from the start."""
    deliveries: tuple[int, ...] = ()
    """The steps that took it: more than one on a network whose delivery does not remove."""
    lost: int | None = None
    dropped: int | None = None
    """The step at which it vanished with its receiver: a crash, or a send to a process that had crashed."""
    copy_of: int | None = None
    """The message the network copied, when this one was made by a duplication."""
    copied: tuple[int, ...] = ()
    """The steps at which the network copied this one."""
    merged: int | None = None
    """The equal message that waited already, on a network that keeps only one of them."""
    pending: bool = False
    """Still waiting in the last state."""


def states(trace: Trace) -> list[Snapshot]:
    """All the states of the run, the initial one first."""
    return [trace.initial, *(event.state for event in trace.events)]


def _waiting(state: Snapshot) -> set[int]:
    return {message for inbox in state.pending.values() for message in inbox}


def _original(trace: Trace, event: Event, copy: Sent, born: dict[int, int]) -> int | None:
    """The message that a copy was made of: the one named by the event, else an equal one sent earlier."""
    if event.consumed:
        return event.consumed[0]
    return next((m.id for m in trace.messages if m.id in born and m.id != copy.id and _equal(m, copy)), None)


def _equal(one: Sent, other: Sent) -> bool:
    """The same content between the same two."""
    return (one.type, one.fields, one.sender, one.receiver) == (other.type, other.fields, other.sender, other.receiver)


def journeys(trace: Trace) -> list[Journey]:
    """One journey per message of the trace, in the order of `trace.messages`."""
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
            # The copy may be told as sent, or only show up among what waits.
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


def lane_status(trace: Trace) -> list[dict[str, str]]:
    """Per state, the lanes that are not simply running, also when the recorder only said so by a crash event."""
    result = [dict(trace.initial.status)]
    told: dict[str, str] = {}
    for event in trace.events:
        if event.kind == "crash":
            told[event.lane] = "crashed"
        elif event.kind == "recover":
            told.pop(event.lane, None)
        result.append({**told, **event.state.status})
    return result
