"""What a property sees of the sequential program: the protocol's processes, without the ghosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from plait.kernel.errors import ModelError
from plait.model.properties import Property
from plait.model.view import ProcessView, Status


class RoundsProcess:
    """A process; crashed if it is silent for good."""

    __slots__ = ("_process",)

    def __init__(self, process: ProcessView) -> None:
        self._process = process

    @property
    def status(self) -> Status:
        status = self._process.status
        return "crashed" if status == "up" and self._process.ghost.silent else status

    @property
    def crashed(self) -> bool:
        return self.status == "crashed"

    def __getattr__(self, name: str) -> Any:
        if name == "inbox":
            raise ModelError("a property of a sequential program cannot look at an inbox", hint="look at fields")
        return getattr(self._process, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoundsProcess) and other._process == self._process

    def __hash__(self) -> int:
        return hash(self._process)

    def __repr__(self) -> str:
        return repr(self._process)


class RoundsView:
    """A view that hides what the sequential program adds."""

    def __init__(self, view: Any) -> None:
        self._view = view

    def __getitem__(self, key: Any) -> Any:
        found = self._view[key]
        return RoundsProcess(found) if isinstance(found, ProcessView) else tuple(map(RoundsProcess, found))

    def __iter__(self) -> Iterator[RoundsProcess]:
        return map(RoundsProcess, self._view)

    @property
    def processes(self) -> tuple[RoundsProcess, ...]:
        return tuple(self)

    @property
    def messages(self) -> tuple[Any, ...]:
        raise ModelError("a property of a sequential program cannot look at messages", hint="look at fields")


def viewed(prop: Property) -> Property:
    """The property, of the sequential program."""
    return dataclasses.replace(prop, predicate=lambda view: prop.predicate(RoundsView(view)))
