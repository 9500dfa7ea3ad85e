"""What translated machines have in common, and the operations on P values that Python does not have.

A step of a machine takes an event from its queue, runs the handler to its end (or to a `receive`), and performs the first
of the operations that other machines can notice: a send, a `new`, an `announce`. The other operations wait in `outbox`, and
are performed one by one, by steps of their own. docs/reference/p.md says why this gives the same verdicts as P.
"""

from __future__ import annotations

import enum
from typing import Any

from plait.kernel.errors import Argument
from plait.kernel.pid import Pid
from plait.model.monitor import Monitor
from plait.model.process import Process, action

HALTED = "(halted)"
"""In place of a state: the machine has stopped."""
UNBORN = "(created)"
"""In place of a state: the machine has not started."""


class PMachine(Process):
    """A machine: its state, what it still has to send, and the functions that wait for an event."""

    __plait_optional__ = ("create", "start", "take", "go_on")
    """Handlers that all machines have, whether they need them or not."""
    __plait_more_slots__ = ("allow more machines of each class: ", Argument("machines", 10, parameter=True))
    """The hint if a run creates more machines than there are slots."""

    at: str = UNBORN
    outbox: tuple[Any, ...] = ()
    frames: tuple[Any, ...] = ()

    def settle_(self, jump: Any) -> None:
        """Go on until nothing is left to do without an event, and perform the first operation."""
        while jump is not None and jump[0] != "return":
            if jump[0] == "blocked":
                self.frames = jump[1]
                jump = None
            elif jump[0] == "goto":
                self.leave_()
                self.at = jump[1]
                jump = self.enter_(jump[2])
            else:
                jump = self.react_(jump[1], jump[2])
        if len(self.outbox) > 0:
            self.perform_()

    def perform_(self) -> None:
        """The first operation of the outbox."""
        to, event, payload = self.outbox[0]
        self.outbox = self.outbox[1:]
        self.emit_(to, event, payload)

    @action(when=lambda self: len(self.outbox) > 0)
    def go_on(self) -> None:
        """Perform the next operation of the handler."""
        self.perform_()

    def post_(self, machine: Pid | None, event: Any, payload: Any) -> None:
        """Remember an operation: a send, or without a machine an announcement."""
        self.outbox = (*self.outbox, (machine, event, payload))

    def new_(self, machine: Pid, payload: Any) -> Pid:
        """Start a machine. It begins when this operation is performed."""
        self.outbox = (*self.outbox, (machine, None, payload))
        return machine

    def takes_(self, event: Any) -> bool:
        """Whether the machine takes an event from its queue now. A machine that has stopped drops all events."""
        if len(self.outbox) > 0:
            return False
        if self.at == HALTED:
            return True
        if self.at == UNBORN:
            return False
        if len(self.frames) > 0:
            return event.value == "halt" or event in self.awaits_(self.frames[-1][0], self.frames[-1][1])
        return not self.defers_(event)

    def take_(self, event: Any, payload: Any) -> None:
        """Handle an event of the queue."""
        if self.at == HALTED:
            return
        if len(self.frames) > 0:
            if event in self.awaits_(self.frames[-1][0], self.frames[-1][1]):
                self.resume_((event, payload))
            else:  # halt ends what waits
                self.frames = ()
                self.settle_(("raise", event, payload))
        else:
            self.settle_(self.react_(event, payload))

    def begin_(self, payload: Any) -> None:
        """Enter the start state."""
        self.at = self.first_()
        self.settle_(self.enter_(payload))

    def resume_(self, got: Any) -> None:
        """Continue the functions that wait for this event."""
        frames = self.frames
        self.frames = ()
        while len(frames) > 0:
            function, point, values = frames[-1]
            frames = frames[:-1]
            got = self.continue_(function, point, values, got)
            if got[0] == "blocked":
                got = ("blocked", (*frames, *got[1]))
            if got[0] != "return":
                frames = ()
        self.settle_(got)

    # What a translated machine defines:

    def first_(self) -> str:
        """The start state."""
        return ""

    def defers_(self, event: Any) -> bool:
        """Whether the state defers an event."""
        return False

    def awaits_(self, function: str, point: int) -> tuple[Any, ...]:
        """The events that a function waits for."""
        return ()

    def leave_(self) -> None:
        """The exit function of the state."""

    def enter_(self, payload: Any) -> Any:
        """The entry function of the state."""

    def react_(self, event: Any, payload: Any) -> Any:
        """The handler of an event in the state."""

    def continue_(self, function: str, point: int, values: Any, got: Any) -> Any:
        """A function, from the point where it waited."""

    def emit_(self, to: Any, event: Any, payload: Any) -> None:
        """Tell the specifications about an event, and send it."""


