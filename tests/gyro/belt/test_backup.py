"""Backups are cuts: restored clusters have a state that could have been. Damaged files are refused."""

from __future__ import annotations

import os
import random
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plait.cli.gyro_backup import backup, restore
from plait.gyro.analysis import analyze
from plait.gyro.belt.client import Client
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.records import Call, Entry, LocalUpdate, chained
from plait.gyro.belt.replication import backup as backups
from plait.gyro.belt.replication.backup import check, frames, load, save
from plait.gyro.belt.replication.rebuild import build, store_initial
from plait.gyro.belt.routing import place, routes
from plait.gyro.belt.settings import DIALECTS, Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.kernel.errors import UsageError
from tests.gyro.belt import bank
from tests.gyro.belt.log_engines import Etcd
from tests.gyro.belt.processes import ServerFiles
from tests.gyro.belt.variants import needs_mariadb, needs_postgresql
from tests.support.engines import Mariadb, Postgresql, scratch
from tests.support.patience import PATIENCE, until

OWN = "SELECT coalesce(sum(balance), 0) FROM accounts WHERE owner % {servers} = {server}"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an etcd."""
    engine = Etcd(tmp_path_factory.mktemp("etcd"))
    yield engine.clients[0]
    engine.close()


def history(folder: Path) -> EmbeddedLog:
    """Server 0 executes a local, a global and a local operation, then is rebuilt and executes one of each."""
    database = SqliteDatabase(folder / "first.db", servers=2, schema=bank.SCHEMA, shipping=1 << 20)
    log = EmbeddedLog(folder / "log.db")
    store_initial(log, bank.SCHEMA)
    log.agree("replication", "on")
    log.agree("identity", "the old cluster")
    log.reissue(0)

    def local(name: str, incarnation: int) -> None:
        arguments = {"owner": 0, "amount": 10}
        database.write(Call(name, "move", arguments, lambda db: msgspec.json.encode(bank.move(db, **arguments))))
        stream = log.stream(0)
        (found,) = database.outbox((), 2)
        named = msgspec.structs.replace(found, position=stream.last + 1, incarnation=incarnation)
        shipped = chained(stream.chain, [named])
        log.ship(0, shipped)
        database.forget(shipped, patient=True)

    def everywhere(name: str, incarnation: int) -> None:
        arguments = {"owner": 0, "amount": 3}
        call = Call(name, "give", arguments, lambda db: msgspec.json.encode(bank.give(db, **arguments)))
        with database.visit() as visit:
            reply, update = visit.execute(call)
            made = Entry(
                visit.seq + 1, log.fence().epoch, 0, 0, name, "give", b"{}", reply, update,
                incarnation=incarnation, shipped=log.stream(0).last,
            )  # fmt: skip
            visit.commit(chained(visit.chain, [made]), log)

    local("a", 0)
    everywhere("b", 0)
    local("c", 0)
    assert log.replace(0, 0) == 1
    local("d", 1)
    everywhere("e", 1)
    local("f", 1)
    database.close()
    return log


def totals(folder: Path, log: Log, servers: int = 2) -> int:
    """The sum of all money, in databases that are built from a log."""
    total = 0
    for server in range(servers):
        file = folder / f"built-{server}.db"
        database = SqliteDatabase(file, server=server, servers=servers, schema=bank.SCHEMA, shipping=1 << 20)
        build(server, database, log)
        with database._reader() as db:
            ((own,),) = db.execute(OWN.format(servers=servers, server=server))
            ((pool,),) = db.execute("SELECT balance FROM pool")
        total += own + (pool if server == 0 else 0)
        database.close()
    return total


def test_a_restored_log_has_the_same_history_and_another_identity(tmp_path: Path) -> None:
    log = history(tmp_path)
    made = save(frames(log, 2, "sqlite", "background"), tmp_path / "file")
    assert made.updates == (2, 4)
    assert made.schema == bank.SCHEMA
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    (tmp_path / "new").mkdir()
    new = EmbeddedLog(tmp_path / "new" / "log.db")
    load(tmp_path / "file", check(tmp_path / "file"), new)
    assert new.read(0) == log.read(0)
    assert new.shipped(0, 0) == log.shipped(0, 0)
    assert new.stream(0) == log.stream(0)
    assert new.fence().chain == log.fence().chain
    assert new.fence().incarnations == {0: 1}
    assert totals(tmp_path / "new", new) == bank.TOTAL
    assert new.agreed("identity") not in (None, "the old cluster")
    with pytest.raises(UsageError, match="the log is not new"):
        load(tmp_path / "file", made, new)
    with pytest.raises(UsageError, match="exists already"):
        save(frames(log, 2, "sqlite", "background"), tmp_path / "file")


@pytest.mark.slow
def test_every_beginning_of_a_backup_is_a_consistent_state(tmp_path: Path) -> None:
    """The sum is the same after each update of the file: each comes after those that it depends on."""
    updates = list(backups.cut(history(tmp_path), 2))
    assert [u.request for u in updates] == list("abcdef")
    for end in range(len(updates) + 1):
        folder = tmp_path / str(end)
        folder.mkdir()
        assert _sum_of(folder, updates[:end]) == bank.TOTAL


@pytest.mark.parametrize("kept", ["b", "ac"])
def test_a_cut_that_is_not_closed_is_refused_and_its_sum_is_wrong(kept: str, tmp_path: Path) -> None:
    """Without the local update before a global one, or without the global update before a local one."""
    updates = [u for u in backups.cut(history(tmp_path), 2) if u.request in kept]

    def mutant(_log: Log, _servers: int) -> Iterator[Entry | LocalUpdate]:
        yield from updates

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backups, "cut", mutant)
        made = b"".join(frames(EmbeddedLog(tmp_path / "log.db"), 2, "sqlite", "background"))
    (tmp_path / "file").write_bytes(made)
    with pytest.raises(UsageError, match="lacks an update before it"):
        check(tmp_path / "file")
    (tmp_path / "built").mkdir()
    assert _sum_of(tmp_path / "built", updates) != bank.TOTAL


def _sum_of(folder: Path, updates: list[Entry | LocalUpdate]) -> int:
    """The sum after some updates, whether or not they are a cut."""
    log = EmbeddedLog(folder / "log.db")
    log.agree("replication", "on")
    entries = [msgspec.structs.replace(u, seq=n) for n, u in enumerate((u for u in updates if isinstance(u, Entry)), 1)]
    local = [
        msgspec.structs.replace(u, position=n, seq=min(u.seq, len(entries)))
        for n, u in enumerate((u for u in updates if isinstance(u, LocalUpdate)), 1)
    ]
    same = [msgspec.structs.replace(u, incarnation=0) for u in entries]
    if same:
        log.append(chained("", same))
    if local:
        log.ship(0, chained("", [msgspec.structs.replace(u, incarnation=0) for u in local]))
    return totals(folder, log)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    save(frames(history(tmp_path), 2, "sqlite", "background"), file)
    whole = file.read_bytes()
    generator = random.Random(1)
    damaged = [whole[: generator.randrange(len(whole))] for _ in range(30)]
    damaged += [whole + b"x", b"", b"PLAIT-GYRO-BACKUP 1\n"]
    for _ in range(60):
        at = generator.randrange(len(whole))
        damaged.append(whole[:at] + bytes([whole[at] ^ (1 << generator.randrange(8))]) + whole[at + 1 :])
    for number, content in enumerate(damaged):
        copy = tmp_path / f"copy{number}"
        copy.write_bytes(content)
        with pytest.raises(UsageError):
            check(copy)
    (tmp_path / "later").write_bytes(whole.replace(b"BACKUP 1", b"BACKUP 2", 1))
    with pytest.raises(UsageError, match="has the format 2"):
        check(tmp_path / "later")
    with pytest.raises(UsageError, match="No such file"):
        check(tmp_path / "missing")


def test_a_backup_that_fails_leaves_no_file(tmp_path: Path) -> None:
    whole = list(frames(history(tmp_path), 2, "sqlite", "background"))
    with pytest.raises(UsageError, match="its end is missing"):
        save(whole[:-1], tmp_path / "file")
    with pytest.raises(UsageError, match="No such file or directory"):
        save(whole, tmp_path / "no" / "file")
    assert not list(tmp_path.glob("*file*"))


def test_without_replication_there_is_no_backup(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log.db")
    with pytest.raises(UsageError, match="does not have the local updates"):
        list(frames(log, 2, "sqlite", "none"))
    with pytest.raises(UsageError, match="has no servers"):
        backup(tmp_path / "file", str(tmp_path))
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:9") as error:
        backup(tmp_path / "file", "http://127.0.0.1:9")
    assert error.value.hint == "give the URL of one server"


# -- real processes, under load --------------------------------------------------------------------------------------


class Load:
    """Clients that move money until they are told to stop."""

    def __init__(self, settings: Settings) -> None:
        self.count, self._stop, self.failures = 0, False, list[BaseException]()
        self._settings = settings
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(4)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join(timeout=PATIENCE)

    def _work(self, number: int) -> None:
        generator, client = random.Random(number), Client(self._settings.urls, patience=PATIENCE, timeout=PATIENCE)
        try:
            while not self._stop:
                name = generator.choice(["move", "move", "give"])
                arguments = {"owner": generator.randrange(bank.OWNERS), "amount": generator.randrange(1, 9)}
                server, _ = place(self._settings.routes[name], arguments, self._settings.servers, 0)
                client.send(name, arguments, request=f"{number} {self.count}", at=server)
                self.count += 1
        except BaseException as error:
            self.failures.append(error)
        finally:
            client.close()

    def wait(self, more: int) -> None:
        goal = self.count + more
        until(lambda: self.count >= goal or bool(self.failures), "clients work")
        if self.failures:
            raise self.failures[0]


def restored_sum(settings: Settings, rows: Callable[[int, str], list[Any]]) -> tuple[int, int]:
    """The sum of all money, and the pool, in the databases of a cluster."""
    own = sum(int(rows(n, OWN.format(servers=settings.servers, server=n))[0][0]) for n in range(settings.servers))
    pools = {int(rows(n, "SELECT balance FROM pool")[0][0]) for n in range(settings.servers)}
    (pool,) = pools
    return own + pool, pool


@pytest.mark.slow
@pytest.mark.parametrize(
    "db",
    ["sqlite", pytest.param("postgresql", marks=needs_postgresql), pytest.param("mariadb", marks=needs_mariadb)],
)
def test_a_backup_under_load_is_restored_with_the_same_sum(
    db: Any,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With PostgreSQL, also with etcd as the log, and a new cluster that goes on."""
    folder = scratch()
    kinds: dict[str, Any] = {"sqlite": ServerFiles, "postgresql": Postgresql, "mariadb": Mariadb}
    engine = kinds[db](folder, bank.SCHEMA)
    started = db != "sqlite"
    url = request.getfixturevalue("etcd") if db == "postgresql" and shutil.which("etcd") else ""
    settings = Settings(
        application=str(Path(bank.__file__)),
        routes=routes(analyze(Path(bank.__file__), dialect=DIALECTS[db])),
        schema=bank.SCHEMA if db == "sqlite" else engine.schema,
        urls=[f"http://127.0.0.1:{port}" for port in free_ports(2)],
        folder=str(folder),
        secret=f"backup {os.getpid()}",
        db=db,
        dsns=[engine.dsn(n) for n in range(2)] if started else [],
        log=f"etcd:{url}" if url else "embedded",
        replicate="background",
        idle=0.01,
        lost=1.0,
    )
    assert {r.name: r.classed for r in settings.routes.values()}["move"] == "local"
    monkeypatch.setenv("PLAIT_GYRO_SECRET", settings.secret)
    supervisor = Supervisor(settings)
    supervisor.start(wait=PATIENCE)
    files = [tmp_path / name for name in ("one", "two", "three")]
    try:
        with Load(settings) as clients:
            for number, file in enumerate(files):
                clients.wait(15)
                backup(file, settings.urls[1] if number == 1 else str(folder))
            clients.wait(15)
    finally:
        supervisor.stop()
    sizes = [check(file).updates for file in files]
    assert sizes == sorted(sizes)
    assert min(sizes[0]) > 0
    monkeypatch.delenv("PLAIT_GYRO_SECRET")
    for number, file in enumerate(files):
        new = folder / f"new-{number}"
        if started:
            for server in range(2):
                engine.lose(server)
        dsns = [engine.dsn(n) for n in range(2)] if started else []
        restore(file, folder=new, log=settings.log, dsn=tuple(dsns))
        again = msgspec.structs.replace(settings, dsns=dsns)
        total, pool = restored_sum(settings, engine.rows if started else ServerFiles(new, "").rows)
        assert total == bank.TOTAL
        assert pool > 0
        if number == len(files) - 1:
            _goes_on(new, again)
    engine.close()
    shutil.rmtree(folder, ignore_errors=True)


def _goes_on(folder: Path, settings: Settings) -> None:
    """The new cluster executes operations; a database of the old one is refused."""
    secret = (folder / "secret").read_text(encoding="ascii")
    new = msgspec.structs.replace(settings, folder=str(folder), secret=secret)
    supervisor = Supervisor(new)
    supervisor.start(wait=PATIENCE)
    try:
        client = Client(new.urls, patience=PATIENCE, timeout=PATIENCE)
        for _ in range(3):
            client.call("give", owner=1, amount=1)
            client.call("move", owner=1, amount=1)
        client.close()
    finally:
        supervisor.stop()
    if not new.dsns:
        shutil.copy(Path(settings.folder) / "server-1" / "app.db", folder / "server-1" / "app.db")
        for file in (folder / "server-1").glob("app.db-*"):
            file.unlink()
        with pytest.raises(UsageError, match="does not start"):
            Supervisor(new, only=[1]).start(wait=PATIENCE)
