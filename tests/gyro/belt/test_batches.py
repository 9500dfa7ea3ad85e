"""Operations that come together run in one transaction: what each of them sees, and what one that fails does to others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from plait.bench.gyro.parallel import Nowhere
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Call, DatabaseGoneError, OperationError, Outcome, OversizeError, Result
from plait.gyro.belt.wire import batches as module
from plait.gyro.belt.wire.batches import Batches
from tests.gyro.belt.runs import run
from tests.gyro.belt.variants import ROUGH, engine
from tests.gyro.belt.wires import WireCluster
from tests.support.patience import PATIENCE

SCHEMA = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL CHECK (v < 1000)); INSERT INTO t VALUES (0, 0), (1, 0);"
)


def opened(folder: Path, **options: Any) -> SqliteDatabase:
    return SqliteDatabase(folder / "app.db", schema=SCHEMA, **options)


def call(request: str, act: Callable[[Any], Any], operation: str = "act") -> Call:
    return Call(request, operation, {}, lambda db: msgspec.json.encode(act(db)))


def add(db: Any, key: int = 0, more: int = 1) -> int:
    db.execute("UPDATE t SET v = v + ? WHERE id = ?", (more, key))
    return look(db, key)


def look(db: Any, key: int = 0) -> int:
    return int(db.execute("SELECT v FROM t WHERE id = ?", (key,)).fetchone()[0])


def fail(db: Any) -> None:
    raise ValueError(f"saw {add(db)}")


def replies(results: Sequence[Result]) -> list[Any]:
    return [r.message if isinstance(r, OperationError) else msgspec.json.decode(r.reply) for r in results]


def test_an_operation_that_raises_undoes_only_itself(tmp_path: Path) -> None:
    database = opened(tmp_path)
    calls = [call("a", add), call("b", fail), call("c", add), call("a", add), call("d", look)]
    found = database.writes(calls)
    assert replies(found) == [1, "saw 2", 2, 1, 2], "b saw a and its own change, which is gone"
    positions = [(r.position, r.wrote, r.repeated) for r in found if isinstance(r, Outcome)]
    assert positions == [(1, True, False), (2, True, False), (1, False, True), (2, False, False)]
    assert replies(database.writes([call("c", add), call("b", add)])) == [2, 3]
    database.close()


@pytest.mark.parametrize("statement", ["INSERT OR ROLLBACK INTO t VALUES (1, 1)", "UPDATE OR ROLLBACK t SET v = 1000"])
def test_an_operation_that_ends_the_transaction_undoes_no_other(statement: str, tmp_path: Path) -> None:
    """SQLite rolls back everything. The others execute again, each once in the end."""
    database = opened(tmp_path)
    calls = [call("a", add), call("b", lambda db: db.execute(statement).rowcount), call("c", add)]
    first, second, third = database.writes(calls)
    assert replies([first, third]) == [1, 2]
    assert isinstance(second, OperationError)
    assert replies(database.reads([call("", look)])) == [2]
    assert replies(database.writes(calls)[::2]) == [1, 2], "they are remembered"
    database.close()


def test_an_operation_that_is_too_large_for_the_log_undoes_only_itself(tmp_path: Path) -> None:
    database = opened(tmp_path, shipping=1000)
    large = call("b", lambda db: "x" * 2000 if add(db) else "")
    first, second, third = database.writes([call("a", add), large, call("c", add)])
    assert replies([first, third]) == [1, 2]
    assert isinstance(second, OversizeError)
    assert [u.request for u in database.outbox((), 10)] == ["a", "c"]
    database.close()


def test_if_the_commit_fails_no_operation_has_happened_and_no_error_is_told(tmp_path: Path) -> None:
    """An error may tell what operations before it wrote, and these are gone."""
    database = opened(tmp_path)
    database._local.set_commit_hook(lambda: True)
    with pytest.raises((DatabaseGoneError, apsw.Error)):
        database.writes([call("a", add), call("b", fail)])
    database._local.set_commit_hook(None)
    assert replies(database.reads([call("", look)])) == [0]
    assert replies(database.writes([call("a", add)])) == [1], "it is not remembered either"
    database.close()


def test_reads_of_a_batch_have_one_snapshot_and_cannot_write(tmp_path: Path) -> None:
    database = opened(tmp_path)

    def meddle(db: Any) -> int:
        database.write(call("meddle", add))
        return look(db)

    found = database.reads([call("", look), call("", meddle), call("", add), call("", look), call("", fail)])
    assert replies(found)[:2] + replies(found)[3:4] == [0, 0, 0]
    assert isinstance(found[2], OperationError)
    assert isinstance(found[4], OperationError)
    assert {(r.seq, r.position) for r in found if isinstance(r, Outcome)} == {(0, 0)}
    assert replies(database.reads([call("", look)])) == [1]
    database.close()


class Together(SqliteDatabase):
    """Notes which operations run together."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.batches: list[list[str]] = []
        super().__init__(*arguments, **options)

    def noted(self, calls: Iterable[Call]) -> Iterator[Call]:
        mine: list[str] = []
        self.batches.append(mine)
        for each in calls:
            mine.append(each.request)
            yield each

    def reads(self, calls: Iterable[Call]) -> Sequence[Result]:
        return super().reads(self.noted(calls))

    def writes(self, calls: Iterable[Call]) -> Sequence[Result]:
        return super().writes(self.noted(calls))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    database = Together(tmp_path / "app.db", schema=SCHEMA)
    log = EmbeddedLog(tmp_path / "log.db")
    yield Node(0, 1, database, log, Nowhere())
    database.close()
    log.close()


