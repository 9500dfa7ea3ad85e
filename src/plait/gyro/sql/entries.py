"""Read and write sets (Saissi 2019, section 2.3.1): entries of accessed attributes and the condition on their row.

Saissi 2019 has one entry per statement. Plait has one entry per table of a statement. The condition of an entry is
about one row of its table. Rows of other tables in this condition can be any rows. The entries of each kind of
statement:

- A query reads, in each table, every column that it mentions (output, WHERE, ON, GROUP BY, ORDER BY, …), and whether
  the row exists. A row matters only if WHERE and the inner joins are true of it, before or after a write.
- INSERT writes all attributes of the new row. DELETE writes all attributes of the rows that WHERE selects.
- UPDATE writes the assigned attributes, in the rows before the update (WHERE) and in the rows after it. The second
  part is needed because the update may make a row match the condition of a query. UPDATE reads the columns in WHERE
  and in the right-hand sides.
- Keys, foreign keys and CHECKs decide whether a statement fails. They read the columns that they check, and write the
  rows that they cascade to.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re

from plait.gyro.sql.terms import Condition, Generated, Term, Unknown, substitute, terms


class NotUnderstoodError(Exception):
    """The analysis does not understand this SQL. The statement may then read and write everything."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """Attributes of a table, and the condition on their row."""

    table: str
    attributes: frozenset[str]
    condition: Condition
    instance: str
    """Columns of this instance in the condition are columns of the row."""
    role: str
    """The reason for the access: `query`, `insert`, `update`, `delete`, `key`, `foreign key`, …"""
    output: frozenset[str] = frozenset()
    """Attributes that are read only because the statement returns them."""
    statement: int = 0
    """The number of the statement in its transaction."""

    @property
    def digest(self) -> str:
        """A hash of table, attributes and condition. It does not depend on where the statement is in the source."""
        renamed: dict[Term, Term] = {}
        for number, term in enumerate(dict.fromkeys(terms(self.condition))):
            if isinstance(term, Unknown | Generated):
                renamed[term] = Unknown("", number) if isinstance(term, Unknown) else Generated(term.source, number)
        opaque: dict[str, int] = {}
        exact = re.sub(
            r"(?<=, )number=(\d+)",
            lambda m: f"number={opaque.setdefault(m[1], len(opaque))}",
            repr(substitute(self.condition, renamed)),
        )
        content = repr((self.table, sorted(self.attributes), self.instance, exact))
        return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


@dataclasses.dataclass
class Footprint:
    """What one statement reads, writes and returns."""

    reads: list[Entry] = dataclasses.field(default_factory=list)
    writes: list[Entry] = dataclasses.field(default_factory=list)
    outputs: list[tuple[str, Term]] = dataclasses.field(default_factory=list)
    generated: Term | None = None
    """The id that an INSERT generates."""

    def number(self, statement: int) -> None:
        """Set the number of the statement in all entries."""
        self.reads = [dataclasses.replace(e, statement=statement) for e in self.reads]
        self.writes = [dataclasses.replace(e, statement=statement) for e in self.writes]
