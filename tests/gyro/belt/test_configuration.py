"""The rules of a change: what an entry does, the net effect of updates, and the gate."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plait.gyro.belt.configuration.configuration import (
    Abort,
    Activate,
    Configuration,
    Member,
    Proposal,
    Ready,
    Record,
    State,
    follow,
    operation_of,
)
from plait.gyro.belt.configuration.gate import ClosedError, Gate
from plait.gyro.belt.configuration.merge import Fold, RowChange
from plait.gyro.belt.databases.changeable import MigrationError, Switch
from plait.gyro.belt.databases.postgresql.database import PostgresqlDatabase
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.records import Call, Entry, chained
from tests.gyro.belt.variants import needs_postgresql
from tests.support.engines import Postgresql, scratch

MEMBERS = [Member(0, "a"), Member(1, "b")]
FIRST = State(Configuration(0, MEMBERS, 1, 2))
NEXT = Proposal(1, [*MEMBERS, Member(2, "c")])


def after(*records: Record, state: State = FIRST) -> State:
    """The state after entries."""
    for seq, record in enumerate(records, start=1):
        state = follow(state, Entry(seq, 1, 1, 0, "r", operation_of(record), msgspec.json.encode(record), b"", b""))
    return state


def test_a_configuration_begins_when_all_members_are_ready() -> None:
    state = after(NEXT, Ready(0, 5), Ready(1, 7), Activate())
    assert (state.configuration.number, state.configuration.numbers, state.change) == (1, [0, 1, 2], None)
    assert (state.configuration.barrier.seq, state.configuration.barrier.positions) == (4, {0: 5, 1: 7})
    assert state.configuration.used == 2


@pytest.mark.parametrize(
    "records",
    [
        (NEXT, Ready(0, 5), Activate()),
        (NEXT, Ready(0, 5), Abort("late"), Ready(1, 7), Activate()),
        (Ready(0, 5), Ready(1, 7), Activate()),
        (msgspec.structs.replace(NEXT, number=2), Ready(0, 5), Ready(1, 7), Activate()),
        (NEXT, Ready(0, 5), Abort("again"), NEXT, Ready(1, 7), Activate()),
    ],
    ids=["not all are ready", "aborted", "not prepared", "another number", "ready for the change before"],
)
def test_otherwise_it_does_not_begin(records: tuple[Record, ...]) -> None:
    assert after(*records).configuration == FIRST.configuration


def test_an_abort_after_the_activation_has_no_effect() -> None:
    assert after(NEXT, Ready(0, 5), Ready(1, 7), Activate(), Abort("too late")).configuration.number == 1


def test_the_stream_of_a_dead_member_takes_the_place_of_its_readiness() -> None:
    state = after(Proposal(1, MEMBERS[:1], gone={1: 9}), Ready(0, 5), Activate())
    assert state.configuration.numbers == [0]
    assert state.configuration.barrier.positions == {0: 5, 1: 9}


def test_a_gate_that_is_shut_stays_closed() -> None:
    """Otherwise a server would execute operations with the routes of the old configuration."""
    gate = Gate()
    gate.close("write")
    with gate.passing("read"), pytest.raises(ClosedError), gate.passing("write"):
        pass
    gate.open()
    with gate.passing("write"):
        pass
    gate.shut()
    gate.open()
    assert gate.closed("read")
    assert gate.closed("write")


# -- rows ------------------------------------------------------------------------------------------------------------

SCHEMA = """
CREATE TABLE t (k INTEGER PRIMARY KEY, u TEXT UNIQUE, n INTEGER DEFAULT 0);
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);
"""


def switch(state: str = "{}", **options: Any) -> Switch:
    (entry,) = chained("", [Entry(1, 1, 1, 0, "r", "gyro:activate", b"{}", b"", b"")])
    given: dict[str, Any] = {"fold": Fold(), "past": [], "rank": 0, "servers": 2} | options
    return Switch(entry, state, **given)


def test_the_last_update_of_each_row_counts_and_unique_values_never_meet(tmp_path: Path) -> None:
    """The rows of one database that executes the same changes one after the other."""
    database = SqliteDatabase(tmp_path / "app.db", schema=SCHEMA, shipping=1 << 20)
    fold = Fold()
    fold.add([RowChange("t", "UPDATE", (1,), {"u": "x"}), RowChange("t", "UPDATE", (2,), {"u": "a"})])
    fold.add([RowChange("t", "UPDATE", (1,), {"u": "b"})])
    fold.add([RowChange("t", "INSERT", (3,), {"k": 3, "u": "c", "n": 3}), RowChange("t", "DELETE", (3,), {})])
    fold.add([RowChange("t", "INSERT", (4,), {"k": 4, "u": "c", "n": 4}), RowChange("t", "UPDATE", (4,), {"n": 5})])
    fold.add([RowChange("t", "UPDATE", (4,), {"k": 6}, after=(6,))])
    database.switch(switch(fold=fold), attempt=True)
    assert database.configuration() is None
    assert list(database._local.execute("SELECT * FROM t")) == [(1, "a", 1), (2, "b", 2)], "an attempt changes nothing"
    database.switch(switch(fold=fold))
    assert list(database._local.execute("SELECT * FROM t")) == [(1, "b", 1), (2, "a", 2), (6, "c", 5)]
    assert database.applied() == 1
    database.close()


@pytest.mark.parametrize(
    ("migration", "said"),
    [
        ("ALTER TABLE t ADD COLUMN n TEXT;", "duplicate column"),
        ("COMMIT;", "COMMIT ends the transaction"),
        ("ROLLBACK;", "ROLLBACK ends the transaction"),
        ("UPDATE t SET n = random();", "random differs between servers"),
        ("UPDATE t SET u = CURRENT_TIMESTAMP WHERE k = 1;", "differs between servers"),
        ("UPDATE t SET u = datetime('now') WHERE k = 1;", "'now' differs between servers"),
        ("UPDATE gyro_state SET applied = 9;", "gyro_state belongs to the servers"),
        ("PRAGMA foreign_keys = 0;", "PRAGMA foreign_keys is not possible"),
        ("ALTER TABLE t ADD COLUMN m TEXT;", r"the column t\.m"),
        ("", r"the column t\.more is missing"),
        ("DROP TABLE t;", r"the column t\.k is missing"),
    ],
)
def test_a_migration_that_fails_changes_nothing(migration: str, said: str, tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "app.db", schema=SCHEMA, shipping=1 << 20)
    schema = SCHEMA if migration else SCHEMA.replace("n INTEGER DEFAULT 0", "n INTEGER DEFAULT 0, more TEXT")
    with pytest.raises(MigrationError, match=said):
        database.switch(switch(migration=migration, schema=schema.partition("INSERT")[0]), attempt=True)
    assert list(database._local.execute("SELECT * FROM t")) == [(1, "a", 1), (2, "b", 2)]
    assert (database.applied(), database.configuration()) == (0, None)
    database.close()


@pytest.mark.slow
@needs_postgresql
def test_a_migration_of_postgresql() -> None:
    """What fails changes nothing. What succeeds gives the tables of the schema, and their changes are recorded."""
    base = """
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TABLE t (k INTEGER PRIMARY KEY, u TEXT UNIQUE, m mood DEFAULT 'ok', n NUMERIC DEFAULT 0 CHECK (n >= 0));
    CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := 2 * NEW.n; RETURN NEW; END $$;
    CREATE TRIGGER twice BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION twice();
    CREATE VIEW sad AS SELECT k FROM t WHERE m = 'sad';
    CREATE TABLE numbered (id INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, k INTEGER);
    """
    folder = scratch()
    engine = Postgresql(folder, base + "INSERT INTO t VALUES (1, 'a', 'sad', 1.50), (2, 'b', 'ok', 2);")
    engine.shipping = 1 << 20
    database = engine.open(0, 2, lambda _: None)
    assert isinstance(database, PostgresqlDatabase)
    before = database.schema()
    for migration, said in {
        "ALTER TABLE t ADD COLUMN n TEXT": "already exists",
        "COMMIT": "transaction commands",
        "ALTER TABLE t ADD COLUMN more TEXT; ROLLBACK": "transaction commands",
        "UPDATE t SET n = Random()": "Random differs between servers",
        "UPDATE t SET u = 'now'::timestamptz": "'now' differs between servers",
        "ALTER TABLE t ADD COLUMN number BIGSERIAL": "the numbers of a new serial column",
        "INSERT INTO numbered (k) SELECT k FROM t": "generates ids of numbered_id_seq",
        "CREATE TABLE x (id SERIAL PRIMARY KEY, k INT); INSERT INTO x (k) SELECT k FROM t": "generates ids of x_id_seq",
        "UPDATE gyro_state SET applied = 9": "belong to the servers",
        "ALTER TABLE t ADD COLUMN m2 TEXT": "table t column m2",
        "DROP VIEW sad": "sad",
        "CREATE TABLE x (k INTEGER)": "no primary key",
        "INSERT INTO t VALUES (3, 'a')": "duplicate key",
    }.items():
        with pytest.raises(MigrationError, match=said):
            database.switch(switch(migration=migration, schema=base), attempt=True)
        assert (database.applied(), database.configuration(), database.schema()) == (0, None, before)
    more = "CREATE TABLE likes (id INTEGER PRIMARY KEY, k INTEGER NOT NULL REFERENCES t);"
    migration = f"ALTER TABLE t ADD COLUMN s TEXT NOT NULL DEFAULT 'x'; UPDATE t SET s = u; {more}"
    migration += "INSERT INTO likes SELECT k, k FROM t"
    after = base.replace("CHECK (n >= 0)", "CHECK (n >= 0), s TEXT NOT NULL DEFAULT 'x'") + more
    database.switch(switch(migration=migration, schema=after))
    assert database.applied() == 1
    database.close()
    database = engine.open(0, 2, lambda _: None)

    def like(db: Any) -> bytes:
        db.execute("INSERT INTO likes (id, k) VALUES (7, 1)")
        return b"null"

    database.write(Call("r", "like", {}, like))
    assert b'"likes","INSERT"' in database.outbox([], 10)[0].update
    database.close()
    rows = [(1, "a", "sad", Decimal("3.00"), "a"), (2, "b", "ok", Decimal(4), "b")]
    assert engine.rows(0, "SELECT k, u, m::text, n, s FROM t ORDER BY k") == rows
    assert engine.rows(0, "SELECT * FROM likes ORDER BY id") == [(1, 1), (2, 2), (7, 1)]
    engine.close()
    shutil.rmtree(folder, ignore_errors=True)


def test_ids_begin_above_all_ids_with_the_remainder_of_the_server(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "app.db", schema=SCHEMA, shipping=1 << 20)
    database._local.execute("INSERT INTO gyro_ids VALUES ('t', 0, 8), ('t', 1, 11)")
    database.switch(switch(servers=3))
    made = {}
    for rank in range(3):
        other = SqliteDatabase(tmp_path / "app.db", server=7, servers=3, rank=rank, shipping=1 << 20)
        made[rank] = other._ids._next(other._local, "t")
        other.close()
    assert all(number > 11 and number % 3 == rank for rank, number in made.items()), made
    database.close()
