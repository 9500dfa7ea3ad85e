"""The handlers of a protocol inside its sequential program: which are enabled, and what a step does.

The handlers are the user's own, unchanged. While a handler runs, its messages are collected, to be sent in the round of
their tag. Its choices become choices of the program.
"""

from __future__ import annotations

import abc
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from plait.kernel.errors import ModelError, PlaitError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Handler, Process
from plait.model.quorum import Quorum
from plait.model.system import System, plays
from plait.rounds.calendar import Calendar, where
from plait.rounds.program.step import Heard

_ATOMS = frozenset({int, str, bool, float, bytes, type(None), Pid})


class Letter(NamedTuple):
    """A message of a handler, and the round in which it is sent."""

    place: int
    to: Pid
    message: Message | None
    """None if the round is after the last phase: nobody receives it."""


class HandlerRun:
    """What a running handler may request (`plait.model.process.Run`): messages are collected, the rest is passed on."""

    def __init__(self, protocol: Protocol, real: Any, script: Sequence[int] | None = None) -> None:
        self._protocol, self._real = protocol, real
        self.script = None if script is None else list(script)
        self.letters: list[Letter] = []
        self.chosen: list[Any] = []
        self.widths: list[int] = []
        self.children: list[Pid] = []

    def send(self, to: Pid, message: Message) -> None:
        if not isinstance(to, Pid) or to not in self._protocol.system.index or not isinstance(message, Message):
            self._real.send(to, message)  # it reports the error
        # Copied, because the handler may change a list after it has sent it.
        self.letters.append(Letter(self._protocol.calendar.place(message), to, fresh(message)))

    def announce(self, event: Any) -> None:
        """There are no monitors."""

    def choose(self, options: Iterable[Any]) -> Any:
        if self.script is None:
            return self._real.choose(options)
        values = list(options)
        if isinstance(options, set | frozenset):
            values.sort(key=repr)
        if not values:
            return self._real.choose(values)  # it reports the error
        position = len(self.widths)
        self.widths.append(len(values))
        if position == len(self.script):
            self.script.append(0)
        chosen = values[self.script[position]]
        self.chosen.append(fresh(chosen))
        return chosen

    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid:
        return self._protocol.spawn(self, self._real, role, fields)

    def ids(self, role: type[Process]) -> tuple[Pid, ...]:
        return self._protocol.system.ids(role)


class Trial(NamedTuple):
    """What one combination of an action's choices would send. Combinations that change nothing are left out."""

    script: tuple[int, ...]
    choices: tuple[Any, ...]
    places: tuple[int, ...]
    after: Process
    """A copy of the process after the action."""
    fails: bool = False
    """Whether the action fails (an assertion, an exception), after messages of these places."""


class Protocol(abc.ABC):
    """The handlers of a System, to run one at a time."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.calendar = Calendar(system)
        self.handlers = {cls.__name__: {h.name: h for h in cls.__plait_handlers__} for cls in system.classes}
        self.ran: set[tuple[str, str]] = set()
        """Class and name of the handlers that ran."""

    @abc.abstractmethod
    def spawn(self, run: HandlerRun, real: Any, role: type[Process], fields: dict[str, Any]) -> Pid:
        """Create a process; implemented by the sequential program."""

    def of(self, process: Process) -> Iterable[Handler]:
        """The protocol's handlers of a process."""
        return self.handlers[process.id.role].values()

    # -- what is enabled -------------------------------------------------------------------------------------------

    def receipts(self, process: Process, heard: Heard) -> Iterator[tuple[Handler, Heard]]:
        """Enabled handlers, each with the messages that it would consume."""
        for handler in self.of(process):
            if handler.kind != "message":
                continue
            fitting = tuple(entry for entry in heard if self.fits(process, handler, *entry))
            if not fitting:
                continue
            for chosen in itertools.combinations(fitting, self._size(process, handler)):
                values = [key_of([getattr(m, name) for name in handler.same]) for _, m in chosen]
                if len({s for s, _ in chosen}) == len(chosen) and all(v == values[0] for v in values):
                    yield handler, chosen

    def fits(self, process: Process, handler: Handler, sender: Pid, message: Message) -> bool:
        """Whether a handler may consume a message, alone or with others."""
        if not isinstance(message, handler.messages):
            return False
        if handler.role is not None and not plays(self.system.classes[self.system.index[sender]], handler.role):
            return False
        with blamed(process, handler, guard=True):
            return handler.where is None or bool(handler.where(process, delivered(sender, message)))

    def _size(self, process: Process, handler: Handler) -> int:
        quorum = handler.size
        if isinstance(quorum, Quorum):
            return self.system.quorum_size(quorum)
        with blamed(process, handler, guard=True):
            size = quorum if isinstance(quorum, int) else quorum(process)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ModelError(f"the quorum of {where(type(process), handler)} is {size!r}", hint="give 1 or more")
        return size

    def actions(self, process: Process) -> Iterator[Handler]:
        """The actions whose guard holds."""
        for handler in self.of(process):
            if handler.kind == "action":
                with blamed(process, handler, guard=True):
                    enabled = handler.where is None or handler.where(process)
                if enabled:
                    yield handler

    def trials(self, process: Process, handler: Handler) -> Iterator[Trial]:
        """Run an action on copies of its process, once per combination of its choices, to see what it would send."""
        script: list[int] = []
        while True:
            twin = _copy(process)
            run = HandlerRun(self, None, script)
            own(twin)["_run"] = run
            fails = False
            try:
                with blamed(process, handler):
                    handler.function(twin)
            except Exception as error:
                if type(error).__module__.startswith("plait."):  # a mistake, or the checker ends a step in this way
                    raise
                fails = True  # when the step is taken, too
            script = (run.script or [])[: len(run.widths)]
            if fails or run.letters or run.children or state_of(process) != state_of(twin):
                places = tuple(letter.place for letter in run.letters)
                yield Trial(tuple(script), tuple(run.chosen), places, twin, fails)
            while script and script[-1] + 1 >= run.widths[len(script) - 1]:
                script.pop()
            if not script:
                return
            script[-1] += 1

    # -- what a step does ------------------------------------------------------------------------------------------

    def run(
        self, process: Process, handler: Handler, consumed: Heard, script: Sequence[int] | None = None
    ) -> HandlerRun:
        """Run a handler on the process; the caller sends its messages."""
        self.ran.add((process.id.role, handler.name))
        real = own(process)["_run"]
        run = HandlerRun(self, real, script)
        own(process)["_run"] = run
        messages = tuple(delivered(sender, fresh(message)) for sender, message in consumed)
        try:
            with blamed(process, handler):
                if handler.kind == "message":
                    handler.function(process, messages if handler.quorum is not None else messages[0])
                else:
                    handler.function(process)
        finally:
            own(process)["_run"] = real
        return run


