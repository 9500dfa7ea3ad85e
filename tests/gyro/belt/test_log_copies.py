"""Engines that were restored from an older copy, or lost: a server refuses them before it answers a request."""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.identity import confirm
from plait.gyro.belt.logs import log as logs
from plait.gyro.belt.logs import nats as nats_log
from plait.gyro.belt.logs.address import address
from plait.gyro.belt.logs.etcd import EtcdLog
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.logs.nats import NatsLog
from plait.gyro.belt.records import Call, Entry, chained
from plait.gyro.belt.replication.shipper import Shipper
from plait.kernel.errors import UsageError
from tests.gyro.belt.log_engines import Etcd, Nats, need
from tests.support.patience import PATIENCE, until

pytestmark = pytest.mark.slow
SCHEMA = "CREATE TABLE items (id INTEGER PRIMARY KEY, label)"


class Server:
    """A database that applies what the log has."""

    def __init__(self, folder: Path) -> None:
        self.database = SqliteDatabase(folder / "app.db", server=0, servers=2, schema=SCHEMA)

    def work(self, log: Log, count: int, name: str) -> None:
        """Global operations, and an epoch before each."""
        confirm(0, self.database, log)
        for number in range(count):
            append(log, f"{name} {number}")
            self.database.apply(log.read(self.database.applied()), 1)


def append(log: Log, request: str) -> None:
    epoch = log.reissue(log.fence().epoch)
    assert epoch is not None
    fence = log.fence()
    log.append(chained(fence.chain, [Entry(fence.last + 1, epoch, 0, 1, request, "post", b"{}", b"null", b"")]))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.database.close()


def restored(etcd: Etcd, folder: Path, snapshot: Path) -> None:
    """Restore a snapshot into the folder of a stopped etcd, and start it."""
    etcd.processes[0].kill()
    shutil.rmtree(etcd.folders[0])
    command = [need("etcdctl", "etcd-client"), "snapshot", "restore", str(snapshot), "--data-dir", str(etcd.folders[0])]
    command += ["--name", "m0", "--initial-cluster", f"m0={etcd.peers[0]}"]
    command += ["--initial-advertise-peer-urls", etcd.peers[0]]
    subprocess.run(command, check=True, capture_output=True, env={"ETCDCTL_API": "3"}, timeout=PATIENCE)
    etcd.processes[0].start()
    etcd.wait()


def refused(open_log: Callable[[], Log], server: Server, said: str) -> None:
    def start() -> None:
        log = open_log()
        try:
            confirm(0, server.database, log)
        finally:
            log.close()

    for _ in range(2):  # a second attempt is refused, too
        with pytest.raises(UsageError, match=said) as error:
            start()
        assert error.value.hint


def test_a_snapshot_of_etcd_that_was_restored_is_refused(server: Server, tmp_path: Path) -> None:
    etcd = Etcd(tmp_path)
    try:
        open_log: Callable[[], Log] = lambda: EtcdLog(address(etcd.where), "x")  # noqa: E731
        log = open_log()
        server.work(log, 3, "early")
        etcd.control("snapshot", "save", str(tmp_path / "snapshot"))
        server.work(log, 3, "late")
        restored(etcd, tmp_path, tmp_path / "snapshot")
        refused(open_log, server, "the log is behind")
        for number in range(4):  # another server goes on with it
            append(log, f"other {number}")
        log.close()
        refused(open_log, server, "the log and server 0 have different histories")
        etcd.processes[0].kill()
        shutil.rmtree(etcd.folders[0])
        etcd.processes[0].start()
        etcd.wait()
        refused(open_log, server, "the log belongs to another cluster")
    finally:
        etcd.close()


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Etcd, Nats]]:
    monkeypatch.setattr(nats_log, "_PATIENCE", 0.5)
    etcd = Etcd(tmp_path)
    try:
        nats = Nats(tmp_path)
        try:
            yield etcd, nats
        finally:
            nats.close()
    finally:
        etcd.close()


def opener(engines: tuple[Etcd, Nats]) -> Callable[[], Log]:
    name = uuid.uuid4().hex
    return lambda: NatsLog(address(engines[1].where), address(engines[0].where), name)


def copy(nats: Nats, source: Path, target: Path) -> None:
    """Exchange the files of NATS while it is stopped."""
    nats.processes[0].kill()
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    nats.processes[0].start()
    nats.wait()


