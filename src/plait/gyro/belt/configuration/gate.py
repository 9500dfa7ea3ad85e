"""The gate that operations pass: a change closes it for local operations that write, and then for all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from plait.gyro.belt.records import DatabaseGoneError

Kind = Literal["read", "write"]


class ClosedError(DatabaseGoneError):
    """The operation must wait: the configuration of the cluster changes."""

    def __init__(self) -> None:
        super().__init__("the configuration of the cluster changes")


class Gate:
    """Counts the operations inside. `close` returns when all are out that may not stay."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[Kind, int] = {"read": 0, "write": 0}
        self._closed: frozenset[Kind] = frozenset()
        self._shut = False

    def closed(self, kind: Kind) -> bool:
        """Whether operations of a kind must wait."""
        return kind in self._closed

    @contextmanager
    def passing(self, kind: Kind) -> Iterator[None]:
        """Around an operation."""
        with self._changed:
            if kind in self._closed:
                raise ClosedError
            self._inside[kind] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[kind] -= 1
                self._changed.notify_all()

    def close(self, *kinds: Kind) -> None:
        """Close the gate for these kinds, and wait until no operation of them is inside."""
        with self._changed:
            self._closed |= set(kinds)
            self._changed.wait_for(lambda: not any(self._inside[kind] for kind in kinds))

    def open(self) -> None:
        """Open the gate, unless it is shut."""
        with self._changed:
            self._closed = frozenset(self._inside) if self._shut else frozenset()

    def shut(self) -> None:
        """Close the gate for ever: another configuration has begun, and this process knows only the old routes."""
        self._shut = True
        self.close("read", "write")
