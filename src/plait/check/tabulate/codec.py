"""Model values as canonical bytes and back. Errors name the place and what was expected there."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
from typing import Any

import msgspec

from plait._native import Codec, Failure
from plait.check.tabulate.cells import Cells, UnseenError
from plait.kernel.deadline import OutOfTimeError
from plait.kernel.errors import ModelError, PlaitError
from plait.kernel.pid import Pid
from plait.kernel.places import raised, text_of, user_line
from plait.kernel.trace import Raised
from plait.model.clock import Clock, refusal
from plait.model.message import Message
from plait.model.process import Process
from plait.model.shared import reference
from plait.model.system import System

UP, CRASHED, DOWN, UNBORN = range(4)
"""The first byte of a local state; the canonical bytes of the tuple of its fields follow."""

NO_CONTENT = (TypeError, ValueError, OverflowError)
"""What the codec raises on a value that no state can hold."""
_CLOCK = b"plait.model.clock.Clock"
"""In the content of a clock."""
_UNDECLARED = ("_id", "_run", "_reads")
"""Attributes that Plait adds. They are not fields."""


class StuckError(BaseException):
    """Raised in user code that does not return when the search must stop. It is no mistake of the model."""


def require_users(error: BaseException) -> None:
    """Raise an exception again that is not one of user code: Ctrl-C, and those by which Plait ends user code."""
    if isinstance(error, KeyboardInterrupt | OutOfTimeError | StuckError | UnseenError):
        raise error


class ModelCodec:
    """Decodes processes and messages of one System, and encodes their values."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.codec = Codec(Pid)
        self.cells = Cells(system)
        for shared in system.shared:
            pid: Pid = shared.__dict__["_id"]
            self.codec.refer(pid.role, pid.index, reference(type(shared), pid, self.cells))
        self.thread: int | None = None
        """The thread that runs user code, or ran it last."""

    def interrupt(self) -> None:
        """End a call of user code that does not return, because the search must stop."""
        if self.thread is not None:
            ident, error = ctypes.c_ulong(self.thread), ctypes.py_object(StuckError)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)

    def process(self, index: int, local: bytes, *, cls: type[Process] | None = None) -> Process:
        """A fresh process in this local state. The cells that may follow its fields are what user code reads now."""
        declared = self.system.classes[index]
        process = object.__new__(cls or declared)
        fields = object.__getattribute__(process, "__dict__")
        values = self.codec.decode(local[1:])
        if self.cells.all:
            own = len(declared.__plait_fields__)
            self.cells.begin(values[own:])
            values = values[:own]
        fields.update(zip(declared.__plait_fields__, values, strict=True))
        fields["_id"] = self.system.pids[index]
        return process

    def message(self, sender: int, content: bytes) -> Message:
        """A fresh message that knows its sender."""
        message: Message = self.codec.decode(content)
        message.__dict__["_sender"] = self.system.pids[sender]
        return message

    def encode(self, value: object, place: str) -> bytes:
        try:
            return without_clock(self.codec.encode(value))
        except NO_CONTENT as error:
            # A field of the message may be the reason.
            if isinstance(value, Message):
                place = f"{place} {type(value).__name__}"
                names = tuple(f.name for f in dataclasses.fields(value))
                self.fields(tuple(getattr(value, name, None) for name in names), names, place)
            message, hint, *_ = (*map(str, error.args), "")
            raise ModelError(
                f"{place}: {message}",
                hint=hint
                or "use numbers, strings, enums, tuples, lists, dicts, sets, deques, dataclasses, process ids; "
                "each list, dict and set in one place only",
            ) from None

    def with_cells(self, local: bytes, cells: list[bytes]) -> bytes:
        """A local state, followed by the contents of cells."""
        return self.codec.joined([*self.codec.fields(local), *cells])

    def without_cells(self, index: int, local: bytes) -> bytes:
        """A local state, without the contents of cells that may follow its fields."""
        if not self.cells.all:
            return local
        return self.codec.joined(self.codec.fields(local)[: len(self.system.classes[index].__plait_fields__) + 1])

    def situation(self, values: tuple[Any, ...], names: tuple[str, ...], place: str) -> bytes:
        """The content of the fields of a process that ran, and of all cells: no two of them may share an object."""
        return self.fields((*values, *self.cells.values), (*names, *self.cells.names), place)

    def local(self, status: int, values: tuple[Any, ...], names: tuple[str, ...], place: str) -> bytes:
        """The content of a local state."""
        return bytes([status]) + self.fields(values, names, place)

    def fields(self, values: tuple[Any, ...], names: tuple[str, ...], place: str) -> bytes:
        """The content of a tuple of named values."""
        try:
            return self.codec.encode(values)
        except NO_CONTENT:
            for name, value in zip(names, values, strict=True):
                if type(value) is not Clock:
                    self.encode(value, f"{place}: field {name}")
            # Each field alone can be encoded, but not all together: two of them share an object.
            for (a, x), (b, y) in itertools.combinations(zip(names, values, strict=True), 2):
                self.encode((x, y), f"{place}: fields {a} and {b}")
            raise


