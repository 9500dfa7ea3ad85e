"""Traces as files in the Informal Trace Format (ITF) of Apalache. A file contains the complete trace.

An ITF viewer sees an ordinary run: one variable for each lane (a record of its fields), then `pending`, `monitors`,
`status` and `budgets`. Data that ITF does not define (events, messages, roles of lanes, pictures) is under the `#meta`
keys, which ITF reserves for tools. State 0 is the initial state, and event k leads to state k + 1. So `loop`, which is an
index of a state in ITF, is the index of the event to which the run goes back. A state without pictures has those of the
state before.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from plait.kernel.errors import TraceError
from plait.kernel.trace import Event, Lane, Mark, Picture, Raised, Sent, Snapshot, Trace, Wait, Why
from plait.kernel.values import Data

FORMAT = "plait-trace"
VERSION = 1

_OTHER_VARIABLES = ("pending", "monitors", "status", "budgets")
_NEXT_ACT = "save the trace again, or give a file that Plait wrote"

T = TypeVar("T")


class _Header(msgspec.Struct, forbid_unknown_fields=False):
    """Format and version of a file. They are read first, so that the error for a newer version says so."""

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
    marks: list[Mark] = []
    tidied: str | None = None
    why: Why | None = None
    folder: str | None = None
    """The folder that the target is relative to, seen from the folder of the file."""
    exception: Raised | None = None
    waiting: list[Wait] = []
    violators: list[list[str]] = []
    abstract: str | None = None
    chosen: dict[str, list[Data]] = {}


class _File(msgspec.Struct, rename={"meta": "#meta"}):
    """The outermost object of an ITF file."""

    meta: dict[str, Any]
    vars: list[str]
    states: list[dict[str, Any]]
    loop: int | None = None


def _variables(trace: Trace) -> dict[str, str]:
    """For each lane, the name of its ITF variable: the name of the lane, with primes if it is in use already."""
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


def _state(
    snapshot: Snapshot, index: int, variables: dict[str, str], event: Event | None, before: Snapshot | None = None
) -> dict[str, Any]:
    meta: dict[str, Any] = {"index": index}
    absent = [lane for lane in variables if lane not in snapshot.fields]
    if absent:
        # ITF requires every variable in every state. These lanes have an empty record for this reason only.
        meta["absent"] = absent
    if event is not None:
        meta["event"] = {
            k: v for k, v in msgspec.to_builtins(event).items() if k != "state" and (k, v) != ("abstract", None)
        }
    if snapshot.views is not msgspec.UNSET and (before is None or before.views != snapshot.views):
        meta["views"] = snapshot.views
    state: dict[str, Any] = {"#meta": meta}
    for lane, variable in variables.items():
        state[variable] = snapshot.fields.get(lane, {})
    for other in _OTHER_VARIABLES:
        state[other] = getattr(snapshot, other)
    return state


def save_trace(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as ITF. `load_trace` gives back an equal one.

    A target that is a file or a module belongs to the current folder. Where this is, is stored relative to the file, so
    that the trace can be replayed from any folder.
    """
    file = Path(path)
    content = trace_bytes(trace, file)
    try:
        file.write_bytes(content)
    except OSError as error:
        raise TraceError(
            f"{file}: cannot be written: {error.strerror}",
            hint="give a path in a folder that exists and is writable",
        ) from None