class PSpec(Monitor):
    """A specification: a machine that observes events, each when it is sent or announced."""

    at: str = UNBORN
    failed: str = ""
    """The place and the message of the assertion that failed."""

    def settle_(self, jump: Any) -> None:
        """Go on until nothing is left to do without an event."""
        while jump is not None:
            if jump[0] == "fail":
                self.failed = jump[1]
                jump = None
            elif jump[0] == "goto":
                self.leave_()
                self.at = jump[1]
                jump = self.enter_(jump[2])
            else:
                jump = self.react_(jump[1], jump[2])

    def begin_(self) -> PSpec:
        """Enter the start state."""
        self.at = self.first_()
        self.settle_(self.enter_(None))
        return self

    def first_(self) -> str:
        """The start state."""
        return ""

    def leave_(self) -> None:
        """The exit function of the state."""

    def enter_(self, payload: Any) -> Any:
        """The entry function of the state."""

    def react_(self, event: Any, payload: Any) -> Any:
        """The handler of an event in the state."""


# -- operations on values --------------------------------------------------------------------------------------------------


def rank(value: Any) -> tuple[Any, ...]:
    """A key that sorts values of one type of P. Values of different types have different keys.

    >>> sorted([None, Pid("B", 0), Pid("A", 1)], key=rank)
    [None, A1, B0]
    """
    if value is None:
        return (0,)
    if isinstance(value, enum.Enum):
        return (1, type(value).__name__, value.value)
    if isinstance(value, Pid):
        return (2, value.role, value.index)
    if isinstance(value, tuple):
        return (3, len(value), *(rank(item) for item in value))
    if isinstance(value, frozenset):
        return (4, len(value), *sorted(rank(item) for item in value))
    if isinstance(value, dict):
        return (5, len(value), *sorted((rank(key), rank(item)) for key, item in value.items()))
    if isinstance(value, bool | int | str):
        return (6, type(value).__name__, value)
    return (7, type(value).__name__, *(rank(getattr(value, name)) for name in value.__dataclass_fields__))


def copied(value: Any) -> Any:
    """A copy of a value, in which no map is shared."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple([copied(item) for item in value])
    if isinstance(value, frozenset) or not hasattr(value, "__dataclass_fields__") or isinstance(value, Pid):
        return value
    return type(value)(*[copied(getattr(value, name)) for name in value.__dataclass_fields__])


def item(values: Any, index: int, where: str) -> Any:
    """An item of a sequence, or of the elements of a set in their order."""
    assert 0 <= index < len(values), f"{where}: the index {index} is not below the size {len(values)}"
    return values[index]


def look_up(values: dict[Any, Any], key: Any, where: str) -> Any:
    """The value of a key in a map."""
    assert key in values, f"{where}: the map has no key {key}"
    return values[key]


def with_item(values: tuple[Any, ...], index: int, value: Any, where: str) -> tuple[Any, ...]:
    """A sequence in which one item is replaced."""
    assert 0 <= index < len(values), f"{where}: the index {index} is not below the size {len(values)}"
    return (*values[:index], value, *values[index + 1 :])


def inserted(values: tuple[Any, ...], index: int, value: Any, where: str) -> tuple[Any, ...]:
    """A sequence with another item at an index."""
    assert 0 <= index <= len(values), f"{where}: the index {index} is above the size {len(values)}"
    return (*values[:index], value, *values[index:])


def without_item(values: tuple[Any, ...], index: int, where: str) -> tuple[Any, ...]:
    """A sequence without the item at an index."""
    assert 0 <= index < len(values), f"{where}: the index {index} is not below the size {len(values)}"
    return (*values[:index], *values[index + 1 :])


def added(values: dict[Any, Any], key: Any, value: Any, where: str) -> dict[Any, Any]:
    """A map with a new key."""
    assert key not in values, f"{where}: the map has the key {key} already"
    return {**values, key: value}


def without_key(values: dict[Any, Any], key: Any) -> dict[Any, Any]:
    """A map without a key."""
    return {other: value for other, value in values.items() if other != key}


def quotient(left: int, right: int, where: str) -> int:
    """Division that rounds towards zero.

    >>> quotient(-7, 2, ""), remainder(-7, 2, "")
    (-3, -1)
    """
    assert right != 0, f"{where}: division by zero"
    return left // right if (left >= 0) == (right > 0) else -(-left // right)


def remainder(left: int, right: int, where: str) -> int:
    """What division leaves; it has the sign of the dividend."""
    return left - right * quotient(left, right, where)


def options(values: Any, where: str) -> Any:
    """What `choose` chooses from."""
    assert len(values) > 0, f"{where}: there is nothing to choose from"
    assert len(values) <= 10_000, f"{where}: choose has more than 10,000 options"
    return values


def target(machine: Pid | None, where: str) -> Pid:
    """The machine that an event is sent to."""
    assert machine is not None, f"{where}: the target of the send is null"
    return machine


def occurring(event: Any, where: str) -> Any:
    """An event that is sent, raised or announced."""
    assert event is not None, f"{where}: the event is null"
    return event


def shown(value: Any) -> str:
    """A value as `format` and messages show it."""
    return value.name if isinstance(value, enum.Enum) else str(value)
