"""Local updates in the log: nothing that was acknowledged is lost with a disk, and nothing that a client has seen."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from plait.bench.gyro.faults import board
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.identity import confirm
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import ReplacedError, StaleError
from plait.gyro.belt.records import DatabaseGoneError, LocalUpdate, OperationError
from plait.gyro.belt.replication import rebuild as rebuilding
from plait.gyro.belt.replication.rebuild import check_replication, initial, rebuild, store_initial
from plait.gyro.belt.replication.shipper import Shipper
from plait.gyro.belt.service.health import Health
from plait.kernel.errors import UsageError
from tests.gyro.belt.cluster import Cluster, Crash
from tests.gyro.belt.desk import Desk
from tests.gyro.belt.log_engines import Etcd
from tests.gyro.belt.processes import processes
from tests.gyro.belt.runs import GENERATED, disturbed, judge, run, work
from tests.gyro.belt.variants import ROUGH, needs_mariadb, needs_postgresql
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite, scratch
from tests.support.patience import PATIENCE

QUERIES = [f"SELECT * FROM {t} ORDER BY 1" for t in ("boards", "notes", "people", "tickets", "prizes", "bids")]
DONE = "SELECT position, request, operation, arguments, reply, seq FROM gyro_done ORDER BY position"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an etcd."""
    engine = Etcd(tmp_path_factory.mktemp("etcd"))
    yield engine.clients[0]
    engine.close()


@pytest.fixture
def same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """No gap between ids after a rebuild, so that one database generates the same ids."""
    monkeypatch.setattr(rebuilding, "GAP", 0)


@pytest.fixture(
    params=[
        Sqlite,
        pytest.param(Postgresql, marks=[pytest.mark.slow, needs_postgresql]),
        pytest.param(Mariadb, marks=[pytest.mark.slow, needs_mariadb]),
    ]
)
def desk(request: pytest.FixtureRequest) -> Iterator[Callable[..., Desk]]:
    folder = scratch()
    engine = request.param(folder, board.SCHEMA)
    made: list[Desk] = []

    def open_desk(**options: Any) -> Desk:
        made.append(Desk(folder, engine, **options))
        return made[-1]

    yield open_desk
    for each in made:
        each.close()
    engine.close()
    shutil.rmtree(folder, ignore_errors=True)


def rows(engine: Engine) -> list[Any]:
    return [engine.rows(0, query) for query in [*QUERIES, DONE]]


# -- the outbox ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("same_ids")
def test_the_log_gives_the_same_rows_and_replies(desk: Callable[..., Desk]) -> None:
    open_ = desk()
    open_.some()
    assert open_.shipper.ship() == 9
    before = rows(open_.engine)
    open_.rebuilt().close()
    assert rows(open_.engine) == before


@pytest.mark.parametrize("step", ["ship", "shipped"])
def test_a_crash_while_shipping_loses_and_repeats_nothing(step: str, desk: Callable[..., Desk]) -> None:
    def die(at: str) -> None:
        if at == step:
            raise Crash

    first = desk(step=die)
    first.some()
    with pytest.raises(Crash):
        first.shipper.ship()
    first.close()
    second = desk()
    second._count = 100
    second.write("note", owner=0, value=7)
    assert second.shipper.ship() == 10
    numbers = [u.number for u in second.log.shipped(0, 0)]
    assert numbers == sorted(set(numbers)), "each once, in order"
    second.shipper._remove(patient=True)
    assert second.database.outbox((), 100) == []
    assert second.database.shipped() == (10, second.log.stream(0).chain)


class Outside(SqliteDatabase):
    """Adds the update to the outbox after the transaction of its operation. The process may die in between."""

    def post(self, db: apsw.Connection, update: LocalUpdate) -> None:
        pass


def test_an_outbox_outside_of_the_transaction_loses_updates(tmp_path: Path) -> None:
    class Mutant(Sqlite):
        made = Outside

    desk = Desk(tmp_path, Mutant(tmp_path, board.SCHEMA))
    desk.write("note", owner=0, value=1)
    before = rows(desk.engine)
    desk.shipper.ship()
    desk.rebuilt().close()
    assert rows(desk.engine) != before
    desk.close()


