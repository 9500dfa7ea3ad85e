"""The events of a log, prepared for the engine: names become numbers, JSON becomes the content of values.

A message of which all fields are known is exact: the engine compares numbers. Of other messages the engine asks
`Compiled.matches`, once per message.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from plait.check.runner import Runner
from plait.conform.conversion import Conversion, UnclearError
from plait.conform.log import Event, Log, Received, Sent, bad, by_process
from plait.conform.order import Order, ordered
from plait.kernel.errors import UsageError
from plait.kernel.values import text, to_data
from plait.model.message import Message, subclasses
from plait.model.process import Process
from plait.model.system import System, plays

ENVIRONMENT = {"crash": -1, "recover": -2, "lose": -3, "duplicate": -4}
"""Labels of what is no handler, with their numbers for the engine."""
_MOST_CONTENTS = 64

Values = dict[str, tuple[Any, ...]]
"""By field, the values that it may have."""
Item = tuple[int | None, list[tuple[int, bytes]] | None, int | None]
"""As the engine takes it: the other process, the exact messages, the number of a pattern."""
EngineEvent = tuple[int, int | None, list[Item], list[Item], list[tuple[int, list[bytes]]], list[tuple[int, int]], int]


@dataclasses.dataclass(frozen=True)
class Pattern:
    """What is known of a message."""

    type: type[Message] | None
    fields: Values
    """By field, the contents that it may have; nothing for a field that is not known."""


class Compiled:
    """A log, for one runner."""

    def __init__(self, runner: Runner, log: Log, complete: Sequence[str] = ()) -> None:
        self.runner, self.log, self.system = runner, log, runner.system
        self.names = runner.names
        self._position = {name: number for number, name in enumerate(self.names)}
        aliases = {alias: name for alias, name in log.processes.items() if name in self._position}
        pids = dict(zip(self.names, self.system.pids, strict=True))
        self._pids = pids | {alias: pids[name] for alias, name in aliases.items()}
        self.conversion = Conversion(self._pids)
        self.events: list[list[Event]] = list(by_process(log, self.names).values())
        self.order: Order = ordered(self.events)
        self.types = messages_of(self.system)
        self.complete = [
            complete_for(self.system, number, [*log.complete, *complete]) for number in range(len(self.names))
        ]
        self.patterns: list[Pattern] = []
        self.numbered: list[tuple[int, int]] = []
        """By number of an event, its process and its number there."""
        lines = {id(event): number for number, event in enumerate(log.events)}
        order = sorted(
            (
                (lines[id(event)], process, number)
                for process, own in enumerate(self.events)
                for number, event in enumerate(own)
            )
        )
        self.numbered = [(process, number) for _, process, number in order]
        self._number = {reference: number for number, reference in enumerate(self.numbered)}
        self._fields: dict[tuple[type, str, str], tuple[Any, ...]] = {}
        self._encodings: dict[int, dict[str, set[bytes]]] = {}
        self._known_messages: dict[int, tuple[type[Message] | None, Values]] = {}
        """By identity of what an event says of a message: the log keeps them."""
        self._contents: dict[tuple[object, ...], list[bytes] | None] = {}
        """By class and fields, the contents of messages of which all is known."""
        self._kept: list[object] = []
        """What the keys of `_contents` are made of: an identity must not be used again."""

    def of(self, number: int) -> Event:
        """An event by its number."""
        process, place = self.numbered[number]
        return self.events[process][place]

    @functools.cached_property
    def engine_events(self) -> list[list[EngineEvent]]:
        """The events of each process, for the engine."""
        return [
            [self._event(process, number, event) for number, event in enumerate(own)]
            for process, own in enumerate(self.events)
        ]

    def matches(self, pattern: int, content: bytes) -> bool:
        """Whether a pattern allows a message."""
        wanted, codec = self.patterns[pattern], self.runner.tabulation.codec
        message = codec.decode(content)
        if wanted.type is not None and type(message) is not wanted.type:
            return False
        if pattern not in self._encodings:
            self._encodings[pattern] = {
                name: {codec.encode(value) for value in values} for name, values in wanted.fields.items()
            }
        return all(
            hasattr(message, name) and codec.encode(getattr(message, name)) in contents
            for name, contents in self._encodings[pattern].items()
        )

    # -- one event -----------------------------------------------------------------------------------------------

    def _event(self, process: int, number: int, event: Event) -> EngineEvent:
        record, here = event.record, (process, number)
        return (
            self._number[here],
            None if record.step is None else self._label(process, event, record.step),
            [self._received(event, message, here) for message in record.received],
            [item for message in record.sent for item in self._sent(event, message, here)],
            [self._state(process, event, name, value) for name, value in record.state.items()],
            self.order.before[process][number],
            self.order.apart[process][number],
        )

    def _label(self, process: int, event: Event, step: str) -> int:
        if step in ENVIRONMENT:
            return ENVIRONMENT[step]
        cls = self.system.classes[process]
        handlers = [h.name for h in cls.__plait_handlers__ if h.kind in ("action", "message")]
        if step not in handlers:
            raise bad(
                event.place,
                f"{cls.__name__} has no handler {step!r}",
                f"its handlers are {', '.join(handlers)}; {', '.join(ENVIRONMENT)} are steps, too",
            )
        return next(n for n, h in enumerate(cls.__plait_handlers__) if h.name == step)

    def _state(self, process: int, event: Event, name: str, value: Any) -> tuple[int, list[bytes]]:
        cls = self.system.classes[process]
        if name not in cls.__plait_fields__ or name in cls.__plait_clocks__:
            raise bad(
                event.place,
                f"{cls.__name__} has no field {name!r}" if name not in cls.__plait_fields__ else f"{name} is a clock",
                f"its fields are {', '.join(f for f in cls.__plait_fields__ if f not in cls.__plait_clocks__)}",
            )
        codec = self.runner.tabulation.codec
        found = [codec.encode(one) for one in self._values(event, cls, name, value, f"{cls.__name__}.{name}")]
        return cls.__plait_fields__.index(name), found

    def _values(self, event: Event, cls: type, name: str, value: Any, what: str) -> tuple[Any, ...]:
        key = (cls, name, repr(value))
        if key not in self._fields:
            try:
                self._fields[key] = tuple(self.conversion.values(value, self.conversion.hints(cls)[name]))
            except UnclearError as error:
                raise bad(
                    event.place, f"{what}: {error}", "docs/reference/conform.md says how values are written"
                ) from None
        return self._fields[key]

    def _pid(self, event: Event, name: str) -> int:
        if name not in self._pids:
            raise bad(event.place, f"there is no process {name!r}", f"the processes are {', '.join(self.names)}")
        return self._position[repr(self._pids[name])]

    # -- messages ------------------------------------------------------------------------------------------------

    def _received(self, event: Event, message: Received, here: tuple[int, int]) -> Item:
        cls, values = self._known(event, message)
        sender = None if message.sender is None else self._pid(event, message.sender)
        for sending, number, sent in self._sources(here, message):
            theirs = self._known(self.events[sending][number], sent)
            both = None if sender not in (None, sending) else _both((cls, values), theirs)
            if both is None:  # what is received was not sent
                return sender, [], None
            sender, (cls, values) = sending, both
        return self._item(cls, values, sender, range(len(self.names)) if sender is None else [sender])

    def _sources(self, here: tuple[int, int], message: Received) -> Iterator[tuple[int, int, Sent]]:
        """Where a message is sent that is received here, and what is said of it there."""
        if message.id is None:
            return
        for process, number in self.order.links.get(here, []):
            for sent in self.events[process][number].record.sent:
                if sent.id == message.id:
                    yield process, number, sent

    def _sent(self, event: Event, message: Sent, here: tuple[int, int]) -> Iterator[Item]:
        cls, values = self._known(event, message)
        to = [message.to] if isinstance(message.to, str) else message.to
        for receiver in [None] if to is None else [self._pid(event, name) for name in to]:
            found = (cls, values)
            for theirs in self._receipts(message, receiver):
                found = _both(found, theirs) or found
            yield self._item(*found, receiver, [here[0]])

    def _receipts(self, message: Sent, receiver: int | None) -> Iterator[tuple[type[Message] | None, Values]]:
        """What is said of a message where it is received."""
        if message.id is None:
            return
        for process, event, received in self._receipts_of.get(message.id, ()):
            if receiver in (None, process):
                yield self._known(event, received)

    @functools.cached_property
    def _receipts_of(self) -> dict[object, list[tuple[int, Event, Received]]]:
        """By id of a message, where it is received."""
        found: dict[object, list[tuple[int, Event, Received]]] = {}
        for process, own in enumerate(self.events):
            for event in own:
                for received in event.record.received:
                    if received.id is not None:
                        found.setdefault(received.id, []).append((process, event, received))
        return found

    def _known(self, event: Event, message: Received | Sent) -> tuple[type[Message] | None, Values]:
        """The class of a message and the values of its fields, as far as an event says."""
        found = self._known_messages.get(id(message))
        if found is None:
            found = self._known_messages[id(message)] = self._converted(event, message)
        return found

    def _converted(self, event: Event, message: Received | Sent) -> tuple[type[Message] | None, Values]:
        if message.type is None:
            if message.fields:
                raise bad(event.place, "a message with fields has no type", "give its type")
            return None, {}
        cls = self.types.get(message.type)
        if cls is None:
            raise bad(event.place, f"there is no message {message.type!r}", f"messages are {', '.join(self.types)}")
        hints = self.conversion.hints(cls)
        for name in message.fields:
            if name not in hints:
                raise bad(
                    event.place, f"{cls.__name__} has no field {name!r}", f"its fields are {', '.join(hints) or 'none'}"
                )
        return cls, {
            name: self._values(event, cls, name, value, f"{cls.__name__}.{name}")
            for name, value in message.fields.items()
        }

    def _item(self, cls: type[Message] | None, values: Values, other: int | None, senders: Sequence[int]) -> Item:
        if cls is None:
            return other, None, None
        hints = self.conversion.hints(cls)
        if len(values) == len(hints):
            # Equal JSON gives identical tuples, which `_fields` keeps; merged ones are kept by the key itself.
            kept = tuple(values[name] for name in hints)
            key = (cls, *map(id, kept))
            if key not in self._contents:
                self._contents[key] = self._made(cls, hints, kept)
                self._kept.append(kept)
            contents = self._contents[key]
            if contents is not None:
                return other, [(sender, content) for sender in senders for content in contents], None
        self.patterns.append(Pattern(cls, values))
        return other, None, len(self.patterns) - 1

    def _made(self, cls: type[Message], hints: dict[str, Any], kept: Sequence[tuple[Any, ...]]) -> list[bytes] | None:
        """The contents of the messages with these fields; None if there are too many."""
        made = list(itertools.islice(itertools.product(*kept), _MOST_CONTENTS + 1))
        encode = self.runner.tabulation.codec.encode
        return (
            [encode(cls(**dict(zip(hints, one, strict=True)))) for one in made] if len(made) <= _MOST_CONTENTS else None
        )

    # -- text ------------------------------------------------------------------------------------------------------

    def described(self, event: Event) -> str:
        """An event in one line."""
        record = event.record
        parts = [record.step] if record.step is not None else []
        parts += [
            f"receives {_said(m.type, m.fields)}{f' from {m.sender}' if m.sender else ''}" for m in record.received
        ]
        for m in record.sent:
            to = [m.to] if isinstance(m.to, str) else m.to or []
            parts.append(f"sends {_said(m.type, m.fields)}" + (f" to {', '.join(to)}" if to else ""))
        parts += [f"{name} is {_plain(value)}" for name, value in record.state.items()]
        return ", ".join(parts)


def _said(kind: str | None, fields: dict[str, Any]) -> str:
    if kind is None:
        return "a message"
    return f"{kind}({', '.join(f'{name}={_plain(value)}' for name, value in fields.items())})"


def _plain(value: Any) -> str:
    return text(value) if isinstance(value, dict) else repr(value)


def _both(
    one: tuple[type[Message] | None, Values], other: tuple[type[Message] | None, Values]
) -> tuple[type[Message] | None, Values] | None:
    """What two events say of one message; None if they contradict each other."""
    if one[0] is not None and other[0] is not None and one[0] is not other[0]:
        return None
    fields = dict(one[1])
    for name, values in other[1].items():
        if fields.get(name) is values:  # the same JSON, converted once
            continue
        if name in fields:
            shared = {repr(to_data(value)) for value in values}
            values = tuple(value for value in fields[name] if repr(to_data(value)) in shared)
            if not values:
                return None
        fields[name] = values
    return one[0] or other[0], fields


def messages_of(system: System) -> dict[str, type[Message]]:
    """The messages of a model by name: those that handlers take, and those that are defined beside them."""
    found: dict[str, type[Message]] = {}
    modules = {cls.__module__ for cls in system.classes}
    waiting: list[type[Message]] = [m for cls in system.classes for h in cls.__plait_handlers__ for m in h.messages]
    modules |= {message.__module__ for message in waiting}
    taken = set(waiting)
    for cls in subclasses(Message):
        if cls in taken or any(issubclass(cls, one) for one in taken):
            found[cls.__name__] = cls
    for cls in subclasses(Message):
        if cls.__module__ in modules:
            found.setdefault(cls.__name__, cls)
    for cls in waiting:
        found[cls.__name__] = cls
    return found


Complete = tuple[list[bool], bool, bool, bool]
"""By handler, whether each of its steps is logged; the same for crashes and recoveries, sends, and received messages."""


def complete_for(system: System, process: int, complete: Sequence[str]) -> Complete:
    """What the log leaves out nowhere, of one process."""
    cls = system.classes[process]
    names = [handler.name for handler in cls.__plait_handlers__]
    handlers, faults, sends, receives = [False] * len(names), False, False, False
    for what in complete:
        kind, _, role = what.partition("@")
        roles = {
            c.__name__: c for one in system.classes for c in one.__mro__ if issubclass(c, Process) and c is not Process
        }
        if role and role not in roles:
            raise UsageError(f"complete: there is no role {role!r}", hint=f"the roles are {', '.join(roles)}")
        all_names = {h.name for c in system.classes for h in c.__plait_handlers__}
        if kind not in ("steps", "sends", "receives", *all_names):
            raise UsageError(
                f"complete: {kind!r} is no handler",
                hint=f"give steps, sends, receives, or one of {', '.join(sorted(all_names))}; of one role with @Role",
            )
        if role and not plays(cls, roles[role]):
            continue
        if kind == "steps":
            handlers, faults = [True] * len(names), True
        sends |= kind == "sends"
        receives |= kind == "receives"
        handlers = [known or kind == name for known, name in zip(handlers, names, strict=True)]
    return handlers, faults, sends, receives
