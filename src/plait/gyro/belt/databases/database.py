"""The interface between the protocol and a DBMS. The protocol stores its own data in tables named `gyro_…`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from plait.gyro.belt.databases.values import Values
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.records import Call, Entry, Outcome

OURS = "gyro_"
"""The prefix of the protocol's own tables. They are not part of the state of the application."""


class AgainError(Exception):
    """The DBMS refused a transaction to preserve serializability. It must run again."""


class Visit(Protocol):
    """The transaction in which a server executes global operations while it holds the token."""

    seq: int
    """The seq of the last applied update."""
    chain: str
    """The hash of all applied updates."""
    position: int
    """The number of committed writers before this visit."""

    @property
    def alive(self) -> bool:
        """Whether the transaction is still open. Some errors of an operation end it."""

    def repeated(self, call: Call) -> Outcome | None:
        """The reply of an earlier execution of this request; OperationError if its name belongs to another request."""

    def execute(self, call: Call) -> tuple[bytes, bytes]:
        """The reply and the state update. After an OperationError, nothing has changed."""

    def commit(self, entries: Sequence[Entry], log: Log) -> None:
        """Append to the log, then commit."""


class Group(Protocol):
    """Global operations that run at the same time, each in its own transaction. All snapshots are already taken."""

    seq: int
    """The seq of the last applied update."""
    entries: list[Entry]
    """The updates of the operations that did not conflict, in the order of the log."""
    seconds: float
    """The mean time that an operation took."""

    def run(self, calls: Sequence[Call], make: Callable[[int, Call, bytes, bytes], Entry], largest: int) -> None:
        """Execute the operations. `make` makes an entry from its seq, the call, the reply and the update."""

    def commit(self, log: Log) -> None:
        """Append the entries to the log, then commit in this order."""


class Database(Protocol):
    """The DBMS of one server."""

    def applied(self) -> int:
        """The seq of the last update that the state contains."""

    def written(self) -> int:
        """How many local operations were committed here, or a number between that and the next ones; 0: it is not known."""

    def identity(self) -> str | None:
        """The identity of this state, as `identify` stored it. None: the DBMS is new."""

    def identify(self, identity: str | None) -> None:
        """Store the identity durably."""

    def chain(self) -> str:
        """The hash of the updates that the state contains."""

    def schema(self) -> str:
        """The tables of this DBMS as text, for comparison between servers."""

    def values(self) -> Values:
        """The columns of this DBMS, and what they store."""

    def read(self, call: Call) -> Outcome:
        """Execute a read-only operation."""

    def write(self, call: Call) -> Outcome:
        """Execute a local operation, once per request."""

    def visit(self) -> AbstractContextManager[Visit]:
        """Begin the transaction of a visit. Without a commit, it is rolled back."""

    def together(self, calls: Sequence[Call]) -> AbstractContextManager[Group] | None:
        """Begin a group of these operations, if the DBMS can execute so many writers at the same time."""

    def apply(self, entries: Sequence[Entry], server: int) -> None:
        """Apply updates in order, and store the replies of updates of this server."""

    def settle(self, log: Log) -> None:
        """After a crash: commit transactions that are in the log, roll back the others."""

    def close(self) -> None:
        """Close the connections."""
