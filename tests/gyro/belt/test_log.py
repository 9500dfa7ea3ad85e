"""Laws of the log, on every log that there is: what it takes, in which order, from whom."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.etcd import EtcdLog
from plait.gyro.belt.logs.log import (
    BehindError,
    Fence,
    FencedError,
    Log,
    LogGoneError,
    TooLargeError,
    append_surely,
    size_of,
)
from plait.gyro.belt.records import Entry, ForkedError, chained
from tests.support.patience import until

Open = Callable[[], Log]


def etcd_answers(url: str) -> bool:
    try:
        EtcdLog(url, "probe").close()
    except LogGoneError:
        return False
    return True


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("etcd") is None:
        pytest.skip("etcd is not installed (Debian: etcd-server)")
    ports = []
    for _ in range(2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
    urls = [f"http://127.0.0.1:{p}" for p in ports]
    command = ["etcd", "--data-dir", str(tmp_path_factory.mktemp("etcd")), "--log-level", "error", "--name", "one"]
    command += ["--listen-client-urls", urls[0], "--advertise-client-urls", urls[0], "--listen-peer-urls", urls[1]]
    command += ["--initial-advertise-peer-urls", urls[1], "--initial-cluster", f"one={urls[1]}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or etcd_answers(urls[0]), "etcd answers")
        yield urls[0]
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=["embedded", pytest.param("etcd", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens one log, as several servers do."""
    made: list[Log] = []
    url, name = request.getfixturevalue("etcd") if request.param == "etcd" else "", uuid.uuid4().hex

    def open_log() -> Log:
        made.append(EtcdLog(url, name) if url else EmbeddedLog(tmp_path / "log.db"))
        return made[-1]

    yield open_log
    for log in made:
        log.close()


def entry(
    seq: int, *, epoch: int = 1, turn: int = 0, holder: int = 0, request: str = "", after: Entry | None = None
) -> Entry:
    """An update that follows another one; by default, updates with the default arguments."""
    before = after or (entry(seq - 1) if seq > 1 else None)
    name = request or f"r{epoch}-{turn}-{seq}"
    made = Entry(seq, epoch, turn, holder, name, "post", b"{}", b"null", bytes([seq % 256, 0]))
    return chained("" if before is None else before.chain, [made])[0]


def test_what_is_appended_is_read_in_order(opened: Open) -> None:
    log, other = opened(), opened()
    assert log.fence() == Fence(0, 0, 0)
    assert log.reissue(0) == 1
    log.append([entry(1), entry(2)])
    other.append([entry(3, turn=4, holder=2)])
    assert log.fence() == other.fence() == Fence(1, 4, 3, entry(3, turn=4, holder=2).chain)
    assert log.read(0) == [entry(1), entry(2), entry(3, turn=4, holder=2)]
    assert other.read(1, 1) == [entry(2)]
    assert log.read(3) == []


def test_a_hole_is_refused(opened: Open) -> None:
    log = opened()
    log.reissue(0)
    log.append([entry(1)])
    for seq in (1, 3):
        with pytest.raises(BehindError) as error:
            log.append([entry(seq, turn=1)])
        assert error.value.last == 1
    assert log.read(0) == [entry(1)]


def test_an_old_holder_is_fenced_off(opened: Open) -> None:
    log = opened()
    log.reissue(0)
    log.append([entry(1, turn=3)])
    with pytest.raises(FencedError):
        log.append([entry(2, turn=2)])
    assert log.reissue(1) == 2
    with pytest.raises(FencedError) as error:
        log.append([entry(2, epoch=1, turn=9)])
    assert error.value.fence.epoch == 2
    log.append([entry(2, epoch=2, turn=0, after=entry(1, turn=3))])
    assert [e.epoch for e in log.read(0)] == [1, 2]


