"""Logs: newline-delimited JSON, one event per line (docs/reference/conform.md).

A `Record` is one event, as it was recorded. The first line of a file may be a `Header`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from plait.conform.collection import paused
from plait.kernel.errors import UsageError

Name = str | int


class Received(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"sender": "from"}):
    """A message that a step takes. What is not given is not known."""

    type: str | None = None
    sender: str | None = None
    fields: dict[str, Any] = {}
    id: Name | None = None
    """The same as where it was sent: then it was sent before."""


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message that a step sends."""

    type: str | None = None
    to: str | list[str] | None = None
    fields: dict[str, Any] = {}
    id: Name | None = None


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an implementation recorded of one step of a process."""

    at: str
    """The process."""
    step: str | None = None
    """The handler, or crash, recover, lose or duplicate."""
    receive: Received | list[Received] = []
    send: Sent | list[Sent] = []
    state: dict[str, Any] = {}
    """Fields of the process after the step."""
    clock: dict[str, int] = {}
    """A vector clock: for each process, how many of its events come before this one, or are this one."""
    time: Any = None
    """For people: it orders nothing."""
    note: Any = None

    @property
    def received(self) -> list[Received]:
        return self.receive if isinstance(self.receive, list) else [self.receive]

    @property
    def sent(self) -> list[Sent]:
        return self.send if isinstance(self.send, list) else [self.send]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a log, if it has one."""

    plait: Literal[1]
    complete: list[str] = []
    """What the log leaves out nowhere: steps, sends, receives, or a handler; of one role, with `@Role`."""
    open: bool = False
    """The log of a process may end early: after its last event, what it does is not known."""
    processes: dict[str, str] = {}
    """The names of processes in the log, and in the model."""


@dataclasses.dataclass(frozen=True)
class Event:
    """A record with its place."""

    record: Record
    place: str
    """File and line."""


@dataclasses.dataclass
class Log:
    """The events of one or several files, in the order of the files."""

    name: str
    events: list[Event]
    complete: list[str] = dataclasses.field(default_factory=list)
    processes: dict[str, str] = dataclasses.field(default_factory=dict)
    open: bool = False
    headed: bool = False
    files: dict[str, int] = dataclasses.field(default_factory=dict)
    """By file, how many events it has."""


def schema() -> dict[str, Any]:
    """The JSON Schema of a line of a log."""
    kinds, parts = msgspec.json.schema_components([Record, Header], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a log for Plait",
        "anyOf": list(kinds),
        "$defs": parts,
    }


_RECORD = msgspec.json.Decoder(Record)
_HEADER = msgspec.json.Decoder(Header)


def bad(place: str, message: str, hint: str) -> UsageError:
    """The error for a wrong line."""
    return UsageError(f"{place}: {message}", hint=hint)


_SEE = "docs/reference/conform.md has the format of a line"


def read_lines(name: str, lines: Iterable[str]) -> Log:
    """A log in the format of Plait."""
    with paused():
        return _checked(_read(name, lines))


def _read(name: str, lines: Iterable[str]) -> Log:
    log = Log(name, [])
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        if not log.events and not log.headed and '"plait"' in line and _is_header(line):
            try:
                header = _HEADER.decode(line)
            except msgspec.MsgspecError as error:
                raise bad(place, f"not a header: {error}", _SEE) from None
            log.complete, log.processes = list(header.complete), dict(header.processes)
            log.open, log.headed = header.open, True
            continue
        try:
            record = _RECORD.decode(line)
        except msgspec.MsgspecError as error:
            raise bad(place, f"not an event: {error}", _SEE) from None
        log.events.append(Event(record, place))
    return log


def _is_header(line: str) -> bool:
    try:
        found = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        return False
    return isinstance(found, dict) and "plait" in found


def of_records(name: str, records: Iterable[tuple[str, Any]]) -> Log:
    """A log of plain data, each with its place."""
    events = []
    for place, data in records:
        try:
            record = data if isinstance(data, Record) else msgspec.convert(data, Record)
        except msgspec.MsgspecError as error:
            raise bad(place, f"not an event: {error}", _SEE) from None
        events.append(Event(record, place))
    return _checked(Log(name, events))


def _checked(log: Log) -> Log:
    for event in log.events:
        record = event.record
        if record.step is None and not record.received and not record.sent and not record.state:
            raise bad(event.place, "the event says nothing", "give a step, a receive, a send or a state")
    log.files = {log.name: len(log.events)}
    return log


def merged(logs: Sequence[Log]) -> Log:
    """Several logs of one run as one. What one of them may leave out, all may leave out."""
    first = logs[0]
    if len(logs) == 1:
        return first
    complete = [what for what in first.complete if all(what in log.complete for log in logs)]
    processes: dict[str, str] = {}
    for log in logs:
        for name, role in log.processes.items():
            if processes.setdefault(name, role) != role:
                raise UsageError(
                    f"{log.name}: the process {name!r} is {role}, but in another log {processes[name]}",
                    hint="use one name for one process in all logs",
                )
    events = [event for log in logs for event in log.events]
    files = {log.name: len(log.events) for log in logs}
    name = ", ".join(log.name for log in logs)
    return Log(name, events, complete, processes, any(log.open for log in logs), True, files)


def by_process(log: Log, names: Iterator[str] | Sequence[str]) -> dict[str, list[Event]]:
    """The events of each process of the model, in their order."""
    found: dict[str, list[Event]] = {name: [] for name in names}
    sources: dict[str, set[str]] = {}
    for event in log.events:
        name = log.processes.get(event.record.at, event.record.at)
        if name not in found:
            raise bad(
                event.place,
                f"the model has no process {name!r}",
                f"its processes are {', '.join(found)}; the header of a log can say which is which: "
                '{"plait": 1, "processes": {"node-a": "Server0"}}',
            )
        found[name].append(event)
        sources.setdefault(name, set()).add(event.place.rpartition(":")[0])
    for name, events in found.items():
        counts = [_own(event) for event in events]
        known = [count for count in counts if count is not None]
        if len(known) == len(counts) and known != sorted(set(known)):
            if len(set(known)) < len(known):
                twice = next(e for i, e in enumerate(events) if counts[i] in counts[:i])
                raise bad(
                    twice.place,
                    f"two events of {name} have the same number in their clocks",
                    "each event of a process increases its own number",
                )
            found[name] = [event for _, event in sorted(zip(known, events, strict=True), key=lambda pair: pair[0])]
        elif len(known) < len(counts) and len(sources[name]) > 1:
            raise UsageError(
                f"{' and '.join(sorted(sources[name]))} both have events of {name}, in an order that is not known",
                hint="record a process in one file, or give each of its events a vector clock",
            )
    return found


def _own(event: Event) -> int | None:
    return event.record.clock.get(event.record.at)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
