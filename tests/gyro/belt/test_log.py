"""Laws of the log, on every log that there is: what it takes, in which order, from whom."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from plait.gyro.belt.logs.address import address
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.etcd import EtcdLog
from plait.gyro.belt.logs.log import (
    BehindError,
    Fence,
    FencedError,
    Log,
    LogGoneError,
    ReplacedError,
    Stream,
    TooLargeError,
    append_surely,
    size_of,
)
from plait.gyro.belt.logs.nats import NatsLog
from plait.gyro.belt.records import ForkedError, LocalUpdate, chained
from plait.kernel.errors import UsageError
from tests.gyro.belt.log_engines import Certificates, Etcd, Nats
from tests.gyro.belt.log_writers import Load, entry, interleave
from tests.support.patience import until

Open = Callable[[], Log]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    engine = Etcd(tmp_path_factory.mktemp("etcd"))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def secure_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """etcd with TLS, client certificates, and a user with a password; the address."""
    folder = tmp_path_factory.mktemp("secure-etcd")
    engine = Etcd(folder, tls=Certificates(folder))
    try:
        (folder / "password").write_text("a password\n")
        for user, secret in (("root", "root"), ("plait", "a password")):
            engine.control("user", "add", f"{user}:{secret}")
        engine.control("role", "add", "belt")
        engine.control("role", "grant-permission", "belt", "--prefix=true", "readwrite", "plait-gyro/")
        engine.control("user", "grant-role", "root", "root")
        engine.control("user", "grant-role", "plait", "belt")
        engine.control("auth", "enable")
        yield f"{engine.where}&user=plait&password-file={folder / 'password'}"
    finally:
        engine.close()


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    engine = Nats(tmp_path_factory.mktemp("nats"))
    yield engine
    engine.close()


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("etcd", "etcd with TLS", "nats")]


@pytest.fixture(params=["embedded", *SLOW])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens one log, as several servers do."""
    made: list[Log] = []
    name = uuid.uuid4().hex

    def open_log() -> Log:
        made.append(opening())
        return made[-1]

    opening: Open
    if request.param == "embedded":
        opening = lambda: EmbeddedLog(tmp_path / "log.db")  # noqa: E731
    elif request.param == "etcd":
        where = address(request.getfixturevalue("etcd").where)
        opening = lambda: EtcdLog(where, name)  # noqa: E731
    elif request.param == "etcd with TLS":
        where = address(request.getfixturevalue("secure_etcd"))
        opening = lambda: EtcdLog(where, name)  # noqa: E731
    else:
        where, fence = address(request.getfixturevalue("nats").where), address(request.getfixturevalue("etcd").where)
        opening = lambda: NatsLog(where, fence, name)  # noqa: E731
    yield open_log
    for log in made:
        log.close()


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
    threads = [threading.Thread(target=lambda log=log: made.append(log.reissue(0))) for log in logs]
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
    assert opened().agreed("schema") is None
    assert [opened().agree("schema", value) for value in ("a", "b", "a")] == ["a", "a", "a"]
    assert opened().agreed("schema") == "a"


def test_what_is_agreed_on_is_read_without_a_vote(opened: Open) -> None:
    log, other = opened(), opened()
    assert log.agreed("schema") is None
    log.agree("schema", "a")
    assert other.agreed("schema") == "a"


def local(position: int, *, server: int = 1, incarnation: int = 0, request: str = "") -> LocalUpdate:
    """A local update of a stream whose other updates have the default arguments."""
    before = local(position - 1, server=server).chain if position > 1 else ""
    name = request or f"r{position}"
    made = LocalUpdate(position, incarnation, server, 0, position, position, name, "note", b"{}", b"1", b"\0row")
    return chained(before, [made])[0]


