"""Traces as files, in Apalache's Informal Trace Format (ITF), from which the complete trace can be read again.

An ITF viewer sees an ordinary run: one variable per lane (a record of its fields), then `pending`, `monitors`, `status`
and `budgets`. What ITF has no notion of (which event led to a state, the messages, the lanes' roles) sits under the
`#meta` keys, which ITF leaves to tools. States are counted from 0, the initial one; event k leads to state k + 1, so
that ITF's `loop`, an index of a state, is the number of the event that the run goes back to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Lane, Sent, Snapshot, Trace, Why
from plait.kernel.values import Data

FORMAT = "plait-trace"
VERSION = 1

_OTHER_VARIABLES = ("pending", "monitors", "status", "budgets")
_NEXT_ACT = "save the trace again with `plait check TARGET --trace FILE`, or give a file that Plait wrote"

T = TypeVar("T")


class _Header(msgspec.Struct, forbid_unknown_fields=False):
    """What identifies a file as ours, read before anything else so that a newer version is refused with a reason."""

    format: str
    version: int


class _Plait(msgspec.Struct):
    """The trace without its states and events."""

    format: str
    version: int
    target: str
    parameters: dict[str, Data]
    property: str | None
    lanes: list[Lane]
    messages: list[Sent]
    loop: int | None
    explanation: str | None
    tidied: str | None = None
    why: Why | None = None


class _File(msgspec.Struct, rename={"meta": "#meta"}):
    """The outermost object of an ITF file."""

    meta: dict[str, Any]
    vars: list[str]
    states: list[dict[str, Any]]
    loop: int | None = None


def _variables(trace: Trace) -> dict[str, str]:
    """Per lane, the name of its ITF variable: the lane's own name, primed while that is taken."""
    names: dict[str, str] = {}
    taken = set(_OTHER_VARIABLES)
    lanes = [lane.name for lane in trace.lanes]
    for snapshot in (trace.initial, *(e.state for e in trace.events)):
        lanes.extend(snapshot.fields)
    for lane in dict.fromkeys(lanes):
        name = f"lane {lane}" if lane.startswith("#") or not lane else lane
        while name in taken:
            name += "'"
        taken.add(name)
        names[lane] = name
    return names


def _state(snapshot: Snapshot, index: int, variables: dict[str, str], event: Event | None) -> dict[str, Any]:
    meta: dict[str, Any] = {"index": index}
    absent = [lane for lane in variables if lane not in snapshot.fields]
    if absent:
        # ITF wants every variable in every state; remember which records are only there for that.
        meta["absent"] = absent
    if event is not None:
        meta["event"] = {k: v for k, v in msgspec.to_builtins(event).items() if k != "state"}
    state: dict[str, Any] = {"#meta": meta}
    for lane, variable in variables.items():
        state[variable] = snapshot.fields.get(lane, {})
    for other in _OTHER_VARIABLES:
        state[other] = getattr(snapshot, other)
    return state