@contextlib.contextmanager
def blamed(process: Process, handler: Handler, *, guard: bool = False) -> Iterator[None]:
    """Make an error of the model name the handler, not the turn that runs it.

    An exception of the user's code is a violation. The checker shows the run to it. In a guard or the size of a quorum, a
    failed assertion is an exception as any other: only handlers have assertions.
    """
    try:
        yield
    except AssertionError as error:
        if not guard:
            raise
        raise RuntimeError("an assertion failed in a guard") from error
    except PlaitError as error:
        name = f"{process.id.role}.{handler.name}"
        error = error if error.placed else ModelError(f"{name}: {error.message}", hint=error.hint, placed=True)
        raise error from None


def fresh(value: Any) -> Any:
    """A copy of a value that shares no mutable part with it; an immutable value is its own copy."""
    return value if _constant(value) else copy.deepcopy(value)


def _constant(value: Any) -> bool:
    kind: Any = type(value)
    if kind in _ATOMS or isinstance(value, enum.Enum):
        return True
    if isinstance(value, tuple | frozenset):
        return all(map(_constant, value))
    names = _frozen_fields(kind)
    return names is not None and all(_constant(getattr(value, name)) for name in names)


@functools.cache
def _frozen_fields(kind: Any) -> tuple[str, ...] | None:
    """The fields of a frozen dataclass."""
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return None
    return tuple(f.name for f in dataclasses.fields(kind))


def key_of(value: Any) -> Hashable:
    """A value as a dictionary key. Two keys are equal only if values and types are equal."""
    kind = type(value)
    if kind is float:
        return (kind, repr(value))  # 0.0 and -0.0 are equal, and differ
    if kind in _ATOMS:
        return (kind, value)
    if isinstance(value, enum.Enum):
        return (kind, value.name, value.value if isinstance(value, enum.Flag) else None)
    if kind.__module__.startswith("plait.check."):  # a probe counts as the value that it wraps
        kind = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    if isinstance(value, tuple):
        return (kind, *map(key_of, tuple.__iter__(value)))
    if isinstance(value, list | deque):
        return (kind, getattr(value, "maxlen", None), *map(key_of, value))
    if isinstance(value, OrderedDict):
        return (kind, *((key_of(k), key_of(v)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return (kind, frozenset(map(key_of, value)))
    if isinstance(value, dict):
        factory = getattr(value, "default_factory", None)
        return (kind, factory, frozenset((key_of(k), key_of(v)) for k, v in value.items()))
    if isinstance(value, str):
        return (kind, str.__str__(value))  # past the methods of its class
    if isinstance(value, int):
        return (kind, int.__add__(value, 0))
    if isinstance(value, Decimal):
        return (kind, str(value))  # 1.0 and 1.00 are equal, and differ
    if dataclasses.is_dataclass(value):
        return (kind, *(key_of(getattr(value, f.name)) for f in dataclasses.fields(value)))
    return (kind, value)


def delivered(sender: Pid, message: Message) -> Message:
    """The message with its sender."""
    message.__dict__["_sender"] = sender
    return message


def own(process: Process) -> dict[str, Any]:
    """The attributes of a process, without counting as a read of its fields."""
    return object.__getattribute__(process, "__dict__")  # type: ignore[no-any-return]


def _copy(process: Process) -> Process:
    twin: Process = object.__new__(type(process))
    mine = own(process)
    fields = {name: fresh(mine[name]) for name in type(process).__plait_fields__}
    own(twin).update(mine, **fields)
    return twin


def state_of(process: Process) -> Hashable:
    """The local state of a process as a key."""
    return key_of([own(process)[name] for name in type(process).__plait_fields__])
