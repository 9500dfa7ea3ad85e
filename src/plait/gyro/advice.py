"""Advice for a transaction that is not local: a change of the application that removes one clause that blocks it.

There are two ways to remove a clause: route both operations by equal keys, or stop accessing the same attributes. The
advice is derived from the two entries of the clause. A transaction becomes local when no clause blocks it any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.gyro.conflicts import Clause
from plait.gyro.partitioning import Choice
from plait.gyro.sql.entries import Entry
from plait.gyro.sql.schema import ROW
from plait.gyro.sql.terms import And, Column, Compare, Generated, Parameter, Same, Term, Unknown
from plait.gyro.transactions import Transaction


def advise(clause: Clause, transactions: Sequence[Transaction], choices: Sequence[Choice]) -> str:
    """A change that removes this clause."""
    writer, other = transactions[clause.writer], transactions[clause.other]
    for side in (writer, other):
        if side.refusals:
            return f"{side.name} ({side.refusals[0].place}): {side.refusals[0].remedy}"
    shared = clause.attributes
    table = clause.write.table
    if not clause.written and shared <= clause.access.output:
        return f"do not select {_attributes(table, shared)} in {other.name}"
    mine = _first(bound(clause.write), choices[clause.writer])
    theirs = _first(bound(clause.access), choices[clause.other])
    for column in [*mine, *(c for c in theirs if c not in mine)]:
        left, right = mine.get(column), theirs.get(column)
        if _key(left) and _key(right):
            return (
                f"route {writer.name} by {_name(left)} and {other.name} by {_name(right)}; the current keys "
                f"({_choice(choices[clause.writer])}; {_choice(choices[clause.other])}) have a lower total cost"
            )
    for column in [*mine, *(c for c in theirs if c not in mine)]:
        left, right = mine.get(column), theirs.get(column)
        for known, unknown, transaction in ((right, left, writer), (left, right, other)):
            if _key(known) and isinstance(unknown, Unknown):
                return (
                    f"let the server generate {table}.{column} in {transaction.name}, or make it a parameter; "
                    f"now its value is not known ({unknown.reason})"
                )
    for column in mine:
        if _key(mine[column]) and column not in theirs:
            return f"select {table} by {column} in {other.name}; {writer.name} uses {_name(mine[column])} for it"
    for column in theirs:
        if _key(theirs[column]) and column not in mine:
            return f"select {table} by {column} in {writer.name}; {other.name} uses {_name(theirs[column])} for it"
    who = f"two operations of {writer.name}" if writer is other else f"{writer.name} and {other.name}"
    return f"select the rows of {table} by a common key; {who} may access the same rows"


def _first(columns: dict[str, Term], choice: Choice) -> dict[str, Term]:
    """The columns in order of preference: generated ids, the first key, then the others."""
    rank = {
        name: 0 if isinstance(t, Generated) else 1 if t == Parameter(*choice[:1] or [""]) else 2
        for name, t in columns.items()
    }
    return {name: columns[name] for name in sorted(columns, key=rank.__getitem__)}


def bound(entry: Entry) -> dict[str, Term]:
    """Columns of the row that the condition sets equal to a value."""
    condition = entry.condition
    found: dict[str, Term] = {}
    for part in condition.parts if isinstance(condition, And) else (condition,):
        if isinstance(part, Same) or (isinstance(part, Compare) and part.operator == "="):
            for column, value in ((part.left, part.right), (part.right, part.left)):
                if isinstance(column, Column) and column.instance == entry.instance and not isinstance(value, Column):
                    found.setdefault(column.name, value)
    return found


def _key(term: Term | None) -> bool:
    return isinstance(term, Parameter | Generated)


def _name(term: Term | None) -> str:
    return term.name if isinstance(term, Parameter) else str(term)


def _choice(choice: Choice) -> str:
    return " and ".join(choice) or "nothing"


def _attributes(table: str, attributes: frozenset[str]) -> str:
    names = sorted(attributes - {ROW})
    return f"{table}.{', '.join(names)}" if names else f"rows of {table}"
