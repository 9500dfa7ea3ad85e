"""The synchronisation of a recorded run as a Trace, for the viewer."""

from __future__ import annotations

from plait.epa.recording import OPERATIONS, Recording
from plait.kernel.trace import Event, Lane, Sent, Snapshot, Trace

_MOST = 400
_HIDDEN = {"created", "wait for", "barrier"}


def sync_trace(recording: Recording, *, limit: int = _MOST) -> Trace:
    """Creation, joins, locks and barriers on the lanes of threads. A creation is a message."""
    names = [t.name for t in recording.threads]
    empty = Snapshot(fields={name: {} for name in names})
    events: list[Event] = []
    messages: list[Sent] = []
    waiting: dict[int, int] = {}
    by_uid = {t.uid: i for i, t in enumerate(recording.threads)}
    for thread, _, sync, object_ in recording.native.runs():
        name = OPERATIONS.get(sync, "")
        if not name or name in _HIDDEN or len(events) >= limit:
            continue
        sent: list[int] = []
        consumed: list[int] = []
        label = name
        if name == "create" and object_ in by_uid:
            child = by_uid[object_]
            messages.append(Sent(len(messages), "create", {}, names[thread], names[child]))
            sent.append(len(messages) - 1)
            waiting[child] = len(messages) - 1
            label = f"create {names[child]}"
        elif name == "start" and thread in waiting:
            consumed.append(waiting[thread])
        elif "lock" in name or name in ("arrive", "depart", "wait", "signal", "once"):
            number = recording.native.object_at(object_)
            label = f"{name} {recording.object(number).name if number is not None else hex(object_)}"
        events.append(Event(names[thread], "step", label, empty, consumed=consumed, sent=sent))
    return Trace(
        target=str(recording.folder),
        parameters={},
        property=None,
        lanes=[Lane(name, "thread") for name in names],
        messages=messages,
        initial=empty,
        events=events,
        explanation=None if len(events) < limit else f"The first {limit} synchronisation events.",
    )
