"""Guards: which handlers may run in a local state, and which messages may trigger them.

A guard reads few fields. `watched` records which. So a guard is evaluated once per distinct content of these fields,
not once per local state.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, NamedTuple

from plait._native import Failure, SetOrder
from plait.check.cover.recorder import Recorder
from plait.check.tabulate.codec import UP, ModelCodec, declared_values, failed, kind_of, require_users
from plait.check.tabulate.probe import turns
from plait.check.tabulate.sample import Question, Sample
from plait.kernel.errors import ModelError
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.quorum import MANY, Quorum
from plait.model.system import plays

Value = bool | Failure
"""The value of a guard, or the exception that it raised."""
Known = dict[tuple[int, ...], dict[tuple[bytes, ...], Value]]
"""For each set of fields that an evaluation read, the answers by the content of these fields."""


@functools.cache
def watched(cls: type[Process]) -> type[Process]:
    """A subclass that records in `_reads` which fields are read."""
    fields = frozenset(cls.__plait_fields__)

    def read(self: Any, name: str) -> Any:
        if name in fields or name == "__dict__":
            # A copy that is being made has no record yet: what it gets was read from the original.
            reads = object.__getattribute__(self, "__dict__").get("_reads")
            if reads is not None:
                reads.update(fields if name == "__dict__" else (name,))
        return super(noting, self).__getattribute__(name)

    noting: type[Process] = type(cls.__name__, (cls,), {"__getattribute__": read, "__module__": cls.__module__})
    return noting


@functools.cache
def _watched_kind(cls: type[Message]) -> type[Message]:
    fields = frozenset(f.name for f in dataclasses.fields(cls))

    def read(self: Any, name: str) -> Any:
        if name in fields and (note := object.__getattribute__(self, "__dict__").get("_note")):
            note(cls, name)
        return super(noting, self).__getattribute__(name)

    noting: type[Message] = type(
        cls.__name__, (cls,), {"__getattribute__": read, "__module__": cls.__module__, "__plait_derived__": True}
    )
    return noting


def watched_message(message: Message, note: Callable[[type[Message], str], None]) -> Message:
    """A message that reports which of its fields are read. Do not keep it."""
    made = object.__new__(_watched_kind(type(message)))  # type: ignore[arg-type]
    object.__getattribute__(made, "__dict__").update(message.__dict__, _note=note)
    return made


class LookedAtError(BaseException):
    """A guard read the message."""


class Unread:
    """Stands for any message. Reading it raises LookedAtError."""

    def __getattribute__(self, name: str) -> Any:
        raise LookedAtError


@functools.cache
def only_attributes(guard: Any) -> bool:
    """Whether a guard uses the message only to read its attributes, so that `Unread` detects every use."""
    code = getattr(guard, "__code__", None)
    if code is None or code.co_argcount < 2 or code.co_varnames[1] in code.co_cellvars:
        return False
    message = code.co_varnames[1]
    instructions = list(dis.get_instructions(code))
    for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
        used = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if message not in used or not instruction.opname.startswith(("LOAD_FAST", "STORE_FAST", "DELETE_FAST")):
            continue
        loaded = instruction.opname.startswith("LOAD_FAST") and used[-1] == message and used.count(message) == 1
        if not (loaded and following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD")):
            return False
    return True


def triggered(receiver: type[Process], sender: type[Process], message: type[Message]) -> list[int]:
    """The handlers of a class for a class of messages (and, for a quorum, for the role of this sender)."""
    return [
        number
        for number, handler in enumerate(receiver.__plait_handlers__)
        if issubclass(message, handler.messages) and (handler.role is None or plays(sender, handler.role))
    ]


Delivered = tuple[int, bytes]
"""A message: the position of its sender, and its content."""


class Takes(NamedTuple):
    """A handler that may run in a local state, and the sets of messages that it may take."""

    handler: int
    least: int
    """How many messages; 0 for an enabled action."""
    most: int
    distinct: bool
    """Its messages have different senders."""
    accepts: bool
    """A guard over the whole set decides."""


class Guards:
    """Answers questions about the guards of one System."""

    def __init__(
        self,
        model_codec: ModelCodec,
        handlers: list[tuple[Handler, ...]],
        order: SetOrder,
        sample: Sample,
        recorder: Recorder | None = None,
    ) -> None:
        self.model_codec = model_codec
        self.order, self.sample = order, sample
        self.recorder = recorder
        self.system = model_codec.system
        self.handlers = handlers
        self._asked: dict[tuple[type[Process], str] | str, int] = {}
        self.foresee = False
        """Leave handlers out of `armed` that no message can trigger. Partial-order reduction needs this."""
        self._known: dict[tuple[int, int, bool, tuple[Delivered, ...]], Known] = {}
        """Per process, handler, whether `accept` was asked, and messages."""
        self._known_hopeless: dict[tuple[int, int], Known] = {}
        """Per process and handler."""
        self.raised: dict[tuple[int, int, bytes, tuple[Delivered, ...]], Failure] = {}
        """Guards (and sizes of quorums) that raised an exception: process, handler, local state, messages if there are any.
        The engine takes this for a step, which fails."""
        self._raising: set[tuple[int, int]] = set()
        """Per process and handler: whether one of its guards raised an exception."""

    def armed(self, index: int, local: bytes, only: int | None = None) -> list[Takes]:
        """Handlers that may run in this local state (of all, or of one)."""
        found = []
        fields = self.model_codec.codec.fields(local) if self.foresee else []
        for number, handler in enumerate(self.handlers[index]):
            if only is not None and number != only:
                continue
            value: int | Failure = 0
            if handler.kind == "action":
                value = handler.where is None or self._audited(index, number, local)[0]
                if value:
                    found.append(Takes(number, 0, 0, True, False))
            elif handler.kind == "message":
                value = self._quorum(index, number, local)
                if isinstance(value, Failure):
                    found.append(Takes(number, 0, 0, True, False))
                elif not (self.foresee and self._hopeless(index, number, local, fields)):
                    most = handler.most(value)
                    found.append(Takes(number, value, most, handler.distinct, handler.accept is not None))
            if isinstance(value, Failure):
                self._raise(index, number, local, (), value)
        return found

    def _raise(self, index: int, number: int, local: bytes, messages: tuple[Delivered, ...], failure: Failure) -> None:
        self.raised[index, number, local, messages] = failure
        self._raising.add((index, number))

    def failure(self, index: int, number: int, local: bytes, messages: Sequence[Delivered]) -> Failure | None:
        """The exception that the guard of a step raised, if it did.

        The engine knows a guard by the cells that it reads. So it may not have asked it with these contents of the others.
        Asked again, the guard also tells which cells the failure depends on.
        """
        if self.model_codec.cells.all and (index, number) in self._raising:
            self.armed(index, local, number)
            self.guards(index, local, [(number, message) for message in messages])
            if messages and self.handlers[index][number].accept is not None:
                self.accepts(index, local, number, [messages])
        return self.raised.get((index, number, local, tuple(messages)))

    def _hopeless(self, index: int, number: int, local: bytes, fields: list[bytes]) -> bool:
        """Whether a guard is false here for every message: it returns false without reading the message."""
        guard: Any = self.system.classes[index].__plait_handlers__[number].where
        if guard is None or not only_attributes(guard):
            return False
        known = self._known_hopeless.setdefault((index, number), {})
        key = (self.system.classes[index], self.handlers[index][number].name)
        value = self._recalled(index, known, fields)
        if value is None:
            value, names = self.order.watched(self._is_false, index, guard, local)
            for turn in turns(self._asked.get(key, 0), self.order.largest, least=1):
                again, read = self.order.permuted(turn, self._is_false, index, guard, local)
                value, names = value and again, names | read
            self._remember(index, known, fields, names, value)
        if value and self.recorder is not None:
            self.recorder.hopeless(self.system.classes[index], self.handlers[index][number].name)
        return bool(value)

    def _is_false(self, index: int, guard: Any, local: bytes) -> tuple[bool, set[str]]:
        """Whether a guard is false without a look at the message, and the fields that it read."""
        process, names = self._watched(index, local)
        try:
            value = not guard(process, Unread())
        except BaseException as error:  # an exception of the user comes again when there is a message
            require_users(error)
            value = False
        return value, names | self.model_codec.cells.noted_names()

    def handlers_for(self, index: int, sender: int, content: bytes) -> list[int]:
        """The handlers of a process for this type of message (and, for a quorum, for the role of this sender)."""
        message = self.model_codec.message(sender, content)
        return triggered(self.system.classes[index], self.system.classes[sender], type(message))

    def guards(
        self, index: int, local: bytes, questions: Sequence[tuple[int, tuple[int, bytes]]]
    ) -> list[bytes | Failure | None]:
        """For each handler and message, None if its guard is false here, else the value of its `same` fields."""
        fields = self.model_codec.codec.fields(local)
        answers: list[bytes | Failure | None] = []
        for number, (sender, content) in questions:
            answer = self._guard(index, number, local, fields, sender, content)
            if isinstance(answer, Failure):
                self._raise(index, number, local, ((sender, content),), answer)
            answers.append(answer)
        return answers

    def _guard(
        self, index: int, number: int, local: bytes, fields: list[bytes], sender: int, content: bytes
    ) -> bytes | Failure | None:
        handler = self.handlers[index][number]
        value = handler.where is None or self._holds(index, number, local, fields, ((sender, content),))
        if not value or isinstance(value, Failure):
            return value or None
        if not handler.same:
            return b""
        message = self.model_codec.message(sender, content)
        if self.recorder is not None:
            self.recorder.read(type(message), set(handler.same), f"quorum of {handler.name}")
        try:
            same = tuple(getattr(message, name) for name in handler.same)
        except BaseException as error:
            require_users(error)
            return failed(f"the quorum of {self.system.classes[index].__name__}.{handler.name}", error)
        return self.model_codec.codec.encode(same)

    def accepts(
        self, index: int, local: bytes, number: int, sets: Sequence[Sequence[Delivered]]
    ) -> list[bool | Failure]:
        """For each set of messages, what the guard over the whole set says."""
        fields = self.model_codec.codec.fields(local)
        answers: list[bool | Failure] = []
        for messages in sets:
            answer = self._holds(index, number, local, fields, tuple(messages), accept=True)
            if isinstance(answer, Failure):
                self._raise(index, number, local, tuple(messages), answer)
            answers.append(answer)
        return answers

    def _holds(
        self,
        index: int,
        number: int,
        local: bytes,
        fields: list[bytes],
        messages: tuple[Delivered, ...],
        accept: bool = False,
    ) -> Value:
        known = self._known.setdefault((index, number, accept, messages), {})
        value = self._recalled(index, known, fields)
        if value is None:
            value, names = self._audited(index, number, local, messages, accept)
            self._remember(index, known, fields, names, value)
        return value

    def _recalled(self, index: int, known: Known, fields: list[bytes]) -> Value | None:
        """The answer of an earlier evaluation that read the same content."""
        for read, answers in known.items():
            value = answers.get(tuple(fields[i] for i in read))
            if value is not None:
                first = len(self.system.classes[index].__plait_fields__) + 1
                self.model_codec.cells.note(i - first for i in read if i >= first)
                return value
        return None

    def _remember(self, index: int, known: Known, fields: list[bytes], names: set[str], value: Value) -> None:
        # Field 0 is the status. It is the same in all these evaluations. The cells follow the fields.
        places = (*self.system.classes[index].__plait_fields__, *self.model_codec.cells.names)
        read = tuple(i for i, name in enumerate(places, 1) if name in names)
        known.setdefault(read, {})[tuple(fields[i] for i in read)] = value

    def _audited(
        self, index: int, number: int, local: bytes, messages: tuple[Delivered, ...] = (), accept: bool = False
    ) -> tuple[Value, set[str]]:
        """Evaluate a guard (of an action, on one message, or on a set). At first, check that it is a function."""
        where = self._where(index, number, accept)
        key = (self.system.classes[index], self.handlers[index][number].name) if not accept else where
        count = self._asked[key] = self._asked.get(key, 0) + 1
        asked = (index, number, local, messages, accept)
        if self.sample.takes(count):
            value, read = self.sample.record(where, self._evaluate, *asked)
            self.sample.questions.append(Question(where, ("guard", *asked), kind_of(value)))
        else:
            value, read = self._evaluate(*asked)
        largest = self.order.largest
        if self.recorder is not None:
            self._record(self.recorder, index, number, local, read, messages, accept)
        for turn in turns(count, largest):
            again = self.order.permuted(turn, self.answer, *asked)
            if kind_of(again) != kind_of(value):
                first, second = ("an exception" if isinstance(v, Failure) else v for v in (value, again))
                raise ModelError(
                    f"{where} is not a function of its inputs: evaluated twice, it returned {first} and then {second}",
                    hint="a guard must not use randomness, clocks, globals or the order of a set",
                )
        return value, read

    def _record(
        self,
        recorder: Recorder,
        index: int,
        number: int,
        local: bytes,
        read: set[str],
        messages: tuple[Delivered, ...],
        accept: bool,
    ) -> None:
        """Record the reads of a guard. It is evaluated once more to record its reads of the messages."""
        handler = self.system.classes[index].__plait_handlers__[number]
        by = f"{'accept' if accept else 'guard'} of {handler.name}"
        recorder.read(self.system.classes[index], read, by)
        guard: Any = handler.accept if accept else handler.where
        if messages:
            noting = recorder.noting(by)
            given = tuple(watched_message(self.model_codec.message(*m), noting) for m in messages)
            try:
                guard(self._watched(index, local)[0], *([given] if accept else given))
            except BaseException as error:  # the evaluation before this one has reported it
                require_users(error)

    def _watched(self, index: int, local: bytes) -> tuple[Process, set[str]]:
        """A process that records its reads, and the set of the names that were read."""
        noting: type[Process] = watched(self.system.classes[index])  # type: ignore[arg-type]
        process = self.model_codec.process(index, local, cls=noting)
        read: set[str] = set()
        object.__getattribute__(process, "__dict__")["_reads"] = read
        return process, read

    def _evaluate(
        self,
        index: int,
        number: int,
        local: bytes,
        messages: tuple[Delivered, ...] = (),
        accept: bool = False,
        *,
        probe: bool = False,
    ) -> tuple[Value, set[str]]:
        """The value of a guard, and the fields that it read. It must not change the state."""
        cls, where = self.system.classes[index], self._where(index, number, accept)
        # As a probe, the original, which does not record coverage.
        handler = (cls.__plait_handlers__ if probe else self.handlers[index])[number]
        guard: Any = handler.accept if accept else handler.where
        process, read = self._watched(index, local)
        given = tuple(self.model_codec.message(*delivered) for delivered in messages)
        arguments = [given] if accept else given
        self.model_codec.thread = get_ident()
        value: Value
        try:
            value = bool(guard(process, *arguments) if probe else self.order.watched(guard, process, *arguments))
        except BaseException as error:
            require_users(error)
            value = failed(where, error)
        self._require_unchanged(index, local, process, where)
        return value, read | self.model_codec.cells.noted_names()

    def _require_unchanged(self, index: int, local: bytes, process: Process, where: str) -> None:
        names, codec = self.system.classes[index].__plait_fields__, self.model_codec
        now = bytes([UP]) + codec.situation(declared_values(process, names, where), names, where)
        if now == local:
            return
        what = repr(self.system.pids[index])
        pairs = zip(codec.codec.fields(local), codec.codec.fields(now), ("", *names, *codec.cells.names), strict=True)
        changed = next(name for before, after, name in pairs if before != after)
        raise ModelError(
            f"{where} changes {changed}" if changed in codec.cells.names else f"{where} changes the state of {what}",
            hint="a guard must not change anything: move the change into the handler",
        )

    def answer(
        self, index: int, number: int, local: bytes, messages: tuple[Delivered, ...] = (), accept: bool = False
    ) -> Value:
        """The value of a guard, without a record of coverage."""
        return self._evaluate(index, number, local, messages, accept, probe=True)[0]

    def reads(self, index: int, number: int, local: bytes, messages: Sequence[Delivered]) -> set[str]:
        """The fields that the guards read when they accepted these messages (or none, for an action)."""
        handler, read = self.handlers[index][number], set()
        if handler.where is not None:
            asked: list[tuple[Delivered, ...]] = [(message,) for message in messages]
            for one in asked or [()]:
                read |= self._evaluate(index, number, local, one)[1]
        if handler.accept is not None and messages:
            read |= self._evaluate(index, number, local, tuple(messages), True)[1]
        return read

    def _where(self, index: int, number: int, accept: bool = False) -> str:
        what = "accept guard" if accept else "guard"
        return f"the {what} of {self.system.classes[index].__name__}.{self.handlers[index][number].name}"

    def _quorum(self, index: int, number: int, local: bytes) -> int | Failure:
        quorum = self.handlers[index][number].size
        if isinstance(quorum, Quorum):
            return self.system.quorum_size(quorum)
        if isinstance(quorum, int):
            return quorum
        where = f"the quorum of {self.system.classes[index].__name__}.{self.handlers[index][number].name}"

        count = self._asked[where] = self._asked.get(where, 0) + 1

        def ask() -> tuple[Any, set[str]]:
            process, read = self._watched(index, local)
            try:
                found: Any = quorum(process)
                declared_values(process, self.system.classes[index].__plait_fields__, where)
            except BaseException as error:
                require_users(error)
                found = failed(where, error)
            return found, read | self.model_codec.cells.noted_names()

        size, read = self.order.watched(ask)
        for turn in turns(count, self.order.largest, least=1):
            again, _ = self.order.permuted(turn, ask)
            if kind_of(size) != kind_of(again):
                first, second = ("an exception" if isinstance(v, Failure) else repr(v) for v in (size, again))
                raise ModelError(
                    f"{where} is not a function of its inputs: evaluated twice, it was {first} and then {second}",
                    hint="a quorum must not use randomness, clocks, globals or the order of a set",
                )
        if isinstance(size, Failure):
            return size
        distinct = self.handlers[index][number].distinct
        highest = len(self.system.classes) if distinct else MANY
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= highest:
            raise ModelError(
                f"{where} is {size!r}",
                hint=f"give a number from 1 to {highest}{', the number of processes' if distinct else ''}",
            )
        if self.recorder is not None:
            self.recorder.read(self.system.classes[index], read, f"quorum of {self.handlers[index][number].name}")
        return size