async def executed(batches: Batches, kind: Any, *calls: Call) -> list[Outcome | Exception]:
    """Calls that come at the same time."""
    futures = [asyncio.get_running_loop().create_future() for _ in calls]
    for each, future in zip(calls, futures, strict=True):
        batches.add(each, kind, future.set_result)
    return await asyncio.wait_for(asyncio.gather(*futures), PATIENCE)


async def known(batches: Batches, kind: Any, act: Callable[[Any], Any]) -> None:
    """Let the durations of an operation be known."""
    while batches._paces.get("act", module.SHORT) >= module.SHORT:
        await executed(batches, kind, call(f"known {id(object())}", act))


@pytest.mark.parametrize(("kind", "act"), [("read", look), ("local", add)])
def test_short_operations_that_come_together_run_together(node: Node, kind: str, act: Any) -> None:
    async def scenario() -> None:
        batches = Batches(node, threads=2)
        await known(batches, kind, act)
        calls = [call(f"r{n}", act) for n in range(100)]
        found = await executed(batches, kind, *calls)
        assert all(isinstance(r, Outcome) for r in found)
        assert batches.executing == 0
        alone = Batches(node, threads=2, most=1)
        await executed(alone, kind, *(call(f"s{n}", act) for n in range(20)))

    asyncio.run(scenario())
    together: list[list[str]] = node.database.batches  # type: ignore[attr-defined]
    mine = [b for b in together if b and b[0].startswith("r")]
    assert sorted(name for batch in mine for name in batch) == sorted(f"r{n}" for n in range(100))
    assert len(mine) < 50, "most shared a transaction"
    assert [len(b) for b in together if b and b[0].startswith("s")] == [1] * 20


def test_an_operation_that_is_unexpectedly_slow_delays_no_other(node: Node) -> None:
    """It ends only after the others are answered. They came just after it, and were in its batch."""
    answered = threading.Event()

    async def scenario() -> None:
        batches = Batches(node, threads=3)
        await known(batches, "read", look)
        slow = asyncio.get_running_loop().create_future()
        batches.add(call("slow", lambda _: answered.wait(PATIENCE)), "read", slow.set_result)
        others = await executed(batches, "read", *(call(f"r{n}", look) for n in range(10)))
        assert all(isinstance(r, Outcome) for r in others)
        answered.set()
        assert msgspec.json.decode((await slow).reply) is True

    asyncio.run(scenario())


def test_if_the_dbms_is_gone_all_operations_of_a_batch_fail(node: Node) -> None:
    async def scenario() -> list[Outcome | Exception]:
        batches = Batches(node, threads=2)
        await known(batches, "local", lambda _: 0)
        node.database.close()
        return await executed(batches, "local", *(call(f"r{n}", add) for n in range(10)))

    assert all(isinstance(each, DatabaseGoneError) for each in asyncio.run(scenario()))


# -- whole runs -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", [600, 601])
def test_runs_with_batches_over_connections_are_serializable(seed: int) -> None:
    faults, cluster = run(seed, made_of=WireCluster, clients=16, servers=2, **(ROUGH if seed % 2 else {}))
    assert faults == []
    assert {e.kind for e in cluster.events} == {"read", "local", "global"}
    assert isinstance(cluster, WireCluster)
    assert max(cluster.sizes["read"] + cluster.sizes["local"]) > 1


class Undone(SqliteDatabase):
    """If a batch of writers has an even number of operations, it is not committed, but its replies are sent."""

    def writes(self, calls: Iterable[Call]) -> Sequence[Result]:
        with self._turn:
            self._local.execute("BEGIN IMMEDIATE")
            found = self._each(self._local, calls, [])
            self._local.execute("ROLLBACK" if len(found) % 2 == 0 else "COMMIT")
            return found


class Stale(SqliteDatabase):
    """Readers share a snapshot that was taken before they came, but tell the present position."""

    def reads(self, calls: Iterable[Call]) -> Sequence[Result]:
        with self._reader() as db:
            if not db.in_transaction:
                db.execute("BEGIN")
                self._place(db)
        found = []
        with self._reader() as old:
            with self._reader() as new:
                seq, position = self._place(new)
            for each in calls:
                reply = each.run(module_connection(old))
                found.append(Outcome(reply, seq, position))
        return found


class Misplaced(SqliteDatabase):
    """All operations of a batch have the position of the first."""

    def _each(self, db: apsw.Connection, calls: Iterable[Call], taken: list[Call]) -> list[Result]:
        found = super()._each(db, calls, taken)
        first = next((r for r in found if isinstance(r, Outcome) and r.wrote), None)
        return [
            msgspec.structs.replace(r, position=first.position) if first and isinstance(r, Outcome) and r.wrote else r
            for r in found
        ]


def module_connection(db: apsw.Connection) -> Any:
    from plait.gyro.belt.databases.sqlite.connection import SqliteSnapshot

    return SqliteSnapshot(db)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [Undone, Stale, Misplaced])
def test_mutants_are_caught(mutant: type[SqliteDatabase]) -> None:
    for seed in range(610, 620):
        faults, _ = run(seed, made_of=WireCluster, clients=16, servers=2, lenient=True, engine=engine(mutant))
        if faults:
            return
    pytest.fail("no run noticed it")
