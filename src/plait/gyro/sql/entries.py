"""Read and write sets (Saissi 2019, section 2.3.1): entries of accessed attributes and the condition on their row.

The dissertation has one entry for a statement, Plait one for each table that a statement names: the condition of an entry
is about one row of its table, and the rows of other tables in it are any rows. What is there for each kind of statement:

- A query reads, of each table, every column that it mentions anywhere (output, WHERE, ON, GROUP BY, ORDER BY, …) and whether
  the row is there. A row matters only if WHERE and the inner joins are true of it, before or after somebody's write.
- INSERT writes all attributes of a row that is as given; DELETE all attributes of rows that WHERE is true of.
- UPDATE writes the assigned attributes of rows as they were (WHERE), and as they become: a row that it makes fit a query's
  condition did not fit before. It reads what WHERE and the right-hand sides mention.
- Keys, foreign keys and CHECKs make a statement fail or not: what they look at is read; what they cascade to is written.
"""

from __future__ import annotations

import dataclasses

from plait.gyro.sql.terms import Condition, Term


class NotUnderstoodError(Exception):
    """SQL that the analysis refuses to reason about. It may then read and write everything."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """Attributes of rows of a table, and which rows."""

    table: str
    attributes: frozenset[str]
    condition: Condition
    instance: str
    """Columns of this instance, in the condition, are those of the row."""
    role: str
    """Why: `query`, `insert`, `update`, `delete`, `key`, `foreign key`, …"""
    output: frozenset[str] = frozenset()
    """Attributes that are read only to be returned."""
    statement: int = 0
    """Which statement of its transaction."""


@dataclasses.dataclass
class Footprint:
    """What one statement reads, writes and returns."""

    reads: list[Entry] = dataclasses.field(default_factory=list)
    writes: list[Entry] = dataclasses.field(default_factory=list)
    outputs: list[tuple[str, Term]] = dataclasses.field(default_factory=list)
    generated: Term | None = None
    """The id that an INSERT made."""

    def number(self, statement: int) -> None:
        """Say which statement it was."""
        self.reads = [dataclasses.replace(e, statement=statement) for e in self.reads]
        self.writes = [dataclasses.replace(e, statement=statement) for e in self.writes]