def test_an_update_of_another_history_is_refused(opened: Open) -> None:
    log = opened()
    log.reissue(0)
    log.append([entry(1)])
    for wrong in (entry(2, after=entry(1, request="other")), structs.replace(entry(2), update=b"changed")):
        with pytest.raises(ForkedError, match="update 2"):
            append_surely(log, [wrong])
    assert log.read(0) == [entry(1)]
    log.append([entry(2)])
    assert log.reissue(1) == 2
    log.append([entry(3, epoch=2)])
    assert log.fence().chain == entry(3, epoch=2).chain


def test_one_of_many_reissues_the_token(opened: Open) -> None:
    logs = [opened() for _ in range(5)]
    made: list[int | None] = []
    threads = [threading.Thread(target=lambda log=log: made.append(log.reissue(0))) for log in logs]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made, key=str) == [1, None, None, None, None]


def test_of_many_that_append_the_same_seq_one_succeeds(opened: Open) -> None:
    logs = [opened() for _ in range(4)]
    logs[0].reissue(0)
    taken: list[int] = []

    def attempt(holder: int) -> None:
        try:
            first = entry(1, holder=holder)
            logs[holder].append([first, entry(2, holder=holder, after=first)])
            taken.append(holder)
        except BehindError:
            pass

    threads = [threading.Thread(target=attempt, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    assert [e.holder for e in logs[0].read(0)] == taken * 2


def test_all_agree_on_the_first_value(opened: Open) -> None:
    assert [opened().agree("schema", value) for value in ("a", "b", "a")] == ["a", "a", "a"]


class Deaf(EmbeddedLog):
    """Takes the entries, and does not say so."""

    left = 1

    def append(self, entries: object) -> None:
        super().append(entries)  # type: ignore[arg-type]
        if self.left:
            self.left -= 1
            raise LogGoneError("timeout")


class Late(EmbeddedLog):
    """Does not take the entries at first."""

    left = 2

    def append(self, entries: object) -> None:
        if self.left:
            self.left -= 1
            raise LogGoneError("timeout")
        super().append(entries)  # type: ignore[arg-type]


class Slow(EmbeddedLog):
    """The first request arrives just before the second, and after it was looked for."""

    calls = 0

    def append(self, entries: object) -> None:
        self.calls += 1
        if self.calls == 1:
            raise LogGoneError("timeout")
        if self.calls == 2:
            super().append(entries)  # type: ignore[arg-type]
        super().append(entries)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Deaf, Late, Slow])
def test_whether_the_log_has_it_is_found_out(kind: type[EmbeddedLog], tmp_path: Path) -> None:
    log = kind(tmp_path / "log.db")
    log.reissue(0)
    append_surely(log, [entry(1), entry(2)])
    assert log.read(0) == [entry(1), entry(2)]


def test_an_append_that_another_server_has_overtaken_fails(tmp_path: Path) -> None:
    log = Late(tmp_path / "log.db")
    log.reissue(0)
    EmbeddedLog(tmp_path / "log.db").append([entry(1, holder=1, request="other")])
    with pytest.raises(BehindError):
        append_surely(log, [entry(1)])


@pytest.mark.slow
def test_etcd_refuses_what_is_too_large_and_has_none_of_it(etcd: str) -> None:
    log = EtcdLog(etcd, uuid.uuid4().hex)
    log.reissue(0)
    with pytest.raises(TooLargeError, match="too large"):
        append_surely(log, chained("", [entry(1), structs.replace(entry(2), update=b"x" * 2_000_000)]))
    assert log.read(0) == []
    (fits,) = chained("", [structs.replace(entry(1), update=b"x" * (EtcdLog.largest - 1000))])
    assert size_of(fits) <= EtcdLog.largest
    append_surely(log, [fits])
    assert log.read(0) == [fits]
    log.close()


def test_a_log_that_is_no_log_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"this is not a database, and long enough to be seen as none" * 20)
    with pytest.raises(LogGoneError, match="not a database"):
        EmbeddedLog(tmp_path / "log.db")
    with pytest.raises(LogGoneError, match="etcd"):
        EtcdLog("http://127.0.0.1:9", "x")
