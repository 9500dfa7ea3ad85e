"""What the protocol asks of a server's DBMS. Everything it keeps there for itself is in tables that begin with `gyro_`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.records import Call, Entry, Outcome

OURS = "gyro_"
"""How the names of our own tables begin: they are not part of the application's state."""


class AgainError(Exception):
    """The DBMS refused a transaction for the sake of serializability: it has to run again."""


class Visit(Protocol):
    """The transaction in which a server executes global operations while it has the token."""

    seq: int
    """The last update that was applied."""
    position: int
    """How many writers were committed before."""

    @property
    def alive(self) -> bool:
        """Whether the transaction is still open: some errors of an operation end it."""

    def repeated(self, call: Call) -> Outcome | None:
        """The reply of a request that was executed before; OperationError if that was another one."""

    def execute(self, call: Call) -> tuple[bytes, bytes]:
        """The reply and the state update; OperationError leaves no trace."""

    def commit(self, entries: Sequence[Entry], log: Log) -> None:
        """Append to the log, then commit."""


class Database(Protocol):
    """One server's DBMS."""

    def applied(self) -> int:
        """The last update that the state reflects."""

    def schema(self) -> str:
        """The tables as this DBMS has them, to be compared between servers."""

    def read(self, call: Call) -> Outcome:
        """Execute an operation that only reads."""

    def write(self, call: Call) -> Outcome:
        """Execute a local operation, once for each request."""

    def visit(self) -> AbstractContextManager[Visit]:
        """Begin the transaction of a token visit; left without a commit, it is rolled back."""

    def apply(self, entries: Sequence[Entry], server: int) -> None:
        """Apply updates in order, and remember the replies of this server's own."""

    def settle(self, log: Log) -> None:
        """After a crash: finish what the log has, undo what it has not."""

    def close(self) -> None:
        """Let go of it."""
