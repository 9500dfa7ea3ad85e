"""One run of a handler: the operations that it may use, and a record of its effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from enum import Enum
from typing import Any, NamedTuple

from plait._native import Failure
from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.message import Message
from plait.model.process import Process
from plait.model.system import System

Encode = Callable[[object, str], bytes]
_ATOMS = (int, str, bytes, float, Pid, Enum)


class Outcome(NamedTuple):
    """The result of one run of a handler, as the native engine reads it."""

    local: bytes
    sends: list[tuple[int, bytes]]
    """(receiver, message), in the order sent."""
    events: list[bytes]
    spawns: list[tuple[int, bytes]]
    """(slot, its initial local state)."""
    expected: list[tuple[int, bool]]
    """Slots that this outcome assumes to be unborn (true) or born (false)."""
    choices: list[bytes]
    failure: Failure | None


class Branches:
    """The choices of one handler: a script to follow, depth first over all combinations."""

    def __init__(self) -> None:
        self.script: list[int] = []
        self.widths: list[int] = []
        self._sorted: dict[int, tuple[list[int], Set[Any], list[Any]]] = {}
        """For each choice from a set: the choices before it, the set, and its members in order."""

    def next(self, width: int) -> int:
        position = len(self.widths)
        self.widths.append(width)
        if position == len(self.script):
            self.script.append(0)
        return self.script[position]

    def sorted(self, options: Set[Any], key: Callable[[Any], bytes]) -> list[Any]:
        """The members of a set in order. After the same choices, the set is the same, and is not sorted again."""
        position = len(self.widths)
        before, known, values = self._sorted.get(position, ([], frozenset(), []))
        if known and before == self.script[:position] and known == options:
            return values
        values = sorted(options, key=key)
        if all(isinstance(value, _ATOMS) for value in values):  # a run cannot change these
            self._sorted[position] = (self.script[:position], frozenset(options), values)
        return values

    def advance(self) -> bool:
        """Move to the next combination. Return false if all were tried."""
        del self.script[len(self.widths) :]
        while self.script and self.script[-1] + 1 >= self.widths[len(self.script) - 1]:
            self.script.pop()
        if not self.script:
            return False
        self.script[-1] += 1
        self.widths.clear()
        return True


class NoSlotError(ModelError):
    """All spare slots are taken, in the states where this branch applies."""


class StepRun:
    """The operations of a running handler (`plait.model.process.Run`). Collects its effects."""

    def __init__(self, system: System, where: str, branches: Branches, encode_or_explain: Encode) -> None:
        self._system, self._where, self._branches, self._encode = system, where, branches, encode_or_explain
        self.sends: list[tuple[int, bytes]] = []
        self.sent_to: set[tuple[type[Message], type[Process]]] = set()
        """Types of messages that were sent, and the classes of their receivers."""
        self.events: list[bytes] = []
        self.choices: list[bytes] = []
        self.spawned: list[tuple[int, Process]] = []
        self.expected: dict[int, bool] = {}

    def send(self, to: Pid, message: Message) -> None:
        if not isinstance(to, Pid) or to not in self._system.index:
            hint = f"send to one of: {', '.join(map(repr, self._system.pids))}"
            if isinstance(to, Message):
                hint = "the receiver comes first: self.send(to, message)"
            elif isinstance(to, type) and issubclass(to, Process):
                hint = f"broadcast({to.__name__}, …) sends to the role, {to.__name__}.pid(0) is its first process"
            raise ModelError(f"{self._where} sends to {to!r}, which is not a process of the system", hint=hint)
        if not isinstance(message, Message):
            raise ModelError(
                f"{self._where} sends {message!r}, which is not a Message",
                hint="send an instance of a Message class, for example class Ping(Message): number: int",
            )
        index = self._system.index[to]
        self.sent_to.add((type(message), self._system.classes[index]))
        self.sends.append((index, self._encode(message, f"{self._where}: message")))

    def announce(self, event: Any) -> None:
        self.events.append(self._encode(event, f"{self._where}: announced event"))

    def choose(self, options: Iterable[Any]) -> Any:
        if not isinstance(options, Iterable):
            raise ModelError(
                f"{self._where}: choose({options!r}) needs a collection", hint="self.choose([1, 2]) chooses 1 or 2"
            )
        # A sequence is not copied: a step that chooses among many values runs once for each of them.
        values = options if isinstance(options, range | list | tuple) else list(options)
        if isinstance(options, set | frozenset):
            values = self._branches.sorted(options, lambda v: self._encode(v, f"{self._where}: option"))
        if not values:
            raise ModelError(
                f"{self._where}: choose() was given no options", hint="guard the handler so that it has an option"
            )
        pick = self._branches.next(len(values))
        if pick >= len(values):
            raise ModelError(
                f"{self._where} is not a function of its inputs: run twice, it chose first from "
                f"more than {len(values)} options, then from {len(values)}",
                hint="a handler must not use randomness, clocks, globals or the order of a set",
            )
        chosen = values[pick]
        self.choices.append(self._encode(chosen, f"{self._where}: chosen option"))
        return chosen

    def spawn(self, role: type[Process], fields: dict[str, Any]) -> Pid:
        """Take the first free slot. Only the engine knows which slot is free: each slot is a branch."""
        first = len(self._system.processes)
        slots = [i for i in range(first, len(self._system.classes)) if self._system.classes[i] is role]
        if not slots:
            raise ModelError(
                f"{self._where} spawns {role.__name__}, but the System declares no spare slots for it",
                hint=f"declare them: System(..., spare={{{role.__name__}: 1}})",
            )
        free = [slot for slot in slots if slot not in self.expected]
        pick = self._branches.next(len(free) + 1)
        self.expected.update((slot, False) for slot in free[:pick])
        if pick == len(free):
            raise NoSlotError(
                f"{self._where} spawns {role.__name__}, but all {len(slots)} spare slots are taken",
                hint=getattr(
                    role, "__plait_more_slots__", "declare more spare slots, or guard the handler that spawns"
                ),
            )
        self.expected[free[pick]] = True
        try:
            process = role(**fields)
        except TypeError as error:
            raise ModelError(
                f"{self._where} spawns {role.__name__}: {error}",
                hint=f"its fields are: {', '.join(role.__plait_fields__) or 'none'}",
            ) from None
        self.spawned.append((free[pick], process))
        return self._system.pids[free[pick]]

    def ids(self, role: type[Process]) -> tuple[Pid, ...]:
        return self._system.ids(role)
