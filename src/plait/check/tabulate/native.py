"""A System as the native engine runs it: its program, and what a handler needs, apart from the code of the user."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from plait.check.tabulate.guards import only_attributes, triggered
from plait.check.tabulate.native_shape import NativeHandler, NativeSystem
from plait.check.tabulate.tabulation import Tabulation
from plait.ir.lower import lower
from plait.ir.nodes import encoded
from plait.model.message import Message, subclasses
from plait.model.process import Handler, Process
from plait.model.quorum import Quorum
from plait.model.system import System


def native_system(tabulation: Tabulation, *, foresee: bool = False) -> NativeSystem:
    """Lower a System."""
    system, encode = tabulation.system, tabulation.codec.encode
    lowered = lower(system, encode)
    for cls, made in zip(lowered.classes, lowered.program.classes, strict=True):
        if made.kind not in ("process", "monitor"):
            tabulation.codec.learn(cls)  # Python may get instances that only native steps have made
    classes = list(dict.fromkeys(system.classes))
    recovers = any(fault.recovers for fault in system.faults)
    return NativeSystem(
        program=encoded(lowered.program),
        handlers=[[_handler(system, handler) for handler in cls.__plait_handlers__] for cls in classes],
        classes=[classes.index(cls) for cls in system.classes],
        volatile=[
            [
                (cls.__plait_fields__.index(name), encode(value))
                for name, value in (tabulation.volatile(index).items() if recovers else ())
            ]
            for index, cls in enumerate(system.classes)
        ],
        messages={
            _name(message): [f.name for f in dataclasses.fields(message)] for message in _quorum_messages(classes)
        },
        triggered={
            _name(message): [[triggered(receiver, sender, message) for sender in classes] for receiver in classes]
            for message in lowered.classes
            if issubclass(message, Message)
        },
        foresee=foresee,
        functions=lowered.functions,
    )


def _name(message: type[Message]) -> str:
    """As in canonical bytes."""
    return f"{message.__module__}.{message.__qualname__}"


def _handler(system: System, handler: Handler) -> NativeHandler:
    quorum, guarded = handler.size, handler.where is not None
    least = system.quorum_size(quorum) if isinstance(quorum, Quorum) else quorum
    return NativeHandler(
        (handler.kind, least if isinstance(least, int) else None),
        handler.most(0) or None,
        handler.distinct,
        handler.accept is not None,
        guarded,
        guarded and only_attributes(handler.where),
        handler.same,
    )


def _quorum_messages(classes: Sequence[type[Process]]) -> Iterator[type[Message]]:
    """The classes of messages whose fields must agree in a quorum."""
    waiting = [message for cls in classes for h in cls.__plait_handlers__ if h.same for message in h.messages]
    for message in waiting:
        yield message
        yield from subclasses(message)
