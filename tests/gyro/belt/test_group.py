"""Global operations that run at the same time in PostgreSQL: conflicting ones are left, the order is that of the log."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from plait.gyro.belt.databases.postgresql.database import PostgresqlDatabase
from plait.gyro.belt.databases.postgresql.group import PostgresqlGroup
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import FencedError, Log
from plait.gyro.belt.records import Call, Entry
from tests.gyro.belt import runs
from tests.gyro.belt.cluster import MortalNode
from tests.gyro.belt.variants import needs_postgresql
from tests.support.engines import Postgresql, scratch
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.slow, needs_postgresql]
SCHEMA = """
CREATE TABLE lists (id INTEGER PRIMARY KEY, items TEXT NOT NULL DEFAULT '');
INSERT INTO lists (id) SELECT generate_series(0, 9);
"""
INDEXED = " options='-c enable_seqscan=off -c jit=off'"
"""With sequential scans, PostgreSQL takes a table of ten rows for one thing, and all operations conflict."""


def copy(source: int, target: int, value: str, between: Callable[[], None] = lambda: None) -> Callable[[Any], bytes]:
    """Read a list, and append to another one."""

    def act(db: Any) -> bytes:
        (items,) = db.execute("SELECT items FROM lists WHERE id = ?", (source,)).fetchone()
        between()
        db.execute("UPDATE lists SET items = items || ' ' || ? WHERE id = ?", (value, target))
        return msgspec.json.encode(items)

    return act


def call(name: str, act: Callable[[Any], bytes]) -> Call:
    return Call(name, "copy", {}, act)


def made(seq: int, call: Call, reply: bytes, update: bytes) -> Entry:
    return Entry(seq, 1, 0, 0, call.request, call.operation, b"{}", reply, update)


class Setting(SimpleNamespace):
    engine: Postgresql
    database: PostgresqlDatabase
    log: Log

    def group(self, *calls: Call) -> list[str]:
        """Execute a group. Returns the names of the operations that were executed, in the order of the log."""
        began = self.database.together(calls)
        assert began is not None
        with began as group:
            group.run(calls, made, self.log.largest)
            group.commit(self.log)
        return [e.request for e in group.entries]

    def items(self) -> dict[int, str]:
        return {n: items for n, items in self.engine.rows(0, "SELECT id, items FROM lists") if items}


@pytest.fixture
def setting() -> Iterator[Setting]:
    with opened(PostgresqlDatabase) as found:
        yield found


@contextmanager
def opened(kind: type[PostgresqlDatabase], **options: Any) -> Iterator[Setting]:
    folder = scratch()
    engine = Postgresql(folder, SCHEMA)
    log = EmbeddedLog(folder / "log.db")
    log.reissue(0)
    database = kind(engine.dsn(0) + INDEXED, schema=engine.schema, **options)
    try:
        yield Setting(engine=engine, database=database, log=log)
    finally:
        database.close()
        log.close()
        engine.close()


def test_operations_that_do_not_conflict_run_at_the_same_time(setting: Setting) -> None:
    """Each waits until all have begun: one after the other, none would end."""
    meeting = threading.Barrier(4, timeout=PATIENCE)
    calls = [call(f"r{n}", copy(n, n + 5, f"v{n}", meeting.wait)) for n in range(4)]
    done = setting.group(*calls)
    assert sorted(done) == ["r0", "r1", "r2", "r3"]
    entries = setting.log.read(0)
    assert [e.request for e in entries] == done
    assert [e.seq for e in entries] == [1, 2, 3, 4]
    assert setting.database.applied() == 4
    assert setting.database.chain() == entries[-1].chain
    assert setting.items() == {5: " v0", 6: " v1", 7: " v2", 8: " v3"}
    with setting.database.visit() as visit:
        assert (visit.seq, visit.chain) == (4, entries[-1].chain)
        assert visit.repeated(calls[0]) is not None


def skew(first: str) -> list[Call]:
    """`reader` reads the list that `writer` changes. The first of them ends before the other one goes on."""
    read, ended = threading.Event(), threading.Event()

    def reader() -> None:
        read.set()
        if first == "writer":
            ended.wait(PATIENCE)

    def writer() -> None:
        read.wait(PATIENCE)
        if first == "reader":
            ended.wait(PATIENCE)

    calls = {"reader": call("reader", copy(0, 1, "r", reader)), "writer": call("writer", copy(2, 0, "w", writer))}
    Signalling.ended = ended
    return list(calls.values())


class Signalling(PostgresqlGroup):
    """Says when the first operation is prepared."""

    ended: threading.Event

    def _prepare(self, *arguments: Any) -> None:
        try:
            super()._prepare(*arguments)
        finally:
            self.ended.set()


class Unguarded(Signalling):
    guarded = False


def kind(group: type[PostgresqlGroup]) -> type[PostgresqlDatabase]:
    return type("Made", (PostgresqlDatabase,), {"groups": staticmethod(lambda: group)})


@pytest.mark.parametrize("first", ["reader", "writer"])
def test_operations_that_conflict_are_left(first: str) -> None:
    """A single rw-dependency: PostgreSQL would commit both, in either order. The guard makes it refuse one."""
    with opened(kind(Signalling)) as setting:
        assert setting.group(*skew(first)) == [first]
        assert setting.items() == ({1: " r"} if first == "reader" else {0: " w"})


def test_without_the_guard_the_order_is_wrong() -> None:
    """The mutant: the writer is first in the log, and the reader has not seen what it wrote."""
    with opened(kind(Unguarded)) as setting:
        assert setting.group(*skew("writer")) == ["writer", "reader"]
        assert [(e.request, e.reply) for e in setting.log.read(0)] == [("writer", b'""'), ("reader", b'""')]
        assert setting.items() == {0: " w", 1: " r"}  # in this order, one database would reply " w" to the reader


def test_two_writers_of_a_row(setting: Setting) -> None:
    """One has the lock of the row until the group commits. The other one gives up, and is left."""
    meeting = threading.Barrier(2, timeout=PATIENCE)
    done = setting.group(*(call(f"r{n}", copy(n, 9, f"v{n}", meeting.wait)) for n in range(2)))
    assert len(done) == 1
    assert setting.items() == {9: f" v{done[0][1]}"}


def test_what_is_left_leaves_no_trace(setting: Setting) -> None:
    """Operations that raise, that change nothing, and that ran before."""

    def wrong(db: Any) -> bytes:
        db.execute("UPDATE lists SET items = 'wrong' WHERE id = 3")
        raise ValueError

    known = call("known", copy(0, 5, "k"))
    assert sorted(setting.group(known, call("other", copy(1, 6, "o")))) == ["known", "other"]
    looks = call("looks", lambda db: msgspec.json.encode(db.execute("SELECT 1").fetchone()[0]))
    assert setting.group(known, call("wrong", wrong), looks, call("right", copy(2, 7, "r"))) == ["right"]
    assert setting.items() == {5: " k", 6: " o", 7: " r"}
    assert [e.seq for e in setting.log.read(0)] == [1, 2, 3]
    assert setting.engine.rows(0, "SELECT count(*) FROM gyro_changes_0") == [(0,)]


def test_the_log_refuses_a_group(setting: Setting) -> None:
    """A newer token exists: nothing has happened."""
    setting.log.reissue(1)
    with pytest.raises(FencedError):
        setting.group(call("a", copy(0, 5, "a")), call("b", copy(1, 6, "b")))
    assert setting.items() == {}
    assert setting.database.applied() == 0
    assert setting.engine.rows(0, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()") == []


class DiedError(BaseException):
    """The process is gone."""


@pytest.mark.parametrize(("where", "expected"), [("prepared", 0), ("appended", 2), ("committed", 2)])
def test_a_group_survives_a_crash(where: str, expected: int) -> None:
    """What the log contains is committed, in its order; the rest is rolled back."""
    steps: list[str] = []

    def step(name: str) -> None:
        steps.append(name)
        if name == where and steps.count(name) == 1:
            raise DiedError

    with opened(PostgresqlDatabase, step=step) as setting:
        with pytest.raises(DiedError):
            setting.group(call("a", copy(0, 5, "a")), call("b", copy(1, 6, "b")))
        setting.database.close()
        setting.database = PostgresqlDatabase(setting.engine.dsn(0))
        setting.database.settle(setting.log)
        assert setting.database.applied() == expected
        assert len(setting.items()) == expected
        setting.database.close()


class Backwards(PostgresqlGroup):
    """Commits in another order than that of the log."""

    def commit(self, log: Log) -> None:
        self._prepared.reverse()
        super().commit(log)


@pytest.mark.parametrize("group", [PostgresqlGroup, Backwards])
def test_local_operations_see_the_order_of_the_log(group: type[PostgresqlGroup]) -> None:
    """A local operation between the commits of a group: it has the position of what it sees. A mutant breaks this."""
    seen: list[tuple[int, Any]] = []

    def look(db: Any) -> bytes:
        rows = db.execute("SELECT items FROM lists WHERE items <> '' ORDER BY items").fetchall()
        return msgspec.json.encode([items for (items,) in rows])

    def step(name: str) -> None:
        if name == "committed":
            outcome = setting.database.read(call("", look))
            seen.append((outcome.seq, msgspec.json.decode(outcome.reply)))

    with opened(kind(group), step=step) as setting:
        done = setting.group(*(call(f"r{n}", copy(n, n + 5, f"r{n}")) for n in range(3)))
    log = [sorted(f" {name}" for name in done[:seq]) for seq in range(4)]
    assert len(seen) == 3
    assert all(reply == log[seq] for seq, reply in seen) == (group is PostgresqlGroup)


def test_sqlite_has_one_writer() -> None:
    folder = scratch()
    database = SqliteDatabase(folder / "x.db", schema="CREATE TABLE t (id INTEGER PRIMARY KEY)")
    assert database.together([call("a", copy(0, 1, "a")), call("b", copy(2, 3, "b"))]) is None
    database.close()


class Indexed(Postgresql):
    together = 0

    def dsn(self, server: int) -> str:
        return super().dsn(server) + INDEXED


class Counting(PostgresqlGroup):
    def commit(self, log: Log) -> None:
        super().commit(log)
        Indexed.together += len(self.entries)


def test_runs_are_serializable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with deaths against the serial oracle, in which every visit tries to run its operations together."""
    monkeypatch.setattr(PostgresqlDatabase, "groups", staticmethod(lambda: Counting))
    monkeypatch.setattr(MortalNode, "slow", -1.0)
    monkeypatch.setattr(Indexed, "together", 0)
    monkeypatch.setattr(runs, "work", functools.partial(runs.work, operations=8))
    faults, _ = runs.run(400, engine=Indexed, without=runs.GENERATED, servers=2, crashes=0.005, delay=0.002)
    assert faults == []
    assert Indexed.together > 0
