"""Logs in etcd and NATS under faults: lost answers, killed engines, clusters with a dead member, late appends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plait.gyro.belt.logs.address import address
from plait.gyro.belt.logs.etcd import EtcdLog
from plait.gyro.belt.logs.journal import Place, Record
from plait.gyro.belt.logs.log import Fence, FencedError, TooLargeError, admit, append_surely, size_of
from plait.gyro.belt.logs.nats import NatsLog
from plait.gyro.belt.records import chained
from plait.kernel.errors import UsageError
from tests.gyro.belt.log_engines import Certificates, Credentials, Etcd, Nats, Proxy, opener, through
from tests.gyro.belt.log_writers import Load, entry
from tests.support.further import further
from tests.support.patience import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    engine = Etcd(tmp_path_factory.mktemp("etcd"))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    engine = Nats(tmp_path_factory.mktemp("nats"))
    yield engine
    engine.close()


def work(load: Load, count: int) -> None:
    """Wait for some more accepted entries."""
    goal = len(load.accepted) + count
    until(lambda: len(load.accepted) >= goal or bool(load.errors), "writers go on")


# -- lost answers ------------------------------------------------------------------------------------------------------


def every(count: int, pattern: bytes) -> Callable[[bytes], bool]:
    """Whether a request is the next one of some with a pattern."""
    seen = [0]

    def drops(data: bytes) -> bool:
        seen[0] += pattern in data
        return pattern in data and seen[0] % count == 0

    return drops


@pytest.mark.parametrize("engine", ["etcd", "nats", "nats with deaf etcd"])
def test_lost_answers_lose_nothing_and_store_nothing_twice(engine: str, etcd: Etcd, nats: Nats) -> None:
    """Requests go through, and the connection ends before the answer."""
    proxies = {url: Proxy(url) for url in (*etcd.clients, *nats.clients)}
    fence, where = through(address(etcd.where), proxies), through(address(nats.where), proxies)
    open_log = opener(fence) if engine == "etcd" else opener(where, fence)
    load = Load(open_log, writers=2)
    try:
        work(load, 10)
        target = proxies[nats.clients[0]] if engine == "nats" else proxies[etcd.clients[0]]
        target.drops = every(4, b"HPUB" if engine == "nats" else b"/v3/kv/txn")
        if engine == "nats with deaf etcd":
            until(lambda: target.dropped > 2 or bool(load.errors), "answers are dropped")
        else:
            work(load, 60)
        target.drops = lambda _: False
        work(load, 10)
        load.judge()
        assert target.dropped > 2
    finally:
        load.stop()
        for proxy in proxies.values():
            proxy.close()


# -- engines that die --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["etcd", "nats", "etcd of nats"])
def test_kill_under_load_loses_nothing_that_was_acknowledged(victim: str, tmp_path: Path) -> None:
    fence = Etcd(tmp_path)
    stream = None if victim == "etcd" else Nats(tmp_path)
    try:
        open_log = (
            opener(address(fence.where)) if stream is None else opener(address(stream.where), address(fence.where))
        )
        load = Load(open_log, writers=2)
        try:
            for _ in range(3):
                work(load, 20)
                dying = (stream.processes if victim == "nats" and stream else fence.processes)[0]
                dying.kill()
                dying.start()
            work(load, 20)
            load.judge()
        finally:
            load.stop()
    finally:
        fence.close()
        if stream is not None:
            stream.close()


@pytest.mark.parametrize("killed", [1, *further(3)])
def test_a_cluster_of_etcd_goes_on_without_any_one_of_its_members(killed: int, tmp_path: Path) -> None:
    engine = Etcd(tmp_path, members=3)
    try:
        open_log = opener(address(engine.where))
        load = Load(open_log, writers=2)
        try:
            for member in engine.processes[:killed]:
                work(load, 10)
                member.kill()
                work(load, 10)
                member.start()
            engine.processes[0].kill()
            load.judge()
        finally:
            load.stop()
    finally:
        engine.close()


@pytest.mark.parametrize("killed", [1, *further(3)])
def test_a_cluster_of_nats_goes_on_without_any_one_of_its_servers(killed: int, etcd: Etcd, tmp_path: Path) -> None:
    engine = Nats(tmp_path, servers=3)
    try:
        open_log = opener(address(f"{engine.where}?replicas=3"), address(etcd.where))
        load = Load(open_log, writers=2)
        try:
            for server in engine.processes[:killed]:
                work(load, 10)
                server.kill()
                work(load, 10)
                server.start()
                engine.wait()
            load.judge()
        finally:
            load.stop()
    finally:
        engine.close()


# -- late appends: the rules of `plait.protocols.split_log`, on the real engines ---------------------------------------


class Ghost:
    """An append of a server that crashes: it was decided on, and is still in transit."""

    def __init__(self, log: NatsLog, entry: Any) -> None:
        self._log = log
        self._place: Place[Fence] = log._log.tail()
        self._record: Record[Any, Any] = Record(admit(self._place.end, [entry]), [entry], self._place.name)

    def arrive(self) -> bool:
        """Whether the stream stores it."""
        return self._log._log.store(self._place, self._record, uuid.uuid4().hex)


class Unmarked(NatsLog):
    """A mutant: epochs without markers."""

    def _mark(self) -> None:
        pass


class DyingError(Exception):
    """The process is gone."""


class Dying(NatsLog):
    """A server that dies between the epoch in etcd and its marker in the stream."""

    def _mark(self) -> None:
        raise DyingError


@pytest.fixture
def make(etcd: Etcd, nats: Nats) -> Iterator[Callable[..., NatsLog]]:
    name, made = uuid.uuid4().hex, []

    def open_log(kind: type[NatsLog] = NatsLog) -> NatsLog:
        made.append(kind(address(nats.where), address(etcd.where), name))
        return made[-1]

    yield open_log
    for log in made:
        log.close()


def test_a_late_append_is_refused_after_a_new_epoch(make: Callable[..., NatsLog]) -> None:
    log, other = make(), make()
    log.reissue(0)
    log.append([entry(1)])
    late = Ghost(log, entry(2))
    assert other.reissue(1) == 2
    assert not late.arrive()
    assert other.read(0) == [entry(1)]
    other.append([entry(2, epoch=2)])
    assert log.read(0) == [entry(1), entry(2, epoch=2)]


def test_without_a_marker_a_late_append_would_be_stored(make: Callable[..., NatsLog]) -> None:
    log, other = make(), make(Unmarked)
    log.reissue(0)
    late = Ghost(log, entry(1))
    assert other.reissue(1) == 2
    assert other.read(0) == []
    assert late.arrive()


def test_an_issuer_that_dies_before_its_marker_stops_nobody(make: Callable[..., NatsLog]) -> None:
    log, other = make(), make(Dying)
    log.reissue(0)
    with pytest.raises(DyingError):
        other.reissue(1)
    assert log.fence() == Fence(2, 0, 0)
    log.append([entry(1)])  # the old token is still valid
    assert log.reissue(2) == 3
    with pytest.raises(FencedError):
        log.append([entry(2)])
    log.append([entry(2, epoch=3)])


def test_the_loser_of_an_epoch_stores_the_marker_too(make: Callable[..., NatsLog]) -> None:
    log, other, winner = make(), make(), make(Dying)
    log.reissue(0)
    late = Ghost(log, entry(1))
    with pytest.raises(DyingError):
        winner.reissue(1)
    assert other.reissue(1) is None
    assert not late.arrive()
    assert other.fence() == Fence(2, 0, 0)


def test_markers_are_no_entries(make: Callable[..., NatsLog]) -> None:
    log = make()
    for epoch in range(5):
        assert log.reissue(epoch) == epoch + 1
    log.append([entry(1, epoch=5)])
    for epoch in range(5, 9):
        assert log.reissue(epoch) == epoch + 1
    assert log.read(0) == make().read(0) == [entry(1, epoch=5)]
    assert log.read(1) == make().read(1) == []


# -- sizes, users, certificates ----------------------------------------------------------------------------------------


def test_nats_refuses_what_is_too_large_and_has_none_of_it(etcd: Etcd, tmp_path: Path) -> None:
    engine = Nats(tmp_path, more="max_payload: 100000")
    try:
        log = NatsLog(address(engine.where), address(etcd.where), uuid.uuid4().hex)
        log.reissue(0)
        with pytest.raises(TooLargeError):
            append_surely(log, chained("", [entry(1), msgspec.structs.replace(entry(2), update=b"x" * 100_000)]))
        assert log.read(0) == []
        (fits,) = chained("", [msgspec.structs.replace(entry(1), update=b"x" * (log.largest - 1000))])
        assert size_of(fits) <= log.largest
        append_surely(log, [fits])
        assert log.read(0) == [fits]
        log.close()
    finally:
        engine.close()


def test_a_record_of_a_megabyte_is_read_back(etcd: Etcd, nats: Nats) -> None:
    log = NatsLog(address(nats.where), address(etcd.where), uuid.uuid4().hex)
    log.reissue(0)
    (large,) = chained("", [msgspec.structs.replace(entry(1), update=b"x" * (log.largest - 1000))])
    log.append([large])
    assert log.read(0) == [large]
    log.close()


def test_nats_with_tls_and_a_password(etcd: Etcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = 'authorization { users: [{ user: plait, password: "a password" }] }'
    monkeypatch.setenv("PLAIT_GYRO_NATS_PASSWORD", "a password")
    engine = Nats(tmp_path, tls=Certificates(tmp_path), more=users, options="user=plait")
    try:
        log = NatsLog(address(engine.where), address(etcd.where), uuid.uuid4().hex)
        log.reissue(0)
        log.append([entry(1)])
        assert log.read(0) == [entry(1)]
        log.close()
        monkeypatch.setenv("PLAIT_GYRO_NATS_PASSWORD", "another")
        with pytest.raises(UsageError, match="NATS refuses the connection"):
            NatsLog(address(engine.where), address(etcd.where), uuid.uuid4().hex)
    finally:
        engine.close()


def test_nats_with_a_credentials_file(etcd: Etcd, tmp_path: Path) -> None:
    users = Credentials(tmp_path)
    engine = Nats(tmp_path, more=users.config, options=f"credentials={users.file}")
    try:
        log = NatsLog(address(engine.where), address(etcd.where), uuid.uuid4().hex)
        log.reissue(0)
        log.append([entry(1)])
        assert log.read(0) == [entry(1)]
        log.close()
        with pytest.raises(UsageError, match="NATS refuses the connection"):
            NatsLog(address(engine.where.partition("?")[0]), address(etcd.where), uuid.uuid4().hex)
    finally:
        engine.close()


def test_etcd_renews_a_token_that_it_forgot_and_refuses_a_wrong_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Etcd(tmp_path)
    try:
        for arguments in ("user add root:secret", "user grant-role root root", "auth enable"):
            engine.control(*arguments.split())
        where = address(f"{engine.where}?user=root")
        monkeypatch.setenv("PLAIT_GYRO_ETCD_PASSWORD", "secret")
        log = EtcdLog(where, "x")
        log.reissue(0)
        engine.processes[0].kill()
        engine.processes[0].start()  # tokens are in memory only
        engine.wait()
        append_surely(log, [entry(1)])
        assert log.read(0) == [entry(1)]
        log.close()
        monkeypatch.setenv("PLAIT_GYRO_ETCD_PASSWORD", "wrong")
        with pytest.raises(UsageError, match="etcd refuses user root"):
            EtcdLog(where, "x")
        with pytest.raises(UsageError, match=r"etcd refuses user \(none\)"):
            EtcdLog(address(engine.where), "x")
        monkeypatch.delenv("PLAIT_GYRO_ETCD_PASSWORD")
        with pytest.raises(UsageError, match="the password of user root is missing"):
            EtcdLog(where, "x")
    finally:
        engine.close()