def trace_bytes(trace: Trace, file: Path) -> bytes:
    """The content of a file with a trace as ITF."""
    variables = _variables(trace)
    plait: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for field in ("target", "parameters", "property", "lanes", "messages", "loop", "explanation", "tidied", "why"):
        plait[field] = getattr(trace, field)
    if trace.marks:
        plait["marks"] = trace.marks
    if re.search(r"[/.:]", trace.target):
        plait["folder"] = os.path.relpath(Path.cwd(), file.parent.resolve())
    for field in ("chosen", "waiting", "violators"):
        if getattr(trace, field):
            plait[field] = getattr(trace, field)
    if trace.abstract is not None:
        plait["abstract"] = trace.abstract
    if trace.exception is not None:
        plait["exception"] = trace.exception
    before = [trace.initial, *(event.state for event in trace.events)][: len(trace.events)]
    document: dict[str, Any] = {
        "#meta": {
            "format": "ITF",
            "description": "A run found by Plait; `plait replay` executes it again",
            "variables": variables,
            "plait": plait,
        },
        "vars": [*variables.values(), *_OTHER_VARIABLES],
        "states": [
            _state(trace.initial, 0, variables, None),
            *(
                _state(e.state, i, variables, e, b)
                for i, (b, e) in enumerate(zip(before, trace.events, strict=True), 1)
            ),
        ],
    }
    if trace.loop is not None:
        document["loop"] = trace.loop
    try:
        content = msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TraceError(
            f"{file}: the trace has a value that JSON cannot represent: {error}",
            hint="make the data of the trace with plait.kernel.values.to_data",
        ) from None
    return msgspec.json.format(content, indent=1) + b"\n"


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace that `save_trace` wrote. Any other file raises a `TraceError` that says what is missing."""
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
        raise TraceError(f"{file}: its values are nested too deeply", hint=_NEXT_ACT) from None


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
            hint="use the version of Plait that wrote the file, or save the trace again with this version",
        )
    plait = _convert(file, 'the header ("#meta"."plait")', described, _Plait)
    variables = _convert(
        file, 'the names of the variables ("#meta"."variables")', document.meta.get("variables"), dict[str, str]
    )
    if not document.states:
        raise TraceError(f'{file}: expected at least the initial state in "states", found none', hint=_NEXT_ACT)
    snapshots: list[Snapshot] = []
    for i, state in enumerate(document.states):
        snapshots.append(_snapshot(file, i, state, variables, snapshots[-1].views if snapshots else msgspec.UNSET))
    events = [
        _event(file, i, state, snapshot)
        for i, (state, snapshot) in enumerate(zip(document.states, snapshots, strict=True))
        if i > 0
    ]
    trace = Trace(
        target=_located(file, plait.target, plait.folder),
        parameters=plait.parameters,
        property=plait.property,
        lanes=plait.lanes,
        messages=plait.messages,
        initial=snapshots[0],
        events=events,
        chosen=plait.chosen,
        loop=plait.loop,
        explanation=plait.explanation,
        marks=plait.marks,
        tidied=plait.tidied,
        why=plait.why,
        exception=plait.exception,
        waiting=plait.waiting,
        violators=plait.violators,
        abstract=plait.abstract,
    )
    if document.loop != trace.loop:
        raise TraceError(
            f'{file}: "loop" is {document.loop}, and "#meta"."plait"."loop" is {trace.loop}', hint=_NEXT_ACT
        )
    _check(file, trace)
    return trace


def _located(file: Path, target: str, folder: str | None) -> str:
    """The target as it is called from the current folder."""
    if folder is None or (base := (file.parent / folder).resolve()) == Path.cwd():
        return target
    place, colon, name = target.rpartition(":") if ":" in target else (target, "", "")
    module = place.replace(".", "/")
    for candidate in (place, f"{module}.py", f"{module}/__init__.py"):
        if not Path(place).is_absolute() and (base / candidate).is_file():
            return f"{os.path.relpath(base / candidate)}{colon}{name}"
    return target


def _snapshot(
    file: Path,
    index: int,
    state: dict[str, Any],
    variables: dict[str, str],
    views: dict[str, Picture] | msgspec.UnsetType,
) -> Snapshot:
    """A state. Without pictures of its own, it has those of the state before, `views`."""
    what = f'state {index} ("states"[{index}])'
    missing = [v for v in (*variables.values(), *_OTHER_VARIABLES) if v not in state]
    if missing:
        raise TraceError(f"{file}: {what} has no variable {missing[0]!r}", hint=_NEXT_ACT)
    meta = _convert(file, f'{what}\'s "#meta"', state.get("#meta"), dict[str, Any])
    absent = _convert(file, f'{what}\'s "#meta"."absent"', meta.get("absent", []), list[str])
    fields = {lane: state[variable] for lane, variable in variables.items() if lane not in absent}
    data = {"fields": fields, **{name: state[name] for name in _OTHER_VARIABLES}}
    found = _convert(file, what, data, Snapshot)
    drawn = (
        _convert(file, f'{what}\'s "#meta"."views"', meta["views"], dict[str, Picture]) if "views" in meta else views
    )
    return msgspec.structs.replace(found, views=drawn)


def _event(file: Path, index: int, state: dict[str, Any], snapshot: Snapshot) -> Event:
    what = f'the event that led to state {index} ("states"[{index}]."#meta"."event")'
    data = state["#meta"].get("event")
    if not isinstance(data, dict):
        raise TraceError(f"{file}: {what} is missing", hint=_NEXT_ACT)
    # The snapshot was read before. The rest is checked with an empty snapshot.
    event = _convert(file, what, {**data, "state": {"fields": {}}}, Event)
    return msgspec.structs.replace(event, state=snapshot)


def _check(file: Path, trace: Trace) -> None:
    """Check what types cannot express, so that drawing cannot fail: valid references, well-formed tagged data."""
    known = {m.id for m in trace.messages}
    if len(known) != len(trace.messages):
        raise TraceError(f"{file}: two messages have the same id", hint=_NEXT_ACT)
    if trace.loop is not None and not 0 <= trace.loop < len(trace.events):
        raise TraceError(
            f"{file}: the loop goes back to event {trace.loop}, but there are {len(trace.events)} events",
            hint=_NEXT_ACT,
        )
    for mark in trace.marks:
        if not 0 <= mark.before <= len(trace.events) or not known.issuperset(mark.lost):
            raise TraceError(
                f"{file}: the mark {mark.label!r} refers to a step or a message that does not exist", hint=_NEXT_ACT
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
            values.append(event.values or {})
        _check_data(file, values)
    _check_data(file, [trace.parameters, [m.fields for m in trace.messages], list(trace.chosen.values())])


def _check_data(file: Path, data: Data) -> None:
    if isinstance(data, list):
        for item in data:
            _check_data(file, item)
    elif isinstance(data, dict):
        for key, item in data.items():
            pairs = key == "#map" and isinstance(item, list) and all(isinstance(p, list) and len(p) == 2 for p in item)
            if key in ("#tup", "#set", "#map") and not (pairs if key == "#map" else isinstance(item, list)):
                raise TraceError(f"{file}: a value with the tag {key!r} is not as expected", hint=_NEXT_ACT)
            _check_data(file, item)
