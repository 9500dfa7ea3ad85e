"""Serializability of randomised runs (Saissi 2019, theorem 1), with deaths, losses and delays; mutants that break it."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import apsw
import msgspec
import pytest

from plait.gyro.belt.databases.sqlite.connection import SqliteConnection, SqliteCursor
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.databases.sqlite.visit import SqliteVisit
from plait.gyro.belt.logs.address import address
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import BehindError, FencedError, Log, LogGoneError, TooLargeError, size_of
from plait.gyro.belt.records import Call, Entry, chained
from plait.gyro.belt.routing import Kind, Route, place
from tests.gyro.belt.cluster import Crash
from tests.gyro.belt.log_engines import Etcd, Nats, opener
from tests.gyro.belt.runs import GENERATED, board_routes, run
from tests.gyro.belt.variants import (
    ROUGH,
    ParallelMariadb,
    ParallelPostgresql,
    Skipping,
    engine,
    needs_mariadb,
    needs_postgresql,
)
from tests.support.engines import Mariadb, Postgresql
from tests.support.further import further

pytestmark = pytest.mark.slow


def test_the_application_has_every_class() -> None:
    assert {r.classed for r in board_routes().values()} == {"local", "global", "local/global"}


@pytest.mark.parametrize("seed", range(3))
def test_quiet_runs_are_serializable(seed: int) -> None:
    faults, cluster = run(seed)
    assert faults == []
    assert cluster.deaths == 0
    assert {e.kind for e in cluster.events} == {"read", "local", "global"}


@pytest.mark.parametrize("seed", [*range(100, 105), *further(*range(105, 110))])
def test_runs_with_deaths_are_serializable(seed: int) -> None:
    faults, cluster = run(seed, **ROUGH)
    assert faults == []
    assert len(cluster.events) > 80


@needs_postgresql
@pytest.mark.parametrize("seed", [200, *further(201, 202)])
def test_runs_on_postgresql_are_serializable(seed: int) -> None:
    faults, _ = run(seed, engine=Postgresql, without=GENERATED, **ROUGH)
    assert faults == []


@needs_postgresql
def test_parallel_local_operations_on_postgresql_have_no_cycle() -> None:
    faults, _ = run(300, engine=ParallelPostgresql, without=GENERATED)
    assert [f for f in faults if f.startswith("cycle")] == []


@needs_mariadb
@pytest.mark.parametrize("seed", [210, *further(211)])
def test_runs_on_mariadb_are_serializable(seed: int) -> None:
    faults, _ = run(seed, engine=Mariadb, without=GENERATED, **ROUGH)
    assert faults == []


@needs_mariadb
def test_parallel_local_operations_on_mariadb_have_no_cycle() -> None:
    faults, _ = run(310, engine=ParallelMariadb, without=GENERATED)
    assert [f for f in faults if f.startswith("cycle")] == []


class Late(EmbeddedLog):
    """The process dies with its request on the way, and the log gets it after the process is back; or in time."""

    chance = random.Random(5)

    def append(self, entries: Sequence[Entry]) -> None:
        if self.chance.random() < 0.15:
            file = Path(self._db.filename)

            def arrive() -> None:
                with contextlib.suppress(FencedError, BehindError, LogGoneError):
                    log = EmbeddedLog(file)
                    try:
                        log.append(entries)
                    finally:
                        log.close()

            timer = threading.Timer(self.chance.choice([0.0, 0.01, 0.03, 0.06]), arrive)
            timer.start()
            self.timers.append(timer)
            raise Crash
        super().append(entries)

    timers: ClassVar[list[threading.Timer]] = []


@pytest.mark.parametrize("seed", range(500, 502))
def test_an_append_that_arrives_after_its_server_recovered_is_refused(seed: int) -> None:
    faults, cluster = run(seed, servers=2, open_log=lambda folder: Late(folder / "log.db"))
    for timer in Late.timers:
        timer.join()
    assert faults == []
    assert cluster.deaths > 0


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Callable[[], Callable[[], Log]]]]:
    """Open new logs in etcd, and in NATS and etcd."""
    folder = tmp_path_factory.mktemp("engines")
    etcd = Etcd(folder)
    try:
        nats = Nats(folder)
        try:
            fence, where = address(etcd.where), address(nats.where)
            yield {"etcd": lambda: opener(fence), "nats": lambda: opener(where, fence)}
        finally:
            nats.close()
    finally:
        etcd.close()


@pytest.mark.parametrize("log", ["etcd", "nats"])
@pytest.mark.parametrize("seed", [510, *further(511)])
def test_runs_with_other_logs_are_serializable(
    log: str, seed: int, engines: dict[str, Callable[[], Callable[[], Log]]]
) -> None:
    opening = engines[log]()
    faults, cluster = run(seed, open_log=lambda _folder: opening(), servers=3, **ROUGH)
    assert faults == []
    assert cluster.deaths > 0


class Slow(EmbeddedLog):
    """An append takes ten times as long as the timeout for a lost token."""

    def append(self, entries: Sequence[Entry]) -> None:
        time.sleep(0.1)
        super().append(entries)


def test_a_visit_that_takes_longer_than_the_timeout_for_a_lost_token_ends_all_the_same() -> None:
    faults, cluster = run(520, servers=2, lost=0.01, open_log=lambda folder: Slow(folder / "log.db"))
    assert faults == []
    assert {e.kind for e in cluster.events} == {"read", "local", "global"}


class Narrow(EmbeddedLog):
    """It says that its appends must be small."""

    largest = 680


class Strict(EmbeddedLog):
    """It refuses large appends, but nobody told it to say so: etcd with another limit than usual."""

    def append(self, entries: Sequence[Entry]) -> None:
        if sum(map(size_of, entries)) > Narrow.largest:
            raise TooLargeError("the request is too large")
        super().append(entries)


@pytest.mark.parametrize("kind", [Narrow, Strict])
@pytest.mark.parametrize("seed", range(530, 532))
def test_what_is_too_large_for_the_log_fails_and_nothing_waits_for_it(kind: type[EmbeddedLog], seed: int) -> None:
    faults, cluster = run(seed, servers=2, open_log=lambda folder: kind(folder / "log.db"))
    assert faults == []
    assert {e.kind for e in cluster.events} == {"read", "local", "global"}
    assert "OversizeError" in {error.kind for error in cluster.errors}


# -- mutants: each is a plausible mistake, and the judges must detect it -----------------------------------------------


class Swapping(SqliteDatabase):
    held: Entry | None = None

    def change(self, db: apsw.Connection, entry: Entry) -> None:
        if self.held is None and entry.seq % 2:
            self.held = entry
            return
        super().change(db, entry)
        if self.held is not None:
            super().change(db, self.held)
            self.held = None


class WholeRows(SqliteDatabase):
    """Updates that carry the whole row overwrite what local operations of another server wrote in other columns."""

    def change(self, db: apsw.Connection, entry: Entry) -> None:
        super().change(db, entry)
        if entry.operation == "praise":
            person = msgspec.json.decode(entry.arguments)["person"]
            db.execute("UPDATE people SET colour = 'none' WHERE id = ?", (person,))


class StatementVisit(SqliteVisit):
    """Captures statements, as the dissertation does (section 2.6)."""

    def execute(self, call: Call) -> tuple[bytes, bytes]:
        noted: list[tuple[str, Any]] = []

        def noting(connection: SqliteConnection) -> bytes:
            class Noting(SqliteCursor):
                def execute(self, sql: str, parameters: Any = ()) -> Self:
                    if not sql.lstrip().upper().startswith("SELECT"):
                        noted.append((sql, parameters))
                    return super().execute(sql, parameters)

            connection.cursor = lambda: Noting(connection)  # type: ignore[method-assign]
            return call.run(connection)

        reply, _ = super().execute(msgspec.structs.replace(call, run=noting))
        return reply, msgspec.msgpack.encode(noted) if noted else b""


class Statements(SqliteDatabase):
    visits = StatementVisit

    def change(self, db: apsw.Connection, entry: Entry) -> None:
        for sql, parameters in msgspec.msgpack.decode(entry.update):
            db.execute(sql, parameters)


def labelled(**classes: str) -> dict[str, Route]:
    known = board_routes()
    return known | {n: msgspec.structs.replace(known[n], classed=c) for n, c in classes.items()}  # type: ignore[arg-type]


def astray(route: Route, arguments: Any, servers: int, here: int) -> tuple[int, Kind]:
    server, kind = place(route, arguments, servers, here)
    return ((server + arguments.get("value", 0)) % servers if route.name == "note" else server), kind


MUTANTS: dict[str, dict[str, Any]] = {
    "an update is not applied": {"engine": engine(Skipping)},
    "updates are swapped": {"engine": engine(Swapping)},
    "updates are whole rows": {"engine": engine(WholeRows)},
    "updates are statements": {"engine": engine(Statements)},
    "a local operation goes to the wrong server": {"where": astray},
    "post, which is global, is labelled local": {"routing": labelled(post="local")},
    "praise, which is global, is labelled local": {"routing": labelled(praise="local")},
    "bid, which is local at times, is labelled local": {"routing": labelled(bid="local")},
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str) -> None:
    for seed in range(400, 406):
        faults, _ = run(seed, servers=3, lenient=True, **MUTANTS[name])
        if faults:
            return
    pytest.fail("no run noticed it")


# -- statement capture --------------------------------------------------------------------------------------------------


@contextmanager
def two(made: type[SqliteDatabase], folder: Path, schema: str) -> Iterator[tuple[SqliteDatabase, SqliteDatabase]]:
    databases = [made(folder / f"{made.__name__}-{n}.db", server=n, servers=2, schema=schema) for n in range(2)]
    try:
        yield databases[0], databases[1]
    finally:
        for each in databases:
            each.close()


@pytest.mark.parametrize(
    ("before", "statement"),
    [
        ("INSERT INTO tickets VALUES (1, 'mine')", "INSERT INTO prizes (id, label) SELECT id, label FROM tickets"),
        ("", "INSERT INTO prizes (id, label) VALUES (1, random())"),
        ("", "INSERT INTO prizes (id, label) VALUES (1, julianday('now'))"),
        ("", "INSERT INTO prizes (id, label) VALUES (1, hex(randomblob(8)))"),
    ],
    ids=["insert select", "random", "now", "randomblob"],
)
def test_row_images_are_right_where_statements_are_not(before: str, statement: str, tmp_path: Path) -> None:
    schema = (
        "CREATE TABLE tickets (id INTEGER PRIMARY KEY, label); CREATE TABLE prizes (id INTEGER PRIMARY KEY, label);"
    )

    def call(name: str, sql: str) -> Call:
        return Call(name, name, {}, lambda connection: b"%d" % connection.execute(sql).rowcount if sql else b"0")

    def prizes(database: SqliteDatabase) -> Any:
        read: Callable[[Any], bytes] = lambda c: msgspec.json.encode(c.execute("SELECT * FROM prizes").fetchall())  # noqa: E731
        return msgspec.json.decode(database.read(Call("", "", {}, read)).reply)

    same = {}
    for made in (SqliteDatabase, Statements):
        with two(made, tmp_path, schema) as (here, there):
            here.write(call("local", before))
            with here.visit() as visit:
                reply, update = visit.execute(call("global", statement))
                visit.commit([], None)  # type: ignore[arg-type]
            time.sleep(0.005)  # now() is later there
            there.apply(chained("", [Entry(1, 1, 0, 0, "global", "global", b"{}", reply, update)]), 1)
            same[made.__name__] = prizes(here) == prizes(there)
            assert len(prizes(here)) == 1
    assert same == {"SqliteDatabase": True, "Statements": False}
