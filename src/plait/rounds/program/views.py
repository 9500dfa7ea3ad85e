"""Views of the sequential program for properties: the processes of the protocol, without ghosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plait.kernel.errors import ModelError
from plait.model.process import Status
from plait.model.view import ProcessView, class_attribute, view_class


class RoundsProcess:
    """A process of the protocol."""

    __slots__ = ("_mortal", "_process")

    def __init__(self, process: ProcessView, mortal: bool) -> None:
        self._process, self._mortal = process, mortal

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._process.__class__

    @property
    def status(self) -> Status:
        status = self._process.status
        return "crashed" if self._mortal and status == "up" and self._process.rounds_silent else status

    @property
    def crashed(self) -> bool:
        return self.status == "crashed"

    def __getattr__(self, name: str) -> Any:
        if name == "inbox":
            raise ModelError("a property of a sequential program cannot read an inbox", hint="read fields instead")
        cls: Any = self._process.__class__
        if name in cls.__plait_fields__ or name in ("id", "_running"):
            return getattr(self._process, name)
        return class_attribute(self, cls, name)  # its methods see this process, too

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_process", "_mortal", "_names"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._process, name, value)  # refused there

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoundsProcess) and other._process == self._process

    def __hash__(self) -> int:
        return hash(self._process)

    def __repr__(self) -> str:
        return repr(self._process)


class RoundsView:
    """A view that hides what the sequential program adds."""

    def __init__(self, view: Any, mortal: bool) -> None:
        self._view, self._mortal = view, mortal

    def __getitem__(self, key: Any) -> Any:
        found = self._view[key]
        if isinstance(found, ProcessView):
            return self._seen(found)
        return tuple(self._seen(p) for p in found)

    def _seen(self, process: ProcessView) -> RoundsProcess:
        return view_class(process.__class__, RoundsProcess)(process, self._mortal)  # type: ignore[no-any-return]

    def get(self, role: Any) -> tuple[RoundsProcess, ...]:
        return tuple(self._seen(p) for p in self._view.get(role))

    def __iter__(self) -> Iterator[RoundsProcess]:
        return (self._seen(p) for p in self._view)

    @property
    def processes(self) -> tuple[RoundsProcess, ...]:
        return tuple(self)

    @property
    def messages(self) -> tuple[Any, ...]:
        raise ModelError("a property of a sequential program cannot read messages", hint="read fields instead")