def test_each_server_has_a_stream_of_its_own(opened: Open) -> None:
    log, other = opened(), opened()
    assert log.stream(1) == Stream(0, 0, "")
    log.ship(1, [local(1), local(2)])
    other.ship(1, [local(3)])
    other.ship(0, [local(1, server=0)])
    assert log.shipped(1, 0) == [local(1), local(2), local(3)]
    assert other.shipped(1, 1, 1) == [local(2)]
    assert log.shipped(1, 3) == log.shipped(2, 0) == []
    assert log.shipped(0, 0) == [local(1, server=0)]
    assert other.stream(1) == Stream(0, 3, local(3).chain)
    assert log.fence() == Fence()


def test_a_stream_has_no_hole_and_one_history(opened: Open) -> None:
    log = opened()
    log.ship(1, [local(1)])
    for position in (1, 3):
        with pytest.raises(BehindError) as error:
            log.ship(1, [local(position)])
        assert error.value.last == 1
    with pytest.raises(BehindError):
        log.ship(1, [local(2), local(4)])
    with pytest.raises(ForkedError, match="local update 2 of server 1"):
        log.ship(1, [structs.replace(local(2), update=b"changed")])
    assert log.shipped(1, 0) == [local(1)]


def test_a_server_that_was_replaced_is_refused(opened: Open) -> None:
    log, old = opened(), opened()
    log.reissue(0)
    old.ship(1, [local(1)])
    old.append([entry(1, holder=1)])
    assert log.replace(1, 0) == 1
    assert log.replace(1, 0) is None
    with pytest.raises(ReplacedError, match="incarnation is 1 now"):
        old.ship(1, [local(2)])
    with pytest.raises(ReplacedError, match="incarnation is 1 now"):
        old.append([entry(2, epoch=9, holder=1, after=entry(1, holder=1))])
    assert log.stream(1) == Stream(1, 1, local(1).chain)
    assert log.fence() == Fence(2, 0, 1, entry(1, holder=1).chain, {1: 1})
    log.ship(1, [local(2, incarnation=1)])
    follower = structs.replace(entry(2, epoch=2, holder=1), incarnation=1)
    log.append(chained(entry(1, holder=1).chain, [follower]))
    other = entry(3, epoch=2, turn=1, holder=0, after=log.read(1)[0])
    log.append([other])  # the other servers go on
    assert log.reissue(2) == 3
    assert log.fence().incarnations == {1: 1}


def test_of_many_that_replace_a_server_one_succeeds(opened: Open) -> None:
    logs = [opened() for _ in range(4)]
    made: list[int | None] = []
    threads = [threading.Thread(target=lambda log=log: made.append(log.replace(2, 0))) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made, key=str) == [1, None, None, None]


class Deaf(EmbeddedLog):
    """Takes the entries, and does not say so."""

    left = 1

    def append(self, entries: object) -> None:
        super().append(entries)  # type: ignore[arg-type]
        if self.left:
            self.left -= 1
            raise LogGoneError("timeout")


class Denied(Deaf):
    """Takes the entries, and then does not know the server any more."""

    def append(self, entries: object) -> None:
        try:
            super().append(entries)
        except LogGoneError:
            raise UsageError("the user may not do this") from None


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


@pytest.mark.parametrize("kind", [Deaf, Denied, Late, Slow])
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
def test_etcd_refuses_what_is_too_large_and_has_none_of_it(etcd: Etcd) -> None:
    log = EtcdLog(address(etcd.where), uuid.uuid4().hex)
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
        EtcdLog(address("etcd:http://127.0.0.1:9"), "x")


# -- several writers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_any_interleaving_of_requests_gives_the_answers_of_the_oracle(opened: Open, seed: int) -> None:
    seen = interleave(opened, seed)
    assert set(seen) == {"appended", "FencedError", "BehindError", "ForkedError"}


@pytest.mark.slow
def test_writers_at_the_same_time_make_one_history(opened: Open) -> None:
    load = Load(opened)

    def done() -> bool:
        return bool(load.errors) or (len(load.accepted) >= 60 and bool(load.refused) and bool(load.epochs))

    until(done, "writers append, are in each other's way, and begin epochs")
    load.judge()