def test_an_operation_that_changes_nothing_or_fails_ships_nothing(desk: Callable[..., Desk]) -> None:
    open_ = desk()
    open_.write("notes", owner=0)
    with pytest.raises(OperationError):
        open_.write("note", owner=None, value=object())
    assert open_.shipper.ship() == 0


def test_an_update_that_is_too_large_for_the_log_is_refused_before_it_happens(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Sqlite(tmp_path, board.SCHEMA))
    desk.database._shipping = 2000  # type: ignore[attr-defined]
    with pytest.raises(OperationError, match=r"too large for the log .*2,000 bytes"):
        desk.write("paint", person=0, colour="c" * 2000)
    assert desk.shipper.ship() == 0
    assert desk.engine.rows(0, "SELECT colour FROM people WHERE id = 0") == [("none",)]
    desk.close()


# -- what clients see ------------------------------------------------------------------------------------------------


def test_no_reply_shows_what_the_log_does_not_have(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Sqlite(tmp_path, board.SCHEMA))
    desk.shipper.start()
    call = functools.partial(desk.application.call)
    assert desk.node.write(call("a", "note", {"owner": 0, "value": 1})).wrote
    assert desk.log.stream(0).last == 1
    desk.log.down = True
    for _ in range(2):  # the second time, it is a repeated request: its reply waits, too
        with pytest.raises(DatabaseGoneError, match="the log does not answer"):
            desk.node.write(call("b", "note", {"owner": 0, "value": 2}))
    with pytest.raises(DatabaseGoneError, match="the log does not answer"):
        desk.node.read(call("c", "notes", {"owner": 0}))
    desk.log.down = False
    desk.shipper._wait = PATIENCE
    assert desk.node.write(call("b", "note", {"owner": 0, "value": 2})).repeated
    assert desk.log.stream(0).last == 2
    assert desk.node.read(call("c", "notes", {"owner": 0})).reply == b'" 1 2"'
    desk.node.stop()
    desk.close()


def test_in_the_background_a_reply_does_not_wait_and_may_be_lost(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Sqlite(tmp_path, board.SCHEMA), acknowledged=False)
    desk.shipper.start()
    desk.log.down = True
    desk.node.write(desk.application.call("a", "note", {"owner": 0, "value": 1}))
    desk.log.down = False
    database = desk.rebuilt()  # before the next attempt
    assert database.shipped()[0] in (0, 1)
    if database.shipped()[0] == 0:
        assert desk.engine.rows(0, "SELECT items FROM notes WHERE owner = 0") == [("",)]
        with pytest.raises(ReplacedError):
            desk.shipper.ship()
    desk.node.stop()
    desk.close()


def test_a_visit_ships_before_it_appends(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Sqlite(tmp_path, board.SCHEMA), acknowledged=False)
    desk.node.servers = 1
    desk.write("note", owner=0, value=1)
    desk.node.start()
    desk.node.submit(desk.application.call("p", "post", {"owner": 0, "board": 0, "value": 2})).result(timeout=20)
    (entry,) = desk.log.read(0)
    assert entry.shipped == desk.log.stream(0).last == 1
    desk.write("note", owner=0, value=3)
    desk.shipper.ship()
    assert [u.seq for u in desk.log.shipped(0, 0)] == [0, 1]
    desk.node.stop()
    desk.close()


# -- rebuilding ------------------------------------------------------------------------------------------------------


def test_generated_ids_are_not_used_again(desk: Callable[..., Desk]) -> None:
    """Not even ids of operations that were lost, or of rows that were deleted."""
    open_ = desk()
    used = [int(open_.write("draw", owner=0, label="a").reply) for _ in range(3)]
    open_.shipper.ship()
    used += [int(open_.write("draw", owner=0, label="lost").reply) for _ in range(3)]
    database = open_.rebuilt()
    made = int(database.write(open_.application.call("new", "draw", {"owner": 0, "label": "b"})).reply)
    assert made > max(used)
    assert made % 2 == 0
    found = [i for (i,) in open_.engine.rows(0, "SELECT id FROM tickets ORDER BY id")]
    assert found == [*used[:3], made]
    database.close()


