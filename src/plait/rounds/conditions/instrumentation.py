"""The asynchronous protocol, instrumented to record which conditions its steps break (Sequentialization, section 4.2).

The protocol runs unchanged. Each process also has a ghost field: its clock, what it sent in the current round and later, and
the conditions that its steps have broken so far. For each condition, a property says that it is not broken. Any search can
check these properties.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.properties import Property
from plait.model.system import System
from plait.rounds.calendar import CONDITIONS, Breach, Calendar, where


@dataclasses.dataclass(frozen=True)
class Record:
    """The ghost field of a process."""

    clock: int = 0
    sent: tuple[tuple[int, Pid], ...] = ()
    """Rounds and receivers of its messages, for the rounds in which it may still send."""
    broken: tuple[tuple[int, str], ...] = ()
    """The broken conditions, each with the first step that broke it."""


class _Recorder:
    """Passes on the requests of a handler, and records the rounds of its messages."""

    def __init__(self, calendar: Calendar, real: Any, born: Any) -> None:
        self._calendar, self._real, self._born = calendar, real, born
        self.sent: list[tuple[int, Pid]] = []
        self.spawned = False

    def send(self, to: Pid, message: Message) -> None:
        self._real.send(to, message)
        self.sent.append((self._calendar.place(message), to))

    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid:
        self.spawned = True
        return self._born(self._real, role, fields)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Instrumented(Process):
    """A process of the protocol with its ghost field."""

    rounds_record: Record = Record()
    rounds_calendar: ClassVar[Calendar]
    rounds_classes: ClassVar[dict[str, type[Process]]]


def instrumented(system: System) -> System:
    """The System with ghost fields, whose properties say that no condition is broken."""
    calendar = Calendar(system)
    classes: dict[str, type[Process]] = {}
    for cls in dict.fromkeys(system.classes):
        classes[cls.__name__] = _with_ghost(cls, calendar, classes)
    processes = []
    for process in system.processes:
        fields = {name: process.__dict__[name] for name in process.__plait_fields__}
        processes.append(classes[process.id.role](**fields))
    made = System(
        processes,
        network=system.network,
        faults=[
            dataclasses.replace(f, roles=tuple(classes.get(r.__name__, r) for r in f.roles)) for f in system.faults
        ],
        monitors=system.monitors,
        properties=[unbroken(number) for number in CONDITIONS],
        spare={classes[cls.__name__]: count for cls, count in system.spare.items()},
        name=system.name,
    )
    made.target, made.parameters = system.target, system.parameters
    return made


def unbroken(number: int) -> Property:
    """The property that a condition is not broken."""
    return Property(
        f"condition {number}",
        "always",
        lambda view: all(number != n for process in view for n, _ in process.rounds_record.broken),
        CONDITIONS[number],
    )


def _with_ghost(cls: type[Process], calendar: Calendar, classes: dict[str, type[Process]]) -> type[Process]:
    for name in dir(cls):
        if name.startswith("rounds_"):
            raise ModelError(
                f"{cls.__name__}.{name}: names that begin with rounds_ are reserved", hint="choose another name"
            )
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "rounds_calendar": calendar,
        "rounds_classes": classes,
    }
    made: type[Process] = type(cls.__name__, (cls, Instrumented), namespace)
    made.__plait_handlers__ = tuple(
        dataclasses.replace(handler, function=_recording(cls, handler)) for handler in cls.__plait_handlers__
    )
    return made


def _recording(cls: type[Process], handler: Handler) -> Any:
    """The handler, which also records what it consumed and sent."""

    def run(self: Any, *delivered: Any) -> None:
        calendar: Calendar = self.rounds_calendar
        own = object.__getattribute__(self, "__dict__")
        consumed: tuple[Message, ...] = ()
        if delivered:
            consumed = delivered[0] if handler.quorum is not None else delivered
        clock, breach = calendar.consumed(self.rounds_record.clock, [calendar.place(m) for m in consumed])
        real = own["_run"]

        def born(run: Any, role: type[Process], fields: dict[str, Any]) -> Pid:
            cls = self.rounds_classes.get(role.__name__, role)
            child: Pid = run.spawn(cls, {**fields, "rounds_record": Record(2 * (clock // 2 + 1) + 1)})
            return child

        recorder = own["_run"] = _Recorder(calendar, real, born)
        try:
            handler.function(self, *delivered)
        finally:
            own["_run"] = real
        breaches = [breach] if breach else []
        later, breach = calendar.sent(clock, [place for place, _ in recorder.sent])
        breaches += [breach] if breach else []
        if recorder.spawned and not consumed and recorder.sent:
            # The first round of the child depends on what the action sends, which is known only after the creation.
            breaches.append(Breach(1, "creates a process in an action that also sends, which rounds do not support"))
        known = list(self.rounds_record.sent)
        for entry in recorder.sent:
            if entry in known:
                what = f"sends {entry[1]!r} a second message of {calendar.name(entry[0])}"
                breaches.append(Breach(6, what))
            else:
                known.append(entry)
        broken = dict(self.rounds_record.broken)
        for b in breaches:
            broken.setdefault(b.condition, f"{where(cls, handler)} {b.what}")
        self.rounds_record = Record(
            later,
            tuple(sorted(entry for entry in known if 2 * entry[0] >= later)),
            tuple(sorted(broken.items())),
        )

    return run
