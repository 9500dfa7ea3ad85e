"""Conflicts between transactions: the first phase of Algorithm 1 (Saissi 2019, section 2.3.1).

A clause is a pair of entries of two transactions that share an attribute. At least one of the entries is a write, and
both conditions can be true of one row. All such pairs are collected; the published pseudocode has one of each kind.
Each clause has the pairs of keys that it forces to be equal. The second phase uses them to decide whether a
partitioning makes the clause local.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from plait.gyro.solver import Solver
from plait.gyro.sql.entries import Entry
from plait.gyro.sql.terms import terms
from plait.gyro.transactions import Key, Transaction

Equal = frozenset[tuple[Key, Key]]
"""Pairs of a key of the writer and a key of the other transaction. They are equal whenever a clause is true."""


@dataclasses.dataclass
class Clause:
    """A write of one operation and a read or a write of another operation that can access the same row."""

    writer: int
    other: int
    """Transactions, by number. The operation of the writer comes first."""
    write: Entry
    access: Entry
    written: bool
    """Whether the access is a write too. Then there is another clause for the opposite direction."""
    equal: Equal

    @property
    def attributes(self) -> frozenset[str]:
        return self.write.attributes & self.access.attributes


def conflicts(
    transactions: Sequence[Transaction], solver: Solver, *, tell: Callable[[str], None] = lambda _: None
) -> list[Clause]:
    """All clauses. Two operations of one transaction can conflict, so a transaction is also compared with itself."""
    found: list[Clause] = []
    keys = [_keys(t) for t in transactions]
    for (i, one), (j, other) in itertools.product(enumerate(transactions), repeat=2):
        if one.writes:
            tell(f"{one.name} and {other.name}")
        for write, (access, written) in itertools.product(
            one.writes, [(e, False) for e in other.reads] + [(e, True) for e in other.writes]
        ):
            if write.table != access.table or not write.attributes & access.attributes:
                continue
            if not solver.conflict(write, access):
                continue
            equal = frozenset(
                (left, right)
                for left, right in itertools.product(_mentioned(write, keys[i]), _mentioned(access, keys[j]))
                if solver.implies_equal(write, left, access, right)
            )
            found.append(Clause(i, j, write, access, written, equal))
    return found


def _keys(transaction: Transaction) -> set[Key]:
    """Possible keys: parameters that are compared with columns of one kind only."""
    return {key for key, kind in transaction.kinds.items() if kind not in (None, "other")}


def _mentioned(entry: Entry, keys: set[Key]) -> list[Key]:
    return [t for t in dict.fromkeys(terms(entry.condition)) if t in keys]