def test_the_old_database_and_the_old_process_are_refused(tmp_path: Path) -> None:
    engine = Sqlite(tmp_path, board.SCHEMA)
    desk = Desk(tmp_path, engine)
    desk.some()
    desk.shipper.ship()
    shutil.copytree(tmp_path, tmp_path / "old")
    desk.write("note", owner=0, value=9)
    new = desk.rebuilt()
    assert confirm(0, new, desk.log) == 1
    with pytest.raises(ReplacedError, match="was rebuilt"):
        desk.shipper.ship()
    with pytest.raises(ReplacedError, match="was rebuilt"):
        desk.node.recover()
    old = SqliteDatabase(tmp_path / "old" / engine.file(0).name, server=0, servers=2, shipping=1 << 20)
    with pytest.raises(UsageError, match="was rebuilt since this database was used"):
        confirm(0, old, desk.log)
    for each in (new, old, desk):
        each.close()


def test_an_older_copy_of_a_database_is_refused(tmp_path: Path) -> None:
    engine = Sqlite(tmp_path, board.SCHEMA)
    desk = Desk(tmp_path, engine)
    desk.some()
    desk.shipper.ship()
    desk.shipper._remove(patient=True)
    shutil.copytree(tmp_path, tmp_path / "old")
    desk.write("note", owner=0, value=9)
    desk.shipper.ship()
    old = SqliteDatabase(tmp_path / "old" / engine.file(0).name, server=0, servers=2, shipping=1 << 20)
    with pytest.raises(UsageError, match="an older copy: the log has local updates that it does not have"):
        confirm(0, old, desk.log)
    assert confirm(0, desk.database, desk.log) == 0
    old.close()
    desk.close()


def test_a_copy_that_works_beside_the_original_stops_before_it_acknowledges(tmp_path: Path) -> None:
    """Both number their next update alike. Nevertheless the update of the original is not taken for that of the copy."""
    engine = Sqlite(tmp_path, board.SCHEMA)
    desk = Desk(tmp_path, engine)
    desk.some()
    desk.shipper.ship()
    desk.shipper._remove(patient=True)
    shutil.copytree(tmp_path, tmp_path / "copy")
    copy = SqliteDatabase(tmp_path / "copy" / engine.file(0).name, server=0, servers=2, shipping=1 << 20)
    stopped: list[str] = []
    twin = Shipper(0, confirm(0, copy, desk.log), copy, desk.log, wait=PATIENCE, stop=stopped.append)
    twin.start()
    desk.write("note", owner=0, value=9)
    desk.shipper.ship()
    with pytest.raises(DatabaseGoneError), twin.writing():
        copy.write(desk.application.call("of the copy", "note", {"owner": 0, "value": 8}))
    assert "another process runs with a copy of the database of server 0" in stopped[0]
    with pytest.raises(UsageError, match="an older copy"):
        confirm(0, copy, desk.log)
    desk.write("note", owner=0, value=10)
    assert desk.shipper.ship() == desk.log.stream(0).last
    assert "of the copy" not in {u.request for u in desk.log.shipped(0, 0)}
    copy.close()
    desk.close()


def test_an_older_log_is_noticed_while_the_server_works(tmp_path: Path) -> None:
    """Also if only local operations were performed since the copy was made."""
    desk = Desk(tmp_path, Sqlite(tmp_path, board.SCHEMA))
    desk.some()
    desk.shipper.ship()
    shutil.copytree(tmp_path, tmp_path / "old")
    desk.write("note", owner=0, value=9)
    desk.shipper.ship()
    newer = "the log is behind the server: it is an older copy"
    assert newer not in asyncio.run(Health(desk.node, lag=2).ready())["reasons"]
    old = desk.node.log = desk.shipper._log = EmbeddedLog(tmp_path / "old" / "log.db")
    assert newer in asyncio.run(Health(desk.node, lag=2).ready())["reasons"]
    desk.write("note", owner=0, value=10)
    with pytest.raises(StaleError, match="the log has 9 local updates of server 0, which has shipped 10"):
        desk.shipper.ship()
    old.close()
    desk.close()


