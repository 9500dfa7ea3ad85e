"""Operations that a DBMS executes together: several read-only ones on one snapshot, several local ones with one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, cast

from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.records import Call, OperationError, Outcome, Result

Executes = Callable[[Iterable[Call]], Sequence[Result]]
"""Takes the next call when it has executed the one before. Returns the results of the calls that it has taken."""


class Batching(Database, Protocol):
    """A DBMS that can execute operations together."""

    lanes: int
    """How many batches of each kind should run at the same time."""

    def reads(self, calls: Iterable[Call]) -> Sequence[Result]:
        """Execute read-only operations on one snapshot, which is taken before the first one."""

    def writes(self, calls: Iterable[Call]) -> Sequence[Result]:
        """Execute local operations in one transaction, each once per request. An operation that raises has no effect."""


def lanes(database: Database, most: int) -> int:
    """How many batches of each kind should run at the same time."""
    return min(most, getattr(database, "lanes", most))


def reads(database: Database) -> Executes:
    """How a DBMS executes read-only operations."""
    return cast(Batching, database).reads if hasattr(database, "reads") else lambda c: _one_by_one(database.read, c)


def writes(database: Database) -> Executes:
    """How a DBMS executes local operations."""
    return cast(Batching, database).writes if hasattr(database, "writes") else lambda c: _one_by_one(database.write, c)


def _one_by_one(execute: Callable[[Call], Outcome], calls: Iterable[Call]) -> list[Result]:
    found: list[Result] = []
    for call in calls:
        try:
            found.append(execute(call))
        except OperationError as error:
            found.append(error)
    return found