def test_an_older_copy_of_a_stream_is_refused(server: Server, engines: tuple[Etcd, Nats], tmp_path: Path) -> None:
    open_log, data = opener(engines), tmp_path / "nats-0"
    log = open_log()
    server.work(log, 3, "early")
    copy(engines[1], data, tmp_path / "copy")
    server.work(log, 3, "late")
    log.close()
    copy(engines[1], tmp_path / "copy", data)
    refused(open_log, server, "the stream .* is behind")


def test_a_stream_that_was_deleted_is_not_created_again(
    server: Server, engines: tuple[Etcd, Nats], tmp_path: Path
) -> None:
    open_log, data = opener(engines), tmp_path / "nats-0"
    log = open_log()
    server.work(log, 2, "early")
    log.close()
    (tmp_path / "empty").mkdir()
    copy(engines[1], tmp_path / "empty", data)
    refused(open_log, server, "the stream .* is missing in NATS")


def test_a_copy_of_a_stream_that_went_on_is_refused(server: Server, engines: tuple[Etcd, Nats], tmp_path: Path) -> None:
    """Without a new epoch, only the database of a server knows what is missing."""
    open_log, data = opener(engines), tmp_path / "nats-0"
    log = open_log()
    server.work(log, 2, "early")
    copy(engines[1], data, tmp_path / "copy")
    fence = log.fence()
    made = [Entry(fence.last + 1 + n, fence.epoch, 0, 1, f"late {n}", "post", b"{}", b"null", b"") for n in range(2)]
    log.append(chained(fence.chain, made))
    server.database.apply(log.read(2), 1)
    log.close()
    copy(engines[1], tmp_path / "copy", data)
    refused(open_log, server, "the log is behind")
    other = open_log()
    for number in range(3):
        append(other, f"other {number}")
    other.close()
    refused(open_log, server, "the log and server 0 have different histories")


def test_an_older_copy_of_the_etcd_of_nats_is_refused(
    server: Server, engines: tuple[Etcd, Nats], tmp_path: Path
) -> None:
    open_log = opener(engines)
    log = open_log()
    server.work(log, 2, "early")
    engines[0].control("snapshot", "save", str(tmp_path / "snapshot"))
    server.work(log, 2, "late")
    log.close()
    restored(engines[0], tmp_path, tmp_path / "snapshot")
    refused(open_log, server, "which etcd does not know: etcd is behind")


def test_a_new_etcd_is_another_cluster(server: Server, engines: tuple[Etcd, Nats]) -> None:
    open_log = opener(engines)
    log = open_log()
    server.work(log, 2, "early")
    log.close()
    etcd = engines[0]
    etcd.processes[0].kill()
    shutil.rmtree(etcd.folders[0])
    etcd.processes[0].start()
    etcd.wait()
    refused(open_log, server, "the log belongs to another cluster")


def test_a_shipper_stops_if_its_stream_was_restored(
    engines: tuple[Etcd, Nats], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer may be old for a moment. If the records do not come back, the server stops, and does not start again."""
    monkeypatch.setattr(logs, "STALE", 0.5)
    open_log, data = opener(engines), tmp_path / "nats-0"
    log = open_log()
    database = SqliteDatabase(tmp_path / "app.db", schema=SCHEMA, shipping=log.largest)
    stopped: list[str] = []
    confirm(0, database, log)
    shipper = Shipper(0, 0, database, log, wait=PATIENCE, stop=stopped.append)
    try:
        shipper.start()
        for number in range(1, 4):
            with shipper.writing():
                database.write(Call(f"r{number}", "add", {}, insert(number)))
            if number == 1:
                shipper._remove(patient=True)
                copy(engines[1], data, tmp_path / "copy")
        shipper._remove(patient=True)
        copy(engines[1], tmp_path / "copy", data)
        database.write(Call("r4", "add", {}, insert(4)))
        shipper._written()
        until(lambda: bool(stopped), "the shipper has stopped")
        (said,) = stopped
        assert re.search(r"the stream \S+ is behind: record \d+ is missing, for more than 0.5 s: it was restored", said)
        assert "hint: restore a newer copy" in said
        shipper.stop()
        log.close()
        log = open_log()
        with pytest.raises(UsageError, match="it has 1 local updates of server 0, which has shipped 3"):
            confirm(0, database, log)
    finally:
        shipper._end()
        log.close()
        database.close()


def insert(number: int) -> Callable[[Any], bytes]:
    def run(db: Any) -> bytes:
        db.execute("INSERT INTO items VALUES (?, 'x')", (number,))
        return b"null"

    return run
