"""What "local" means, checked by executing operations on SQLite; no code is shared with the analysis.

The Conveyor Belt protocol runs a local operation at its server, at any time, without a message to other servers. This is
right if it has no effect on operations at other servers: they give the same reply and the same update whether or not the
local operation came first, and their updates can be applied after it. Two local operations at different servers must
commute. `violation` tries all pairs of operations with small parameters on some small databases.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import sqlite3
from typing import Any

from plait.kernel.classification import Classification, Operation

SERVERS = 2
Cells = dict[tuple[str, Any], dict[str, Any]]
"""Rows by table and primary key."""


@dataclasses.dataclass(frozen=True)
class Transaction:
    """Statements with named placeholders; `new` is an id that the server generates."""

    name: str
    parameters: tuple[str, ...]
    analysed: tuple[str, ...]
    executed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Application:
    ddl: str
    transactions: tuple[Transaction, ...]
    ids: str = "server"

    @property
    def sql(self) -> str:
        """The application as a file that the analysis reads."""
        parts = [self.ddl]
        for t in self.transactions:
            parts += [f"-- transaction: {t.name}({', '.join(t.parameters)})", *(f"{s};" for s in t.analysed)]
        return "\n".join(parts)


@dataclasses.dataclass(frozen=True)
class Call:
    """An operation: a transaction with values, at a server."""

    transaction: Transaction
    values: tuple[tuple[str, Any], ...]
    server: int
    local: bool
    fresh: int

    def __str__(self) -> str:
        said = ", ".join(f"{n}={v!r}" for n, v in self.values)
        return f"{self.transaction.name}({said}) at server {self.server}"


def home(value: Any) -> int:
    """The server of a key: numbers alternate; x and X are at different servers."""
    return int(value) % SERVERS if str(value).isdigit() else int(str(value).isupper())


def calls(transaction: Transaction, found: Operation, fresh: int, most: int, chance: random.Random) -> list[Call]:
    """All operations of a transaction with small values, each at the server that it is routed to (or at every one)."""
    domains: list[list[Any]] = []
    for name in transaction.parameters:
        kind = found.kinds.get(name)
        values: list[Any] = [0, 1, 100, 101] if kind == "number" else ["x", "X", "1"] if kind == "text" else [0, 1, "x"]
        domains.append(values if name in found.keys else [*values, None])
    every = list(itertools.product(*domains))
    chosen = every if len(every) <= most else chance.sample(every, most)
    operations = []
    for values in chosen:
        given = dict(zip(transaction.parameters, values, strict=True))
        servers = [home(given[found.keys[0]])] if found.keys else list(range(SERVERS))
        agree = len({home(given[k]) for k in found.keys}) <= 1
        local = found.classed == "local" or (found.classed == "local/global" and agree)
        operations += [Call(transaction, tuple(given.items()), s, local, fresh + s) for s in servers]
    return operations


def execute(database: sqlite3.Connection, call: Call) -> Any:
    """Run an operation as one transaction; its reply, which is an error if the database refuses it."""
    database.execute("SAVEPOINT operation")
    values: dict[str, Any] = {**dict(call.values), "new": call.fresh}
    reply: list[Any] = []
    try:
        for sql in call.transaction.executed:
            cursor = database.execute(sql, values)
            rows = cursor.fetchall()
            if cursor.description is not None:
                reply.append(sorted(map(repr, rows)))
                for i, column in enumerate(cursor.description):
                    values[column[0]] = min(rows, key=repr)[i] if rows else None
            else:
                reply.append(cursor.rowcount)
    except sqlite3.IntegrityError:
        database.execute("ROLLBACK TO operation")
        reply = ["refused"]
    database.execute("RELEASE operation")
    return reply


def state(database: sqlite3.Connection, tables: dict[str, tuple[list[str], list[str]]]) -> Cells:
    found: Cells = {}
    for table, (columns, key) in tables.items():
        for row in database.execute(f"SELECT {', '.join(columns)} FROM {table}"):
            cells = dict(zip(columns, row, strict=True))
            found[table, tuple(cells[k] for k in key)] = cells
    return found


def updates(before: Cells, after: Cells) -> list[tuple[Any, dict[str, Any] | None]]:
    """Row images: per row that changed, None if it went, else the cells that are new."""
    changes: list[tuple[Any, dict[str, Any] | None]] = []
    for key in {*before, *after}:
        if key not in after:
            changes.append((key, None))
        elif key not in before:
            changes.append((key, after[key]))
        elif before[key] != after[key]:
            changes.append((key, {n: v for n, v in after[key].items() if before[key][n] != v}))
    return changes


def apply(cells: Cells, changes: list[tuple[Any, dict[str, Any] | None]]) -> Cells:
    result = {key: dict(row) for key, row in cells.items()}
    for key, row in changes:
        if row is None:
            result.pop(key, None)
        else:
            result.setdefault(key, {}).update(row)
    return result


def violation(
    application: Application, found: Classification, seed: int, *, databases: int = 6, most: int = 8
) -> str | None:
    """Two operations that the classification lets run without coordination, and that notice each other; or None."""
    chance = random.Random(seed)
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.executescript(application.ddl)
        database.execute("PRAGMA foreign_keys = ON")
        tables = _tables(database)
        operations = [found.operation(t.name) for t in application.transactions]
        firsts = [
            c for t, o in zip(application.transactions, operations, strict=True) for c in calls(t, o, 100, most, chance)
        ]
        seconds = [
            c for t, o in zip(application.transactions, operations, strict=True) for c in calls(t, o, 200, most, chance)
        ]
        pairs = [(a, b) for a in firsts for b in seconds if a.local and a.server != b.server]
        for _ in range(databases if pairs else 0):
            _fill(database, tables, chance)
            for first, second in pairs:
                if (problem := _notices(database, tables, first, second)) is not None:
                    return f"{problem}: {first}, then {second}, on {state(database, tables)}"
    finally:
        database.close()
    return None


def _notices(database: sqlite3.Connection, tables: Any, first: Call, second: Call) -> str | None:
    before = state(database, tables)
    database.execute("SAVEPOINT pair")
    reply = execute(database, second)
    alone = state(database, tables)
    changes = updates(before, alone)
    late = execute(database, first)
    other = state(database, tables)
    database.execute("ROLLBACK TO pair")
    early = execute(database, first)
    middle = state(database, tables)
    after = execute(database, second)
    end = state(database, tables)
    database.execute("ROLLBACK TO pair")
    database.execute("RELEASE pair")
    if reply != after:
        return f"the second replies {after} and not {reply}"
    if apply(middle, changes) != end:
        return "the update of the second is another one"
    if second.local and (early != late or end != other):
        return "they do not commute"
    return None


def _tables(database: sqlite3.Connection) -> dict[str, tuple[list[str], list[str]]]:
    found = {}
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"):
        info = database.execute(f"PRAGMA table_info({name})").fetchall()
        found[name] = ([c[1] for c in info], [c[1] for c in sorted(info, key=lambda c: c[5]) if c[5]])
    return found


def _fill(database: sqlite3.Connection, tables: Any, chance: random.Random) -> None:
    """A small database that its constraints allow."""
    for table in reversed(tables):
        database.execute(f"DELETE FROM {table}")
    for table, (columns, _) in tables.items():
        for number in (0, 1, 2):
            if chance.random() < 0.3:
                continue
            row = [number, *(chance.choice([0, 1, None, "x"] if c == "n" else [0, 1, 0, 1, None]) for c in columns[1:])]
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row) if not _refers(
                database, table, row, columns
            ) else None


def _refers(database: sqlite3.Connection, table: str, row: list[Any], columns: list[str]) -> bool:
    """Whether a foreign key of the row names nothing."""
    for key in database.execute(f"PRAGMA foreign_key_list({table})").fetchall():
        value = row[columns.index(key[3])]
        if (
            value is not None
            and not database.execute(f"SELECT 1 FROM {key[2]} WHERE {key[4]} = ?", (value,)).fetchone()
        ):
            return True
    return False
