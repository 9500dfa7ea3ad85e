"""A log or a database that was lost, swapped, copied or restored from an older copy is refused, and nothing else is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from plait.gyro.belt.databases.outbox import Outbox
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.identity import announce, confirm, overtaken
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.records import Call, Entry, chained
from plait.gyro.belt.server import _option
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.kernel.errors import UsageError
from tests.gyro.belt.log_engines import Etcd
from tests.gyro.belt.processes import Processes, processes
from tests.gyro.belt.variants import needs_postgresql
from tests.support.engines import Engine, Postgresql, Sqlite, scratch
from tests.support.patience import PATIENCE, until

pytestmark = pytest.mark.slow
CHANGE = "UPDATE t SET v = ? WHERE id = 1"
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)"


@pytest.fixture(scope="module")
def history() -> Iterator[Path]:
    """A folder with what a cluster had at two times: `early`, and `late` after further global and local operations."""
    folder = scratch()
    with processes(servers=2) as running:
        for name in ("early", "late"):
            _work(running, name)
            running.settle()
            with running._paused():
                running.supervisor.stop()
                shutil.copytree(running.settings.folder, folder / name)
                running.supervisor = Supervisor(running.settings)
                running.supervisor.start(wait=PATIENCE)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _work(running: Processes, name: str) -> None:
    for number in range(4):
        running.call("post", {"owner": 1, "board": number % 3, "value": number}, request=f"{name} {number}")
        running.call("note", {"owner": number, "value": number}, request=f"{name} note {number}")


def start(folder: Path, number: int) -> subprocess.CompletedProcess[str]:
    """Start one server of a cluster whose data is in a folder. It ends only if it refuses."""
    file = folder / "settings.json"
    settings = msgspec.json.decode(file.read_bytes(), type=Settings)
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(settings, folder=str(folder))))
    command = [sys.executable, "-m", "plait.gyro.belt.server", str(file), str(number)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def lose_a_database(late: Path, early: Path) -> None:
    shutil.rmtree(late / "server-1")


def lose_the_log(late: Path, early: Path) -> None:
    for file in late.glob("log.db*"):
        file.unlink()


def restore_an_older_log(late: Path, early: Path) -> None:
    lose_the_log(late, early)
    for file in early.glob("log.db*"):
        shutil.copy(file, late / file.name)


def go_on_from_an_older_log(late: Path, early: Path) -> None:
    """The log has as many updates as the server, but the last ones are others."""
    restore_an_older_log(late, early)
    log = EmbeddedLog(late / "log.db")
    fence = log.fence()
    entries = [
        Entry(fence.last + n, fence.epoch, fence.turn, 0, f"other {n}", "post", b"{}", b"null", b"x")
        for n in range(1, fence.last + 1)
    ]
    log.append(chained(fence.chain, entries))
    log.close()


def swap_databases(late: Path, early: Path) -> None:
    (late / "server-0").rename(late / "other")
    (late / "server-1").rename(late / "server-0")
    (late / "other").rename(late / "server-1")


def copy_a_database(late: Path, early: Path) -> None:
    lose_a_database(late, early)
    shutil.copytree(late / "server-0", late / "server-1")


def restore_an_older_database(late: Path, early: Path) -> None:
    lose_a_database(late, early)
    shutil.copytree(early / "server-1", late / "server-1")


def begin_anew(late: Path, early: Path) -> None:
    """A new cluster in the same folder, with the database of the old one."""
    lose_the_log(late, early)
    shutil.rmtree(late / "server-0")


TAMPERED: list[tuple[Callable[[Path, Path], None], str]] = [
    (lose_a_database, "the database of server 1 is empty, but the log knows another one"),
    (lose_the_log, "the log belongs to another cluster than the database of server 1"),
    (restore_an_older_log, "the log is behind"),
    (go_on_from_an_older_log, "the log and server 1 have different histories"),
    (swap_databases, "the database of server 1 is that of server 0"),
    (copy_a_database, "the database of server 1 is that of server 0"),
    (restore_an_older_database, "the database of server 1 is an older copy"),
    (begin_anew, "the log belongs to another cluster than the database of server 1"),
]


@pytest.mark.parametrize(("tamper", "said"), TAMPERED, ids=[tamper.__name__ for tamper, _ in TAMPERED])
def test_what_does_not_belong_together_is_refused(
    tamper: Callable[[Path, Path], None], said: str, history: Path, tmp_path: Path
) -> None:
    shutil.copytree(history / "late", tmp_path / "data")
    tamper(tmp_path / "data", history / "early")
    for _ in range(2 if tamper is lose_a_database else 1):  # the second attempt begins with what the first one has left
        done = start(tmp_path / "data", 1)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
        assert "hint:" in done.stderr


def test_a_copy_of_everything_goes_on(history: Path, tmp_path: Path) -> None:
    shutil.copytree(history / "early", tmp_path / "data")
    file = tmp_path / "data" / "settings.json"
    settings = msgspec.json.decode(file.read_bytes(), type=Settings)
    supervisor = Supervisor(msgspec.structs.replace(settings, folder=str(tmp_path / "data")))
    supervisor.start(wait=PATIENCE)
    supervisor.stop()


def test_starts_are_counted_and_only_the_last_one_goes_on(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log.db")
    databases = [SqliteDatabase(tmp_path / f"{n}.db", server=n, schema=TABLE) for n in range(2)]
    for number, database in enumerate(databases):
        confirm(number, database, log)
    assert [announce(0, databases[0], log) for _ in range(20)] == list(range(1, 21))
    assert announce(1, databases[1], log) == 1
    for database in databases:
        database.close()
    assert [overtaken(0, start, log) for start in (1, 19, 20)] == [True, True, False]
    assert not overtaken(1, 1, log)
    log.close()


class Copies:
    """Server 0 without replication. Its database can be replaced by an older copy."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.log, self.engine = EmbeddedLog(folder / "log.db"), engine
        self.log.reissue(0)
        self.database = self._open()
        self._count = 0

    def _open(self) -> Outbox:
        return self.engine.open(0, 2, lambda _: None)

    def start(self, *, older: bool = False) -> None:
        """A process opens the database and starts; the one before it has ended."""
        self.database.close()
        self.database = self._open()
        confirm(0, self.database, self.log, older=older)
        announce(0, self.database, self.log)

    def call(self) -> Call:
        self._count += 1
        name, value = f"r{self._count}", f"v{self._count}"
        return Call(name, "act", {}, lambda db: b"%d" % db.execute(CHANGE, (value,)).rowcount)

    def local(self) -> None:
        self.database.write(self.call())

    def everywhere(self) -> None:
        call = self.call()
        with self.database.visit() as visit:
            reply, update = visit.execute(call)
            seq, epoch = visit.seq + 1, self.log.fence().epoch
            shipped = self.database.written()
            made = Entry(seq, epoch, 0, 0, call.request, "act", b"{}", reply, update, shipped=shipped)
            visit.commit(chained(visit.chain, [made]), self.log)

    def copy(self, folder: Path) -> None:
        self.database.close()
        folder.mkdir()
        for file in self.engine.file(0).parent.glob("server-0.db*"):  # type: ignore[attr-defined]
            shutil.copy(file, folder / file.name)
        self.database = self._open()

    def restore(self, folder: Path) -> None:
        self.database.close()
        self.engine.lose(0)
        for file in folder.iterdir():
            shutil.copy(file, self.engine.file(0).parent / file.name)  # type: ignore[attr-defined]
        self.database = self._open()


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Copies]:
    made = Copies(tmp_path, Sqlite(tmp_path, f"{TABLE}; INSERT INTO t VALUES (1, '')"))
    made.start()
    yield made
    made.database.close()
    made.log.close()


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (["start"], True),
        (["local", "start"], True),
        (["local", "everywhere"], True),
        (["everywhere", "local", "everywhere"], True),
        (["everywhere"], False),
        ([], False),
    ],
)
def test_an_older_copy_without_replication_is_noticed(
    since: list[str], said: bool, copies: Copies, tmp_path: Path
) -> None:
    """Global updates since the copy are in the log, so without a local operation and a start, nothing is lost."""
    for name in ("local", "everywhere", "local"):
        getattr(copies, name)()
    copies.copy(tmp_path / "copy")
    for name in since:
        getattr(copies, name)()
    copies.restore(tmp_path / "copy")
    if said:
        for _ in range(2):
            with pytest.raises(UsageError, match="is an older copy") as error:
                copies.start()
            assert "--older-copy 0" in (error.value.spelled(_option)[1] or "")
        copies.start(older=True)
    for _ in range(10):
        copies.database.apply(copies.log.read(copies.database.applied()), 0)
        copies.start()


