"""What columns of SQLite store: a database in memory answers, because only the affinity of the column matters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from plait.gyro.belt.databases.values import Domain, Stored, changed, unexpected
from plait.gyro.sql.kind import affinity
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

_KINDS = {"INTEGER": "number", "REAL": "number", "NUMERIC": "number", "TEXT": "text", "BLOB": "bytes"}
_TYPES: dict[str, tuple[type, ...]] = {"number": (int, float, bool), "text": (str,), "bytes": (bytes,)}
_LARGEST = 1 << 63
_EXACT = 1 << 53
"""Whole numbers up to this one are exact in a REAL column."""


class SqliteValues:
    """The columns of a database, and what they store."""

    def __init__(self, columns: dict[str, tuple[str, str]]) -> None:
        """`columns` has the declared type and the collation of each column."""
        self._columns = columns
        self._lock = threading.Lock()
        self._db = apsw.Connection(":memory:")
        self._db.execute("CREATE TABLE stored (" + ", ".join(f"{name} {name}" for name in _KINDS) + ")")

    def domains(self) -> dict[str, Domain]:
        """The domain of each column. Collations that ignore case or spaces regard different values as equal."""
        return {
            name: Domain(_KINDS[affinity(declared)], declared)
            if collation.upper() == "BINARY"
            else Domain("other", f"{declared} COLLATE {collation}".strip())
            for name, (declared, collation) in self._columns.items()
        }

    def certain(self, domain: Domain) -> Callable[[Any], bool]:
        """Whole numbers, and strings in columns for strings."""
        if domain.kind == "text":
            return lambda value: type(value) is str
        least = -_EXACT if affinity(domain.type) == "REAL" else -_LARGEST
        if domain.kind == "number":
            return lambda value: type(value) is int and least <= value < -least
        return lambda value: type(value) is bytes

    def stored(self, domain: Domain, value: Any) -> Stored:
        """Store the value in a column of the same affinity, and read it. SQLite compares numbers exactly, as Python does."""
        if type(value) not in _TYPES[domain.kind]:
            raise unexpected(domain)
        name = affinity(domain.type)
        with self._lock:
            try:
                self._db.execute(f"INSERT INTO stored ({name}) VALUES (?)", (value,))
                ((form,),) = self._db.execute(f"SELECT {name} FROM stored")
            except (apsw.Error, OverflowError, ValueError):
                raise unexpected(domain) from None  # beyond 64 bits, or no valid Unicode
            finally:
                self._db.execute("DELETE FROM stored")
        if type(form) not in _TYPES[domain.kind] or form != value:
            raise changed(domain, form)
        return Stored(value, form)
