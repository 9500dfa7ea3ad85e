"""What is asked of each DBMS: updates that say what changed and no more, ids, rollbacks, recovery."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.postgresql.server import PostgresServer
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import FencedError, Log
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, OperationError, Token, chained
from plait.kernel.errors import UsageError
from tests.gyro.belt.variants import needs_mariadb, needs_postgresql
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite, scratch
from tests.support.patience import PATIENCE

SCHEMA = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT UNIQUE, score INTEGER DEFAULT 0);
CREATE TABLE friends (
  id INTEGER PRIMARY KEY, other INTEGER REFERENCES people (id) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE pets (
  owner INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE, name TEXT NOT NULL, PRIMARY KEY (owner, name));
INSERT INTO people (id, name) VALUES (1, 'ada'), (2, 'bob');
INSERT INTO pets VALUES (2, 'cat');
"""
Quiet: Callable[[str], None] = lambda _: None  # noqa: E731


class Pair:
    """Two servers' databases, and a log."""

    def __init__(self, folder: Path, kind: type[Engine]) -> None:
        self.engine = kind(folder, SCHEMA)
        self.here, self.there = (self.engine.open(n, 2, Quiet) for n in range(2))
        self.log = EmbeddedLog(folder / "log.db")
        self.log.reissue(0)
        self._names = 0

    def call(self, run: Callable[[Any], Any]) -> Call:
        self._names += 1
        return Call(f"request {self._names}", "test", {}, lambda connection: msgspec.json.encode(run(connection)))

    def execute(self, run: Callable[[Any], Any]) -> bytes:
        """As a global operation here; the update."""
        call = self.call(run)
        with self.here.visit() as visit:
            reply, update = visit.execute(call)
            entries = (
                chained(visit.chain, [Entry(visit.seq + 1, 1, 0, 0, call.request, "test", b"{}", reply, update)])
                if update
                else []
            )
            visit.commit(entries, self.log)
        self.there.apply(self.log.read(self.there.applied()), 1)
        return update

    def rows(self, query: str) -> tuple[list[Any], list[Any]]:
        return self.engine.rows(0, query), self.engine.rows(1, query)

    def same(self, query: str) -> list[Any]:
        here, there = self.rows(query)
        assert here == there
        return here

    def close(self) -> None:
        for each in (self.here, self.there, self.log, self.engine):
            each.close()


SERVED = [
    pytest.param(Postgresql, marks=[needs_postgresql, pytest.mark.slow]),
    pytest.param(Mariadb, marks=[needs_mariadb, pytest.mark.slow]),
]