def without_clock(content: bytes) -> bytes:
    """A content, which must not have a clock: only a field of a process is one."""
    if _CLOCK in content:
        raise TypeError("it holds a clock", "a clock stays in its field: compare it, and use the result")
    return content


def declared_values(thing: Any, fields: tuple[str, ...], where: str) -> tuple[Any, ...]:
    """The values of the fields of a process or monitor. It must have exactly these fields."""
    there = object.__getattribute__(thing, "__dict__")
    for name in there:
        if name not in fields and name not in _UNDECLARED:
            raise ModelError(
                f"{where} sets self.{name}, which {type(thing).__name__} does not declare",
                hint=f"declare the field in the class: {name}: … = …",
            )
    for name in fields:
        if name not in there:
            raise ModelError(f"{where} deletes self.{name}", hint="set it to None instead")
    values = tuple(there[name] for name in fields)
    clocks = getattr(thing, "__plait_clocks__", ())
    for name, value in zip(fields, values, strict=True):
        if (type(value) is Clock) != (name in clocks):
            what = f"assigns self.{name}, which is a clock" if name in clocks else f"stores a clock in self.{name}"
            raise ModelError(f"{where} {what}", hint="a clock stays in its field: use reset(), start() and stop()")
    if (refused := refusal(values)) is not None:
        raise refused.at(where)
    return values


def explained(where: str, error: BaseException) -> PlaitError:
    """The error for an exception of user code, with the place in the model and the line in the user's file."""
    if isinstance(error, PlaitError):
        known = error.placed or where in error.message
        return error if known else error.at(where, kind=ModelError)
    message = f"{where} raised {type(error).__name__}: {text_of(error)}{user_line(error)}"
    return ModelError(message, hint=f"fix {where}, or guard against the case")


def failed(where: str, error: BaseException) -> Failure:
    """The failure for an exception of user code. An error of Plait means that the model is malformed: it is raised."""
    mistake = explained(where, error)
    if isinstance(error, PlaitError | StuckError):
        raise mistake from cause(error)
    return Failure(True, mistake.message, mistake.hint, msgspec.msgpack.encode(raised(where, error)))


def exception(failure: Failure | None) -> Raised | None:
    """The exception of a failure; None if it is not one."""
    content = failure.exception if failure is not None else None
    return None if content is None else msgspec.msgpack.decode(content, type=Raised)


def kind_of(answer: Any) -> Any:
    """The part of a failure on which two runs must agree: all but its text (pytest rewrites assertions)."""
    if not isinstance(answer, Failure):
        return answer
    raised = exception(answer)
    return (answer.violation, None) if raised is None else (answer.violation, raised.where, raised.type)


def cause(error: BaseException) -> BaseException | None:
    """The exception to show below an explained error: the user's exception, but not an error of Plait."""
    return None if isinstance(error, PlaitError) else error
