"""A database that is rebuilt from the log answers repeated requests as the lost one did."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import psycopg
import pytest

from plait.bench.gyro.faults import board
from plait.gyro.belt.databases.postgresql.database import PostgresqlDatabase
from plait.gyro.belt.records import Call, Entry, LocalUpdate, Outcome, chained
from tests.gyro.belt.desk import Desk
from tests.gyro.belt.variants import needs_mariadb, needs_postgresql
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite, scratch
from tests.support.patience import PATIENCE

Make = Callable[[type[Engine]], Desk]


class ParallelPostgresql(Postgresql):
    parallel = 8


class ParallelMariadb(Mariadb):
    parallel = 8


POSTGRESQL = pytest.param(ParallelPostgresql, marks=[pytest.mark.slow, needs_postgresql])
MARIADB = pytest.param(ParallelMariadb, marks=[pytest.mark.slow, needs_mariadb])


@pytest.fixture
def make() -> Iterator[Make]:
    folder = scratch()
    made: list[Any] = []

    def open_desk(kind: type[Engine]) -> Desk:
        engine = kind(folder, board.SCHEMA)
        made.append(engine)
        desk = Desk(folder, engine)
        made.append(desk)
        desk.log.reissue(0)
        return desk

    yield open_desk
    for each in reversed(made):
        each.close()
    shutil.rmtree(folder, ignore_errors=True)


def everywhere(desk: Desk, call: Call) -> Outcome:
    """Execute a global operation."""
    with desk.database.visit() as visit:
        reply, update = visit.execute(call)
        arguments = msgspec.json.encode(call.arguments)
        seq, epoch = visit.seq + 1, desk.log.fence().epoch
        made = Entry(seq, epoch, 0, 0, call.request, call.operation, arguments, reply, update)
        visit.commit(chained(visit.chain, [made]), desk.log)
        return Outcome(reply, seq, 0)


def known(desk: Desk, call: Call) -> Outcome | None:
    """The stored reply to a request."""
    with desk.database.visit() as visit:
        found = visit.repeated(call)
        visit.commit([], desk.log)
        return found


def place(outcome: Outcome | None) -> tuple[bytes, int, int] | None:
    return outcome and (outcome.reply, outcome.seq, outcome.position)


def replace(desk: Desk) -> None:
    """The disk is lost, and the database is rebuilt."""
    desk.shipper.ship()
    desk.database.close()
    desk.database = desk.rebuilt()


@pytest.mark.parametrize("kind", [POSTGRESQL, MARIADB])
def test_operations_that_ran_at_the_same_time_keep_their_positions(kind: type[Engine], make: Make) -> None:
    """A local operation has its position, but is not in the outbox yet. A global and another local one pass it."""
    desk = make(kind)
    calls = {
        name: desk.application.call(name, operation, arguments)
        for name, operation, arguments in (
            ("late", "paint", {"person": 2, "colour": "red"}),
            ("everywhere", "move", {"source": 0, "target": 1, "value": 7}),
            ("early", "draw", {"owner": 4, "label": "x"}),
        )
    }
    reached, passed = threading.Event(), threading.Event()
    post = desk.database.post  # type: ignore[attr-defined]

    def slow(db: Any, update: LocalUpdate) -> None:
        if update.request == "late":
            reached.set()
            assert passed.wait(PATIENCE)
        post(db, update)

    desk.database.post = slow  # type: ignore[attr-defined]
    first: dict[str, Outcome] = {}
    late = threading.Thread(target=lambda: first.update(late=desk.database.write(calls["late"])), daemon=True)
    late.start()
    assert reached.wait(PATIENCE)
    first["everywhere"] = everywhere(desk, calls["everywhere"])
    first["early"] = desk.database.write(calls["early"])
    passed.set()
    late.join(PATIENCE)
    desk.shipper.ship()
    shipped = {update.request: update for update in desk.log.shipped(0, 0)}
    assert list(shipped) == ["early", "late"]
    assert (shipped["late"].seq, shipped["early"].seq) == (0, 1)
    assert shipped["late"].order < shipped["early"].order
    replace(desk)
    assert {name: place(known(desk, call)) for name, call in calls.items()} == {n: place(o) for n, o in first.items()}
    more = desk.database.write(desk.application.call("more", "paint", {"person": 0, "colour": "blue"}))
    assert more.position > max(outcome.position for outcome in first.values())


@pytest.mark.parametrize("kind", [Sqlite, POSTGRESQL, MARIADB])
def test_the_name_of_a_request_that_was_forgotten_can_be_used_again(kind: type[Engine], make: Make) -> None:
    """Replies are deleted after an hour. The log still has both updates, and a rebuilt server knows the last reply."""
    desk = make(kind)
    desk.database._keep = -1.0  # type: ignore[attr-defined]
    notes = [desk.application.call("daily", "note", {"owner": 0, "value": n}) for n in range(2)]
    moves = [desk.application.call("nightly", "move", {"source": 0, "target": 1, "value": n}) for n in range(2)]
    for call in notes:
        assert not desk.database.write(call).repeated
    first = everywhere(desk, moves[0])
    desk.database.write(desk.application.call("other", "paint", {"person": 0, "colour": "red"}))
    second = everywhere(desk, moves[1])
    assert place(first) != place(second)
    replace(desk)
    found = known(desk, notes[1])
    assert found is not None
    assert msgspec.json.decode(found.reply).split() == ["0", "1"]
    assert place(known(desk, moves[1])) == place(second)


@pytest.mark.parametrize("kind", [Sqlite, POSTGRESQL, MARIADB])
def test_of_two_requests_of_another_server_with_one_name_the_last_one_is_known(kind: type[Engine], make: Make) -> None:
    """After a change of the configuration, servers know the requests of the others."""
    desk = make(kind)
    updates = [
        LocalUpdate(n, 0, 1, 0, n, n, "daily", "notes", b'{"owner":1}', reply, b"")
        for n, reply in ((1, b'"first"'), (2, b'"second"'))
    ]
    desk.database.absorb(updates)  # type: ignore[attr-defined]
    found = known(desk, desk.application.call("daily", "notes", {"owner": 1}))
    assert place(found) == (b'"second"', 0, 2)


def test_positions_go_on_after_old_replies_are_deleted(make: Make) -> None:
    """Otherwise a query would be before the operations whose effects it has read."""
    desk = make(Sqlite)
    desk.database._keep = -1.0  # type: ignore[attr-defined]
    wrote = desk.database.write(desk.application.call("a", "note", {"owner": 0, "value": 1}))
    assert desk.engine.rows(0, "SELECT count(*) FROM gyro_done") == [(0,)]
    read = desk.database.read(desk.application.call("", "notes", {"owner": 0}))
    assert read.position >= wrote.position > 0


class _FailedError(Exception):
    """Nothing that the code expects."""


@pytest.mark.slow
@needs_postgresql
@pytest.mark.parametrize("moment", ["set-up", "replay"])
def test_connections_are_closed_after_a_failure(moment: str, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the garbage collector closes them, with a ResourceWarning, which is an error in tests."""
    desk = make(Postgresql)
    desk.database.write(desk.application.call("a", "note", {"owner": 0, "value": 1}))
    desk.shipper.ship()
    made: list[Any] = []
    connect = psycopg.connect

    def connected(*given: Any, **options: Any) -> Any:
        made.append(connect(*given, **options))
        return made[-1]

    def fail(*_: Any) -> None:
        raise _FailedError

    monkeypatch.setattr(psycopg, "connect", connected)
    if moment == "set-up":
        monkeypatch.setattr("plait.gyro.belt.databases.postgresql.database.tables", fail)
        with pytest.raises(_FailedError):
            desk.engine.open(1, 2, lambda _: None)
    else:
        monkeypatch.setattr(PostgresqlDatabase, "patch", fail)
        with closing(desk.engine.open(1, 2, lambda _: None)) as database, pytest.raises(_FailedError):
            database.replay(desk.log.shipped(0, 0))
    assert made
    assert all(db.closed for db in made)