def test_what_cannot_be_rebuilt_is_refused(tmp_path: Path) -> None:
    engine = Sqlite(tmp_path, board.SCHEMA)
    log = EmbeddedLog(tmp_path / "log.db")
    database = engine.open(0, 2, lambda _: None)
    check_replication(0, False, board.SCHEMA, database, log)
    with pytest.raises(UsageError, match=r"only in its own database.*would be lost"):
        rebuild(0, database, log)
    engine.shipping = log.largest
    with pytest.raises(UsageError, match="rows that are not in the log"):
        check_replication(0, True, board.SCHEMA, engine.open(0, 2, lambda _: None), log)
    (tmp_path / "b").mkdir()
    desk = Desk(tmp_path / "b", Sqlite(tmp_path / "b", board.SCHEMA))
    with pytest.raises(UsageError, match="is not empty"):
        rebuild(0, desk.database, desk.log)
    with pytest.raises(UsageError, match="cannot be switched off"):
        check_replication(0, False, board.SCHEMA, desk.database, desk.log)
    for each in (database, log, desk):
        each.close()


def test_the_initial_state_is_in_the_log_whatever_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "_PIECE", 10)
    log = EmbeddedLog(tmp_path / "log.db")
    assert store_initial(log, "CREATE TABLE t (ä TEXT);") == initial(log) == "CREATE TABLE t (ä TEXT);"
    assert store_initial(log, "another") == "CREATE TABLE t (ä TEXT);"
    log.close()


# -- runs ------------------------------------------------------------------------------------------------------------


def lose_disks(cluster: Cluster) -> None:
    """Three servers lose their disks. One of them only seems to have lost it, and goes on."""
    for number in range(3):
        time.sleep(0.1)
        cluster.lose(number % cluster.servers, zombie=number == 1)


@pytest.mark.slow
@pytest.mark.usefixtures("same_ids")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_runs_stay_serializable_when_disks_are_lost(seed: int) -> None:
    faults, cluster = run(seed, replicate="acknowledged", disturb=lose_disks, **(ROUGH if seed % 2 else {}))
    assert not faults
    assert cluster.lost_disks == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(Postgresql, marks=needs_postgresql), pytest.param(Mariadb, marks=needs_mariadb)]
)
@pytest.mark.usefixtures("same_ids")
def test_runs_on_other_dbms_stay_serializable_when_disks_are_lost(kind: type[Engine]) -> None:
    faults, cluster = run(4, engine=kind, without=GENERATED, replicate="acknowledged", disturb=lose_disks)
    assert not faults
    assert cluster.lost_disks == 3


class Hasty(Shipper):
    """Acknowledges before the log has the update."""

    def settle(self) -> None:
        pass


@pytest.mark.slow
@pytest.mark.usefixtures("same_ids")
def test_the_judges_see_an_acknowledgement_before_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(EmbeddedLog):
        def ship(self, server: int, updates: object) -> None:
            time.sleep(0.05)
            super().ship(server, updates)  # type: ignore[arg-type]

    monkeypatch.setattr(Shipper, "settle", Hasty.settle)
    faults, _ = run(
        2, replicate="acknowledged", disturb=lose_disks, lenient=True, open_log=lambda folder: Slow(folder / "log.db")
    )
    assert faults


@pytest.mark.slow
@pytest.mark.parametrize("postgresql", [False, pytest.param(True, marks=needs_postgresql)])
@pytest.mark.usefixtures("same_ids")
def test_a_process_that_is_killed_and_loses_its_folder_is_rebuilt(
    postgresql: bool,
    etcd: str,
) -> None:
    from plait.cli.gyro_serve import _rebuild

    options: dict[str, Any] = {"log": f"etcd:{etcd}"} if postgresql else {}
    with processes(servers=3, postgresql=postgresql, replicate="acknowledged", **options) as running:

        def lose(_cluster: object) -> None:
            for number in (1, 2):
                time.sleep(0.5)
                with running._paused():
                    running.supervisor.kill(number)
                    if postgresql:
                        running.engine.lose(number)
                        running.settings.dsns[number] = running.engine.dsn(number)  # type: ignore[union-attr]
                        running.settings.save()
                    else:
                        shutil.rmtree(Path(running.settings.folder) / f"server-{number}")
                    _rebuild(number, running.settings, lambda _: None)
                    running.supervisor.spawn(number, dict(os.environ))

        with disturbed(running, lose):  # type: ignore[arg-type]
            work(running, 7, without=GENERATED if postgresql else set())  # type: ignore[arg-type]
        running.settle()
        assert judge(running) == []  # type: ignore[arg-type]
