"""Optimistic concurrency on a table: read a row with its version, and write it only if the version is still the same.

Clerks move money from one account to another. A clerk reads both rows, computes, and commits in one step. If a version
has changed meanwhile, the clerk begins again.

    plait check examples/shared/optimistic.py                    no money is lost
    plait check examples/shared/optimistic.py -p versions=false  the last one to write wins: money is lost, or made
"""

from dataclasses import dataclass

from plait import Process, Shared, System, action, always, field, final


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    balance: int
    version: int = 0


class Table(Shared):
    """The accounts by name."""

    rows: dict[str, Row] = field(default_factory=dict)


class Clerk(Process):
    """Moves one unit from an account to another."""

    table: Table
    source: str
    target: str
    versions: bool = True
    found: tuple[Row, Row] | None = None
    done: bool = False

    @action(when=lambda self: self.found is None and not self.done)
    def read(self) -> None:
        rows = self.table.rows
        self.found = (rows[self.source], rows[self.target])

    @action(when=lambda self: self.found is not None)
    def commit(self) -> None:
        assert self.found is not None
        source, target = self.found
        self.found = None
        rows = self.table.rows
        changed = (rows[self.source], rows[self.target]) != (source, target)
        if self.versions and changed:
            return
        rows[self.source] = Row(source.balance - 1, source.version + 1)
        rows[self.target] = Row(target.balance + 1, target.version + 1)
        self.done = True


@always
def no_money_is_lost(s):  # type: ignore[no-untyped-def]
    """The sum of all balances stays the same."""
    return sum(row.balance for row in s[Table].rows.values()) == 10


@final
def all_moves_are_done(s):  # type: ignore[no-untyped-def]
    """At the end, each clerk has moved one unit."""
    return all(clerk.done for clerk in s[Clerk])


def optimistic(versions: bool = True) -> System:
    """Three clerks and three accounts."""
    table = Table(rows={"a": Row(6), "b": Row(4), "c": Row(0)})
    moves = [("a", "b"), ("b", "c"), ("a", "c")]
    return System(
        [Clerk(table=table, source=source, target=target, versions=versions) for source, target in moves],
        properties=[no_money_is_lost, all_moves_are_done],
    )
