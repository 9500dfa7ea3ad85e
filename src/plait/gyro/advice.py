"""Why a transaction is not local, and what change would make it so.

A clause that is not at home is taken away by whatever would make both operations have an equal key, or by not touching
the same attributes. The advice is read off the two entries; it takes away one clause, and a transaction becomes local
when all that block it are gone.
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
    """What would take a clause away."""
    writer, other = transactions[clause.writer], transactions[clause.other]
    for side in (writer, other):
        if side.refusals:
            return f"{side.name} ({side.refusals[0].place}): {side.refusals[0].remedy}"
    shared = clause.attributes
    table = clause.write.table
    if not clause.written and shared <= clause.access.output:
        return f"leave {_attributes(table, shared)} out of what {other.name} selects"
    mine = _first(bound(clause.write), choices[clause.writer])
    theirs = _first(bound(clause.access), choices[clause.other])
    for column in [*mine, *(c for c in theirs if c not in mine)]:
        left, right = mine.get(column), theirs.get(column)
        if _key(left) and _key(right):
            return (
                f"route {writer.name} by {_said(left)} and {other.name} by {_said(right)}; but as it is "
                f"({_choice(choices[clause.writer])}; {_choice(choices[clause.other])}) costs less in all"
            )
    for column in [*mine, *(c for c in theirs if c not in mine)]:
        left, right = mine.get(column), theirs.get(column)
        for known, unknown, transaction in ((right, left, writer), (left, right, other)):
            if _key(known) and isinstance(unknown, Unknown):
                return (
                    f"{transaction.name} has {table}.{column} from something else than a parameter ({unknown.reason}): "
                    f"let its server generate the id, or make it a parameter"
                )
    for column in mine:
        if _key(mine[column]) and column not in theirs:
            return f"let {other.name} select {table} by {column}, which {writer.name} has as {_said(mine[column])}"
    for column in theirs:
        if _key(theirs[column]) and column not in mine:
            return f"let {writer.name} select {table} by {column}, which {other.name} has as {_said(theirs[column])}"
    who = "its operations use" if writer is other else f"{writer.name} and {other.name} use"
    return f"nothing tells the rows of {table} apart that {who}: select them by a common key"


def _first(columns: dict[str, Term], choice: Choice) -> dict[str, Term]:
    """Ids that are generated first, then the home key."""
    rank = {
        name: 0 if isinstance(t, Generated) else 1 if t == Parameter(*choice[:1] or [""]) else 2
        for name, t in columns.items()
    }
    return {name: columns[name] for name in sorted(columns, key=rank.__getitem__)}


def bound(entry: Entry) -> dict[str, Term]:
    """Columns of the row that must be equal to something."""
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


def _said(term: Term | None) -> str:
    return term.name if isinstance(term, Parameter) else str(term)


def _choice(choice: Choice) -> str:
    return " and ".join(choice) or "nothing"


def _attributes(table: str, attributes: frozenset[str]) -> str:
    names = sorted(attributes - {ROW})
    return f"{table}.{', '.join(names)}" if names else f"rows of {table}"