class StoppedError(Exception):
    """The process has ended."""


@pytest.mark.parametrize("kind", [Sqlite, pytest.param(Postgresql, marks=needs_postgresql)])
def test_no_crash_looks_like_an_older_copy(kind: type[Engine]) -> None:
    """A process ends after its start is in the database, or between an append and the commit."""
    folder = scratch()
    copies = Copies(folder, kind(folder, f"{TABLE}; INSERT INTO t VALUES (1, '')"))

    def stop(*_: object) -> None:
        raise StoppedError

    def stop_after_append(step: str) -> None:
        if step == "appended":
            raise StoppedError

    try:
        copies.start()
        for _ in range(6):
            copies.local()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(copies.log, "agree", stop)
                with pytest.raises(StoppedError):
                    announce(0, copies.database, copies.log)
            copies.start()
            copies.local()
            copies.database.close()
            copies.database = copies.engine.open(0, 2, stop_after_append)
            with pytest.raises(StoppedError):
                copies.everywhere()
            copies.start()
            copies.database.settle(copies.log)
            copies.database.apply(copies.log.read(copies.database.applied()), 0)
    finally:
        copies.database.close()
        copies.log.close()
        copies.engine.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_clone_of_a_server_is_noticed(tmp_path: Path) -> None:
    """Two processes with copies of one database, and one log: the one that started first stops."""
    etcd = Etcd(tmp_path)
    try:
        with processes(servers=1, log=etcd.where, replicate="none") as running:
            _work(running, "before")
            shutil.copytree(running.settings.folder, tmp_path / "clone")
            (port,) = free_ports(1)
            clone = Supervisor(
                msgspec.structs.replace(
                    running.settings, folder=str(tmp_path / "clone"), urls=[f"http://127.0.0.1:{port}"]
                )
            )
            try:
                clone.start(wait=PATIENCE)
                until(lambda: running.supervisor._processes[0].poll() == 2, "the first process has stopped")
                assert clone._processes[0].poll() is None
            finally:
                clone.stop()
    finally:
        etcd.close()
