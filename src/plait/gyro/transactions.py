"""A transaction of the application: its parameters, its statements, and their read and write sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from plait.gyro.sql.entries import Entry, NotUnderstoodError
from plait.gyro.sql.schema import Schema
from plait.gyro.sql.statements import Ids, footprints
from plait.gyro.sql.terms import TRUE, Column, Compare, Generated, Kind, Parameter, Same, Term, atoms, terms

Key = Parameter | Generated


@dataclasses.dataclass(frozen=True)
class Statement:
    """SQL text, a term for each placeholder, and the place in the source."""

    sql: str
    bindings: dict[str, Term]
    place: str


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A reason why the SQL of a transaction is not known: it may read and write everything."""

    place: str
    reason: str
    remedy: str


@dataclasses.dataclass
class Transaction:
    """A procedure with parameters. An operation is a call of it."""

    name: str
    parameters: tuple[str, ...]
    place: str
    weight: float = 1.0
    statements: list[Statement] = dataclasses.field(default_factory=list)
    refusals: list[Refusal] = dataclasses.field(default_factory=list)
    reads: list[Entry] = dataclasses.field(default_factory=list)
    writes: list[Entry] = dataclasses.field(default_factory=list)
    known: dict[str, Term] = dataclasses.field(default_factory=dict)
    """The values that its statements returned so far, by name."""

    @property
    def read_only(self) -> bool:
        return not self.writes

    def add(
        self, sql: str, bindings: dict[str, Term], schema: Schema, *, place: str, ids: Ids = "server"
    ) -> list[tuple[str, Term]]:
        """Add a statement; return its output columns, and a generated id as `lastrowid`."""
        site = len(self.statements)
        self.statements.append(Statement(sql, bindings, place))
        outputs: list[tuple[str, Term]] = []
        try:
            for found in footprints(sql, bindings, schema, where=place, site=site, ids=ids):
                found.number(site)
                self.reads += found.reads
                self.writes += found.writes
                outputs = found.outputs + ([("lastrowid", found.generated)] if found.generated is not None else [])
        except NotUnderstoodError as error:
            self.refuse(place, str(error), "use SQL that Plait understands (docs/guides/gyro.md)")
        return outputs

    def refuse(self, place: str, reason: str, remedy: str) -> None:
        """Mark the SQL of the transaction as not known: it is global, and all transactions that write are global."""
        if all(r.place != place or r.reason != reason for r in self.refusals):
            self.refusals.append(Refusal(place, reason, remedy))

    def finish(self, schema: Schema) -> None:
        """Remove duplicate entries. A refused transaction reads and writes everything."""
        if self.refusals:
            site = len(self.statements)
            everything = [
                Entry(t.name, t.all, TRUE, t.name, "unknown", frozenset(), site) for t in schema.tables.values()
            ]
            self.reads += everything
            self.writes += everything
        self.reads = list(dict.fromkeys(self.reads))
        self.writes = list(dict.fromkeys(self.writes))

    @property
    def kinds(self) -> dict[Key, Kind | None]:
        """For each parameter and generated id, the kind of columns it is compared with; None if there are two kinds."""
        found: dict[Key, Kind | None] = {}
        for entry in (*self.reads, *self.writes):
            for atom in atoms(entry.condition):
                if isinstance(atom, Compare | Same):
                    for term, other in ((atom.left, atom.right), (atom.right, atom.left)):
                        if isinstance(term, Parameter | Generated) and isinstance(other, Column):
                            found[term] = other.kind if found.get(term, other.kind) == other.kind else None
        return found

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """For each parameter, the columns that it is compared with, and their types."""
        found: dict[str, dict[str, str]] = {}
        for entry in (*self.reads, *self.writes):
            for atom in atoms(entry.condition):
                if isinstance(atom, Compare | Same):
                    for term, other in ((atom.left, atom.right), (atom.right, atom.left)):
                        if isinstance(term, Parameter) and isinstance(other, Column):
                            found.setdefault(term.name, {})[other.source] = other.type
        return found

    @property
    def generated(self) -> tuple[Generated, ...]:
        """The ids that its server generates. They are mapped to this server."""
        return tuple(k for k in self.kinds if isinstance(k, Generated))


def settle(transactions: Sequence[Transaction], schema: Schema) -> None:
    """Remove the reads with which INSERT looks for a row that already has the generated id: no such row exists.

    The reads stay if some transaction sets such an id explicitly, or if the SQL of some transaction is not known.
    """
    if any(t.refusals for t in transactions):
        return
    own = {(t.name, t.generated) for t in schema.tables.values() if t.generated is not None}
    for entry in (e for t in transactions for e in t.writes):
        key = (entry.table, schema.tables[entry.table].generated)
        made = any(isinstance(t, Generated) and f"{key[0]}.{key[1]}" == t.source for t in terms(entry.condition))
        if (entry.role == "insert" and not made) or (
            entry.role.startswith(("update", "cascade")) and key[1] in entry.attributes
        ):
            own.discard(key)
    for transaction in transactions:
        transaction.reads = [
            e
            for e in transaction.reads
            if not (
                e.role == "key"
                and any(isinstance(t, Generated) and tuple(t.source.split(".")) in own for t in terms(e.condition))
            )
        ]