@pytest.fixture(params=[Sqlite, *SERVED], ids=["sqlite", "postgresql", "mariadb"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    folder = scratch()
    made = Pair(folder, request.param)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


def sql(statement: str, *parameters: Any) -> Callable[[Any], Any]:
    return lambda db: (
        [list(r) for r in db.execute(statement, parameters).fetchall()]
        if "SELECT" in statement[:6]
        else (db.execute(statement, parameters).rowcount)
    )


def visit_once(database: Database, call: Call, log: Log) -> None:
    with database.visit() as visit:
        reply, update = visit.execute(call)
        visit.commit(chained("", [Entry(1, 1, 0, 0, call.request, "t", b"{}", reply, update)]), log)


def test_only_the_columns_that_changed_travel(pair: Pair) -> None:
    pair.there.write(pair.call(sql("UPDATE people SET name = 'only there' WHERE id = 1")))
    pair.execute(sql("UPDATE people SET score = 7 WHERE id = 1"))
    assert pair.rows("SELECT name, score FROM people WHERE id = 1") == ([("ada", 7)], [("only there", 7)])


def test_what_is_not_there_is_left_alone_and_what_is_there_is_replaced(pair: Pair) -> None:
    pair.here.write(pair.call(sql("INSERT INTO people (id, name) VALUES (9, 'eve')")))
    pair.execute(sql("UPDATE people SET score = 3 WHERE id = 9"))
    assert pair.rows("SELECT id FROM people WHERE id = 9") == ([(9,)], [])
    pair.here.write(pair.call(sql("DELETE FROM pets WHERE owner = 2")))
    pair.execute(sql("INSERT INTO pets VALUES (2, 'cat')"))
    assert pair.same("SELECT * FROM pets") == [(2, "cat")]
    pair.there.write(pair.call(sql("DELETE FROM pets WHERE owner = 2")))
    pair.execute(sql("DELETE FROM pets WHERE owner = 2"))
    assert pair.same("SELECT * FROM pets") == []


def test_what_foreign_keys_cascade_to_is_part_of_the_update(pair: Pair) -> None:
    if isinstance(pair.engine, Mariadb):
        pytest.skip("MariaDB runs no triggers for it, so it is refused")
    pair.there.write(pair.call(sql("INSERT INTO pets VALUES (2, 'only there')")))
    pair.execute(sql("DELETE FROM people WHERE id = 2"))
    assert pair.same("SELECT id FROM people ORDER BY id") == [(1,)]
    assert pair.rows("SELECT * FROM pets") == ([], [(2, "only there")])


def test_an_operation_that_raises_leaves_nothing(pair: Pair) -> None:
    def half(db: Any) -> None:
        db.execute("UPDATE people SET score = 5")
        raise KeyError("no")

    with pair.here.visit() as visit:
        first, update = visit.execute(pair.call(sql("UPDATE people SET score = 1 WHERE id = 1")))
        with pytest.raises(OperationError, match="KeyError"):
            visit.execute(pair.call(half))
        with pytest.raises(OperationError, match=r"(?i)unique|duplicate"):
            visit.execute(pair.call(sql("UPDATE people SET name = 'same'")))
        assert visit.alive
        visit.commit(chained("", [Entry(1, 1, 0, 0, "r", "test", b"{}", first, update)]), pair.log)
    with pytest.raises(OperationError, match="KeyError"):
        pair.here.write(pair.call(half))
    assert pair.engine.rows(0, "SELECT score FROM people ORDER BY id") == [(1,), (0,)]


def test_rollback_undoes_what_was_done_since_the_commit(pair: Pair) -> None:
    def regrets(db: Any) -> str:
        db.execute("UPDATE people SET score = 4")
        db.rollback()
        db.execute("UPDATE people SET score = 5 WHERE id = 1")
        db.commit()
        db.rollback()
        db.execute("UPDATE people SET score = 7")
        db.rollback()
        with db:
            db.execute("UPDATE people SET score = 6 WHERE id = 2")
        return "done"

    update = pair.execute(regrets)
    assert update
    assert pair.same("SELECT score FROM people ORDER BY id") == [(5,), (6,)]
    assert pair.execute(lambda db: (db.execute("UPDATE people SET score = 9"), db.rollback())[1]) == b""


@pytest.mark.parametrize("statement", ["COMMIT", "begin", "DROP TABLE pets", "  ROLLBACK;", "PREPARE TRANSACTION 'x'"])
def test_transactions_and_the_schema_are_not_the_applications(pair: Pair, statement: str) -> None:
    with pytest.raises(OperationError, match="in an operation"):
        pair.here.write(pair.call(lambda db: db.execute(statement)))


def test_an_operation_that_is_said_to_read_cannot_write(pair: Pair) -> None:
    with pytest.raises(OperationError, match=r"(?i)read.?only"):
        pair.here.read(pair.call(sql("UPDATE people SET score = 5")))
    assert msgspec.json.decode(pair.here.read(pair.call(sql("SELECT score FROM people WHERE id = 1"))).reply) == [[0]]


def test_ids_say_which_server_made_them(pair: Pair) -> None:
    insert = lambda db: db.execute("INSERT INTO people (name) VALUES (?)", (None,)).lastrowid  # noqa: E731
    here = [msgspec.json.decode(pair.here.write(pair.call(insert)).reply) for _ in range(3)]
    there = [msgspec.json.decode(pair.there.write(pair.call(insert)).reply) for _ in range(3)]
    pair.execute(insert)
    (entry,) = pair.log.read(0)
    everywhere = msgspec.json.decode(entry.reply)
    assert pair.rows(f"SELECT count(*) FROM people WHERE id = {everywhere}") == ([(1,)], [(1,)])
    assert [i % 2 for i in here + there] == [0, 0, 0, 1, 1, 1]
    assert len({*here, *there, 1, 2}) == 8


def test_rows_have_names_and_placeholders_are_sqlites(pair: Pair) -> None:
    def look(db: Any) -> Any:
        row = db.execute("SELECT id, name AS called FROM people WHERE id = :id", {"id": 1}).fetchone()
        assert row["called"] == row[1] == "ada"
        assert list(row.keys()) == ["id", "called"]
        cursor = db.cursor()
        cursor.execute("SELECT id FROM people WHERE name LIKE '%b%' AND id > ?", (0,))
        assert cursor.description[0][0] == "id"
        many = cursor.fetchall()
        cursor.executemany("UPDATE people SET score = ? WHERE id = ?", [(3, 1), (4, 2)])
        return [list(r) for r in many]

    assert msgspec.json.decode(pair.here.write(pair.call(look)).reply) == [[2]]
    assert pair.engine.rows(0, "SELECT score FROM people ORDER BY id") == [(3,), (4,)]


def test_a_fenced_visit_leaves_nothing(pair: Pair) -> None:
    pair.log.reissue(1)
    with pytest.raises(FencedError):
        pair.execute(sql("UPDATE people SET score = 5"))
    assert pair.engine.rows(0, "SELECT DISTINCT score FROM people") == [(0,)]
    assert pair.here.applied() == 0
    pair.here.settle(pair.log)
    pair.here.write(pair.call(sql("UPDATE people SET score = 1")))


def test_an_update_that_breaks_a_unique_column_is_not_swallowed(pair: Pair) -> None:
    pair.there.write(pair.call(sql("INSERT INTO people (id, name) VALUES (11, 'zoe')")))
    with pytest.raises(DatabaseGoneError, match=r"update 1 .* cannot be applied here"):
        pair.execute(sql("INSERT INTO people (id, name) VALUES (12, 'zoe')"))
    assert pair.there.applied() == 0


def test_updates_are_applied_once_and_without_holes(pair: Pair) -> None:
    pair.execute(sql("UPDATE people SET score = score + 1"))
    entries = pair.log.read(0)
    pair.there.apply(entries, 1)
    assert pair.same("SELECT DISTINCT score FROM people") == [(1,)]
    with pytest.raises(ValueError, match="cannot follow"):
        pair.there.apply([msgspec.structs.replace(entries[0], seq=3)], 1)


# -- SQLite -----------------------------------------------------------------------------------------------------------


def open_sqlite(folder: Path, schema: str) -> SqliteDatabase:
    return SqliteDatabase(folder / "x.db", schema=schema)


def test_a_table_without_a_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="table t has no primary key"):
        open_sqlite(tmp_path, "CREATE TABLE t (a)")
    with pytest.raises(UsageError, match="SQLite refuses the schema or the data"):
        open_sqlite(tmp_path / "..", "CREATE TABEL t (a)")


def test_triggers_act_once(tmp_path: Path) -> None:
    schema = """
    CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE noted (n INTEGER PRIMARY KEY, a INTEGER);
    CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO noted (n, a) VALUES (NEW.a * 10, NEW.a); END;
    """
    made = [SqliteDatabase(tmp_path / f"{n}.db", schema=schema) for n in range(2)]
    with made[0].visit() as visit:
        reply, update = visit.execute(
            Call("r", "t", {}, lambda db: b"%d" % db.execute("INSERT INTO t VALUES (4)").rowcount)
        )
        visit.commit([], EmbeddedLog(tmp_path / "log.db"))
    made[1].apply(chained("", [Entry(1, 1, 0, 0, "r", "t", b"{}", reply, update)]), 1)
    for each in made:
        found = each.read(
            Call("q", "q", {}, lambda db: msgspec.json.encode(db.execute("SELECT n, a FROM noted").fetchall()))
        )
        assert found.reply == b"[[40,4]]"
        each.close()


def test_a_key_that_is_null_is_refused_in_global_operations(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path, "CREATE TABLE t (a TEXT, b TEXT, PRIMARY KEY (a, b))")
    with database.visit() as visit, pytest.raises(OperationError, match="the primary key of t is NULL"):
        visit.execute(Call("r", "t", {}, lambda db: db.execute("INSERT INTO t VALUES ('x', NULL)")))
    database.close()


def test_exceptions_are_those_of_sqlite3(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path, "CREATE TABLE t (a INTEGER PRIMARY KEY)")

    def careful(db: Any) -> bytes:
        db.execute("INSERT INTO t VALUES (1)")
        for statement, kind in (
            ("INSERT INTO t VALUES (1)", sqlite3.IntegrityError),
            ("SELECT nothing FROM t", sqlite3.OperationalError),
            ("SELECT ?", sqlite3.ProgrammingError),
        ):
            with pytest.raises(kind):
                db.execute(statement)
        return b"1"

    assert database.write(Call("r", "t", {}, careful)).reply == b"1"
    database.close()


INSERTS = {
    "INSERT INTO t (b) VALUES (?)": ("x",),
    "INSERT INTO t (b) VALUES (:v), (:v)": {"v": "x"},
    "INSERT INTO t VALUES (NULL, ?)": ("x",),
    "INSERT INTO t (a, b) VALUES (?, 'x')": (None,),
    "INSERT INTO t DEFAULT VALUES": (),
    "INSERT INTO t (b) SELECT b FROM t UNION ALL SELECT ?": ("x",),
    "INSERT INTO t SELECT NULL, b FROM t LIMIT 1": (),
    "INSERT OR IGNORE INTO t (b) VALUES (?) RETURNING a": ("x",),
    "REPLACE INTO t (b) VALUES (?)": ("x",),
    "insert into T (b) values ('it''s; VALUES (?)')": (),
}


@pytest.mark.parametrize("statement", INSERTS)
def test_every_insert_gets_an_id_of_this_server(statement: str, tmp_path: Path) -> None:
    schema = "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'p'), (2, 'q'), (1000, 'far')"
    database = SqliteDatabase(tmp_path / "x.db", server=2, servers=5, schema=schema)

    def insert(db: Any) -> bytes:
        db.execute(statement, INSERTS[statement])
        return msgspec.json.encode([a for (a,) in db.execute("SELECT a FROM t WHERE a NOT IN (1, 2, 1000)")])

    made = msgspec.json.decode(database.write(Call("r", "t", {}, insert)).reply)
    assert made
    assert all(a % 5 == 2 for a in made)
    database.close()


def test_a_commit_that_fails_after_the_append_is_made_up_for(tmp_path: Path) -> None:
    """Nothing may run on a state that lacks an update which has happened."""
    fail = [True]

    def step(name: str) -> None:
        if name == "appended" and fail:
            fail.clear()
            raise DatabaseGoneError("disk full")

    database: Database = SqliteDatabase(tmp_path / "x.db", schema=SCHEMA, step=step)
    log = EmbeddedLog(tmp_path / "log.db")
    log.reissue(0)
    call = Call("r", "t", {}, lambda db: b"%d" % db.execute("UPDATE people SET score = score + 1").rowcount)
    with pytest.raises(DatabaseGoneError, match="disk full"):
        visit_once(database, call, log)
    with pytest.raises(DatabaseGoneError, match="may be in the log, but is not committed here yet"):
        database.write(call)
    database.apply(log.read(0), 0)
    assert database.write(call).repeated
    database.close()
    log.close()


def test_an_append_of_which_nothing_is_known_stops_everything(tmp_path: Path) -> None:
    """It may arrive later; what is executed meanwhile would lack it."""

    class Unsure(EmbeddedLog):
        def append(self, entries: Sequence[Entry]) -> None:
            raise KeyboardInterrupt

    database: Database = SqliteDatabase(tmp_path / "x.db", schema=SCHEMA, step=Quiet)
    log = Unsure(tmp_path / "log.db")
    log.reissue(0)
    call = Call("r", "t", {}, lambda db: b"%d" % db.execute("UPDATE people SET score = score + 1").rowcount)
    with pytest.raises(KeyboardInterrupt):
        visit_once(database, call, log)
    with pytest.raises(DatabaseGoneError, match="may be in the log"):
        database.write(call)
    database.close()
    log.close()


# -- PostgreSQL and MariaDB -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SERVED)
@pytest.mark.parametrize(("where", "kept"), [("prepared", 0), ("appended", 1)])
def test_a_prepared_visit_becomes_what_the_log_says(where: str, kept: int, kind: type[Engine]) -> None:
    class Stop(BaseException):
        pass

    def step(name: str) -> None:
        if name == where:
            raise Stop

    folder = scratch()
    engine = kind(folder, SCHEMA)
    database = engine.open(0, 2, step)
    log = EmbeddedLog(folder / "log.db")
    log.reissue(0)
    call = Call("r", "t", {}, lambda db: b"%d" % db.execute("UPDATE people SET score = 5 WHERE id = 1").rowcount)
    with pytest.raises(Stop):
        visit_once(database, call, log)
    database.close()
    again = engine.open(0, 2, Quiet)
    assert again.applied() == 0
    again.settle(log)
    assert again.applied() == kept
    assert engine.rows(0, "SELECT score FROM people WHERE id = 1") == [(5 * kept,)]
    for each in (again, log, engine):
        each.close()
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.slow
@needs_postgresql
def test_a_dbms_that_goes_away_is_an_error_and_comes_back() -> None:
    from plait.gyro.belt.databases.postgresql.database import PostgresqlDatabase

    folder = scratch()
    server = PostgresServer(folder)
    server.start()
    try:
        database = PostgresqlDatabase(server.dsn, schema=SCHEMA)
        call = Call("r1", "t", {}, lambda db: b"%d" % db.execute("UPDATE people SET score = score + 1").rowcount)
        assert database.write(call).reply == b"2"
        server.stop(signal.SIGQUIT)
        for attempt in (database.write, database.read):
            with pytest.raises(DatabaseGoneError, match="PostgreSQL of server 0"):
                attempt(msgspec.structs.replace(call, request="r2"))
        with pytest.raises(DatabaseGoneError), database.visit():
            pass
        server.start()
        assert database.write(call).repeated
        assert database.write(msgspec.structs.replace(call, request="r2")).wrote
        database.close()
    finally:
        server.close()
        shutil.rmtree(folder)


@pytest.mark.slow
@needs_postgresql
def test_an_update_is_noted_before_other_triggers_make_more_of_it() -> None:
    folder = scratch()
    schema = """
    CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER);
    INSERT INTO t VALUES (1, 0);
    CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF NEW.b < 3 THEN UPDATE t SET b = NEW.b + 1 WHERE a = NEW.a; END IF; RETURN NULL; END $$;
    CREATE TRIGGER a_first AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION more();
    """
    engine = Postgresql(folder, schema)
    made = [engine.open(n, 2, Quiet) for n in range(2)]
    with made[0].visit() as visit:
        reply, update = visit.execute(Call("r", "t", {}, lambda db: b"%d" % db.execute("UPDATE t SET b = 1").rowcount))
        visit.commit([], EmbeddedLog(folder / "log.db"))
    made[1].apply(chained("", [Entry(1, 1, 0, 0, "r", "t", b"{}", reply, update)]), 1)
    assert engine.rows(0, "SELECT b FROM t") == engine.rows(1, "SELECT b FROM t") == [(3,)]
    for each in (*made, engine):
        each.close()
    shutil.rmtree(folder)


def test_an_append_from_before_a_crash_is_refused_after_recovery(tmp_path: Path) -> None:
    """It was computed on a state that local operations have changed since."""
    log = EmbeddedLog(tmp_path / "log.db")
    epoch = log.reissue(0)
    assert epoch is not None
    database = SqliteDatabase(tmp_path / "x.db", schema=SCHEMA)
    call = Call("r", "t", {}, lambda db: b"%d" % db.execute("UPDATE people SET score = score + 1").rowcount)
    with database.visit() as visit:
        reply, update = visit.execute(call)  # and the process dies, with the request to the log on its way
    node = Node(0, 1, database, log, Nobody())
    node.start()
    with pytest.raises(FencedError):
        log.append(chained("", [Entry(1, epoch, 0, 0, "r", "t", b"{}", reply, update)]))
    assert node.submit(call).result(timeout=PATIENCE).seq == 1
    node.stop()
    log.close()
    database.close()


class Nobody:
    """No other servers."""

    def send(self, server: int, token: Token) -> bool:
        return False

    def hint(self) -> None:
        pass


def test_a_database_is_closed_while_a_statement_runs(tmp_path: Path) -> None:
    """A server that is stopped does not wait for long queries, and the query ends as one of a database that is gone."""
    database = SqliteDatabase(tmp_path / "busy.db", schema="CREATE TABLE t (a INTEGER PRIMARY KEY)")
    begun, ends = threading.Event(), []

    def endless(db: Any) -> bytes:
        begun.set()
        db.execute("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n").fetchall()
        return b""

    def ask() -> None:
        try:
            database.read(Call("r", "t", {}, endless))
        except DatabaseGoneError as error:
            ends.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    begun.wait(PATIENCE)
    database.close()
    thread.join(PATIENCE)
    assert len(ends) == 1


def test_a_deferred_constraint_fails_in_its_operation_and_not_at_the_commit(pair: Pair) -> None:
    """After the append to the log, a commit must not fail any more."""
    if isinstance(pair.engine, Mariadb):
        pytest.skip("MariaDB has no deferred constraints")

    def late(db: Any) -> None:
        db.execute("INSERT INTO friends VALUES (?, ?)", (8, 80))
        db.execute("INSERT INTO people (id, name) VALUES (?, ?)", (80, "eve"))

    with pair.here.visit() as visit:
        with pytest.raises(OperationError, match=r"(?i)foreign key"):
            visit.execute(pair.call(sql("INSERT INTO friends VALUES (?, ?)", 7, 70)))
        assert visit.alive
        call = pair.call(late)  # the constraint is still deferred
        reply, update = visit.execute(call)
        visit.commit(
            chained(visit.chain, [Entry(visit.seq + 1, 1, 0, 0, call.request, "test", b"{}", reply, update)]), pair.log
        )
    pair.there.apply(pair.log.read(pair.there.applied()), 1)
    assert pair.same("SELECT id, other FROM friends") == [(8, 80)]
    with pytest.raises(OperationError, match=r"(?i)foreign key"):
        pair.here.write(pair.call(sql("INSERT INTO friends VALUES (?, ?)", 9, 90)))
    pair.here.write(pair.call(sql("INSERT INTO friends VALUES (?, ?)", 10, 1)))