def save_trace(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as ITF. `load_trace` gives back an equal one."""
    variables = _variables(trace)
    plait: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for field in ("target", "parameters", "property", "lanes", "messages", "loop", "explanation", "tidied", "why"):
        plait[field] = getattr(trace, field)
    document: dict[str, Any] = {
        "#meta": {
            "format": "ITF",
            "description": "A run found by Plait; `plait replay` runs it again",
            "variables": variables,
            "plait": plait,
        },
        "vars": [*variables.values(), *_OTHER_VARIABLES],
        "states": [
            _state(trace.initial, 0, variables, None),
            *(_state(e.state, i, variables, e) for i, e in enumerate(trace.events, start=1)),
        ],
    }
    if trace.loop is not None:
        document["loop"] = trace.loop
    file = Path(path)
    try:
        content = msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TraceError(
            f"{file}: the trace holds a value that JSON cannot: {error}",
            hint="build the trace's data with plait.kernel.values.to_data",
        ) from None
    try:
        file.write_bytes(msgspec.json.format(content, indent=1) + b"\n")
    except OSError as error:
        raise TraceError(
            f"{file}: cannot be written: {error.strerror}",
            hint="give a path in a directory that exists and is writable",
        ) from None


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace that `save_trace` wrote; a file that is anything else is a `TraceError` that says what it lacks."""
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise TraceError(
            f"{file}: cannot be read: {error.strerror}", hint="give a trace that `plait check` saved"
        ) from None
    try:
        raw = msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{file}: expected a trace in ITF, which is JSON; found: {error}", hint=_NEXT_ACT) from None
    try:
        return _read(file, raw)
    except RecursionError:
        raise TraceError(f"{file}: its values are nested too deeply for a trace", hint=_NEXT_ACT) from None


def _convert(file: Path, what: str, data: object, wanted: type[T]) -> T:
    try:
        return msgspec.convert(data, wanted)
    except msgspec.ValidationError as error:
        raise TraceError(f"{file}: {what} is not as expected: {error}", hint=_NEXT_ACT) from None


def _read(file: Path, raw: object) -> Trace:
    document = _convert(file, "the ITF document", raw, _File)
    described = document.meta.get("plait")
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise TraceError(
            f'{file}: expected a Plait trace (ITF with "#meta"."plait"."format" = "{FORMAT}"), found another ITF file',
            hint=_NEXT_ACT,
        )
    header = _convert(file, 'the header ("#meta"."plait")', described, _Header)
    if header.version != VERSION:
        raise TraceError(
            f"{file}: expected version {VERSION} of the trace format, found version {header.version}",
            hint="use the version of Plait that wrote it, or save the trace again with this one",
        )
    plait = _convert(file, 'the header ("#meta"."plait")', described, _Plait)
    variables = _convert(
        file, 'the names of the variables ("#meta"."variables")', document.meta.get("variables"), dict[str, str]
    )
    if not document.states:
        raise TraceError(f'{file}: expected at least the initial state in "states", found none', hint=_NEXT_ACT)
    snapshots = [_snapshot(file, i, state, variables) for i, state in enumerate(document.states)]
    events = [
        _event(file, i, state, snapshot)
        for i, (state, snapshot) in enumerate(zip(document.states, snapshots, strict=True))
        if i > 0
    ]
    trace = Trace(
        target=plait.target,
        parameters=plait.parameters,
        property=plait.property,
        lanes=plait.lanes,
        messages=plait.messages,
        initial=snapshots[0],
        events=events,
        loop=plait.loop,
        explanation=plait.explanation,
        tidied=plait.tidied,
        why=plait.why,
    )
    _check(file, trace)
    return trace


def _snapshot(file: Path, index: int, state: dict[str, Any], variables: dict[str, str]) -> Snapshot:
    what = f'state {index} ("states"[{index}])'
    missing = [v for v in (*variables.values(), *_OTHER_VARIABLES) if v not in state]
    if missing:
        raise TraceError(f"{file}: {what} lacks the variable {missing[0]!r}", hint=_NEXT_ACT)
    meta = _convert(file, f'{what}\'s "#meta"', state.get("#meta"), dict[str, Any])
    absent = _convert(file, f'{what}\'s "#meta"."absent"', meta.get("absent", []), list[str])
    fields = {lane: state[variable] for lane, variable in variables.items() if lane not in absent}
    data = {"fields": fields, **{name: state[name] for name in _OTHER_VARIABLES}}
    return _convert(file, what, data, Snapshot)


def _event(file: Path, index: int, state: dict[str, Any], snapshot: Snapshot) -> Event:
    what = f'the event that led to state {index} ("states"[{index}]."#meta"."event")'
    data = state["#meta"].get("event")
    if not isinstance(data, dict):
        raise TraceError(f"{file}: {what} is missing", hint=_NEXT_ACT)
    # The snapshot is read already; an empty one stands in for it while the rest is checked.
    event = _convert(file, what, {**data, "state": {"fields": {}}}, Event)
    return msgspec.structs.replace(event, state=snapshot)


def _check(file: Path, trace: Trace) -> None:
    """What a type cannot say: references lead somewhere and tagged data is well formed, so that drawing cannot fail."""
    known = {m.id for m in trace.messages}
    if len(known) != len(trace.messages):
        raise TraceError(f"{file}: two messages have the same id", hint=_NEXT_ACT)
    if trace.loop is not None and not 0 <= trace.loop < len(trace.events):
        raise TraceError(
            f"{file}: the loop goes back to event {trace.loop}, but there are {len(trace.events)} events",
            hint=_NEXT_ACT,
        )
    for index, event in enumerate((None, *trace.events)):
        snapshot = event.state if event else trace.initial
        used = {i for inbox in snapshot.pending.values() for i in inbox}
        if event is not None:
            used.update(event.consumed, event.sent)
        if used - known:
            raise TraceError(
                f"{file}: state {index} refers to message {min(used - known)}, which the file does not describe",
                hint=_NEXT_ACT,
            )
        values: list[Data] = [*snapshot.fields.values(), snapshot.monitors]
        if event is not None:
            values += [event.announced, event.choices, [list(pair) for pair in event.changed.values()]]
        _check_data(file, values)
    _check_data(file, [trace.parameters, [m.fields for m in trace.messages]])


def _check_data(file: Path, data: Data) -> None:
    if isinstance(data, list):
        for item in data:
            _check_data(file, item)
    elif isinstance(data, dict):
        for key, item in data.items():
            pairs = key == "#map" and isinstance(item, list) and all(isinstance(p, list) and len(p) == 2 for p in item)
            if key in ("#tup", "#set", "#map") and not (pairs if key == "#map" else isinstance(item, list)):
                raise TraceError(f"{file}: a value tagged {key!r} does not hold what the tag says", hint=_NEXT_ACT)
            _check_data(file, item)
