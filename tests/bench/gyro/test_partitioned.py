"""The baseline with partitioned data: the same results as one database, and no anomaly between two servers."""

from __future__ import annotations

import itertools
import random
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from psycopg import errors

from plait.bench.gyro.partitioned import PartitionedConnection, PartitionedDatabase, Transaction, fill
from plait.bench.gyro.partitioned_statements import Layout, plan
from plait.bench.gyro.workloads import RUBIS_PARTITIONS, TPCW_PARTITIONS, Session, Workload
from plait.gyro.analysis import analyze
from plait.gyro.belt.application import Application, load
from plait.gyro.belt.databases.postgresql.server import programs
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.records import Call
from plait.gyro.belt.routing import routes
from plait.kernel.errors import UsageError
from tests.bench.gyro.studies import WORKLOADS
from tests.support.engines import Postgresql, scratch

needs_postgresql = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
PARTITIONS = {"TPC-W": TPCW_PARTITIONS, "RUBiS": RUBIS_PARTITIONS}


@pytest.fixture
def engine() -> Iterator[Postgresql]:
    folder = scratch()
    engine = Postgresql(folder, "")
    yield engine
    engine.close()
    shutil.rmtree(folder, ignore_errors=True)


LAYOUT = Layout(
    {"cart": ["id", "n"], "line": ["cart", "item", "n"], "item": ["id", "stock"]}, {"cart": "id", "line": "cart"}, 3
)


def test_a_statement_with_a_key_needs_one_server() -> None:
    assert plan("SELECT n FROM cart WHERE id = ?", LAYOUT).keys == ["p0"]
    assert plan("SELECT stock FROM item", LAYOUT).keys == []
    joined = plan(
        "SELECT item FROM cart, line AS l, item WHERE cart.id = l.cart AND item.id = item AND cart.id = ?", LAYOUT
    )
    assert joined.keys == ["p0", "p0"]
    assert plan("SELECT n FROM cart WHERE n = ? OR id = ?", LAYOUT).keys is None
    assert plan("SELECT c.n FROM cart AS c LEFT JOIN line AS l ON l.cart = c.id WHERE c.id = ?", LAYOUT).keys is None
    assert plan("UPDATE line SET n = ? WHERE item = ? AND cart = ?", LAYOUT).keys == ["p2"]
    assert plan("DELETE FROM line WHERE item = ?", LAYOUT).keys is None
    assert plan("INSERT INTO line (item, cart) VALUES (?, ?)", LAYOUT).keys == ["p1"]
    assert plan("INSERT INTO cart (n) VALUES (?)", LAYOUT).keys == []


def test_conditions_on_one_table_are_evaluated_where_its_rows_are() -> None:
    found = plan("SELECT line.n FROM line, item WHERE line.item = item.id AND line.n > ? AND stock = 1", LAYOUT)
    (gathered,) = found.gathered
    assert gathered.sql == "SELECT to_jsonb(x.*) FROM (SELECT * FROM line AS line WHERE line.n > %(p0)s) AS x"
    assert gathered.keys is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO cart SELECT * FROM cart", "reads a partitioned table"),
        ("UPDATE item SET stock = (SELECT COUNT(*) FROM line)", "reads a partitioned table"),
        ("UPDATE cart SET id = 1", "cannot move rows"),
        ("SELECT 1 UNION SELECT 2", "cannot execute"),
    ],
)
def test_what_is_not_supported_is_refused(sql: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan(sql, LAYOUT)


_TIMES = {"sc_time", "c_login", "c_expiration", "o_date", "date", "start_date", "creation_date", "end_date"}
_TIES = {"do_subject_search", "do_title_search", "do_author_search", "get_new_products", "get_best_sellers"}
"""Queries with LIMIT whose order is not total: any of several results is correct."""


@pytest.mark.slow
@needs_postgresql
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_the_results_are_those_of_one_database(workload: Workload, engine: Postgresql, tmp_path: Path) -> None:
    """Three servers and SQLite execute the same operations. Replies and all rows agree, but for times and unused ids."""
    partitioned = PARTITIONS[workload.name]
    module = load(workload.application)
    known = routes(analyze(workload.application))
    dsns = [engine.dsn(n) for n in range(3)]
    fill(dsns, module.SCHEMA + workload.data, partitioned)
    one = SqliteDatabase(tmp_path / "x.db", server=0, servers=3, schema=module.SCHEMA + workload.data)
    many = PartitionedDatabase(dsns, partitioned, server=0)
    application = Application(module, known)
    names = itertools.count()

    def send(operation: str, parameters: dict[str, Any]) -> Any:
        call = application.call(f"r{next(names)}", operation, parameters)
        replies = []
        for database in (one, many):
            outcome = database.read(call) if known[operation].read_only else database.write(call)
            replies.append(msgspec.json.decode(outcome.reply))
        if operation in _TIES:
            assert len(replies[0]) == len(replies[1])
        else:
            assert _without_times(replies[0]) == _without_times(replies[1]), operation
        return replies[0]

    session = Session(0, 3, random.Random(5))
    for _ in range(40):
        workload.page(session, send)
    columns = {name: [c for c in cs if c not in _TIMES] for name, cs in many.layout.columns.items()}
    assert many.wide > 2
    many.close()
    one.close()
    for table, kept in columns.items():
        if table in ("bids", "buy_now", "comments"):
            kept = [c for c in kept if c != "id"]  # each server generates its own
        if table == "order_line":
            kept = [c for c in kept if c != "ol_id"]  # the query of the cart has no order
        query = f"SELECT {', '.join(kept)} FROM {table}"
        expected = sorted(map(repr, _numbers(_sqlite(tmp_path / "x.db", query))))
        parts = [sorted(map(repr, _numbers(engine.rows(n, query)))) for n in range(3)]
        if table in partitioned:
            assert sorted(itertools.chain(*parts)) == expected, table
        else:
            assert parts == [expected] * 3, table


def _sqlite(file: Path, query: str) -> list[tuple[Any, ...]]:
    import sqlite3

    with sqlite3.connect(file) as db:
        return db.execute(query).fetchall()


def _numbers(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(float(v) if isinstance(v, int | float) else v for v in row) for row in rows]


def _without_times(value: Any) -> Any:
    """A reply without times, and with lists in a canonical order: the order of rows with equal dates is open."""
    if isinstance(value, list):
        return sorted((_without_times(v) for v in value), key=repr)
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items()}
    if isinstance(value, str) and value[:2] == "20" and value[4:5] == "-":
        return "time"
    return float(value) if isinstance(value, int | float) else value


ACCOUNTS = "CREATE TABLE account (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO account VALUES (0, 1), (1, 1);"


def _part(database: PartitionedDatabase, *, reads: bool = False) -> tuple[Transaction, PartitionedConnection]:
    transaction = Transaction(database, reads=reads)
    return transaction, PartitionedConnection(transaction)


def _skew(databases: list[PartitionedDatabase]) -> int:
    """Two doctors go off duty if the other one is on duty. Each row is at its own server. Returns who is left."""
    begun = [_part(d) for d in databases]
    for number, (_, db) in enumerate(begun):
        (other,) = db.execute("SELECT n FROM account WHERE id = ?", (1 - number,)).fetchone()  # type: ignore[misc]
        assert other == 1
    refused = 0
    for number, (transaction, db) in enumerate(begun):
        try:
            db.execute("UPDATE account SET n = 0 WHERE id = ?", (number,))
            transaction.commit()
        except errors.SerializationFailure:
            refused += 1
        finally:
            transaction.close()
    return refused


@pytest.mark.slow
@needs_postgresql
@pytest.mark.parametrize("gated", [True, False])
def test_write_skew_between_servers_is_refused(engine: Postgresql, gated: bool) -> None:
    """Each server sees only one rw-dependency, so PostgreSQL alone does not refuse it. The gate does."""
    dsns = [engine.dsn(n) for n in range(2)]
    fill(dsns, ACCOUNTS, {"account": "id"})
    databases = [PartitionedDatabase(dsns, {"account": "id"}, server=n) for n in range(2)]
    try:
        for database in databases:
            database.gated = gated
        assert _skew(databases) == (1 if gated else 0)
        left = sum(n for server in range(2) for (n,) in engine.rows(server, "SELECT n FROM account"))
        assert left == (1 if gated else 0)
    finally:
        for database in databases:
            database.close()


class Interrupted(PartitionedDatabase):
    """A wide query takes its snapshots one after the other. After the first one, it lets another transaction run."""

    def everywhere(self, act: Callable[[int], None], servers: Iterable[int]) -> None:
        for number, server in enumerate(servers):
            act(server)
            if number == 0:
                self.between()

    between: Callable[[], None]


@pytest.mark.slow
@needs_postgresql
@pytest.mark.parametrize("ordered", [True, False])
def test_a_query_does_not_see_half_of_a_transaction(engine: Postgresql, ordered: bool) -> None:
    """A transfer commits while a query takes its snapshots. With the lock, it waits for the query."""
    dsns = [engine.dsn(n) for n in range(2)]
    fill(dsns, ACCOUNTS, {"account": "id"})
    writing = PartitionedDatabase(dsns, {"account": "id"}, server=1)
    reading = Interrupted(dsns, {"account": "id"}, server=0)
    for database in (reading, writing):
        database.ordered = ordered

    def transfer(db: Any) -> bytes:
        db.execute("UPDATE account SET n = n - 1 WHERE id = 0")
        db.execute("UPDATE account SET n = n + 1 WHERE id = 1")
        return b"null"

    def audit(db: Any) -> bytes:
        (total,) = db.execute("SELECT SUM(n) FROM account").fetchone()
        return msgspec.json.encode(int(total))

    thread = threading.Thread(target=writing.write, args=(Call("t", "transfer", {}, transfer),))
    begun: list[bool] = []

    def between() -> None:
        if not begun:
            begun.append(True)
            thread.start()
            thread.join(0.3 if ordered else None)

    reading.between = between
    try:
        total = msgspec.json.decode(reading.read(Call("", "audit", {}, audit)).reply)
        thread.join()
        assert total == (2 if ordered else 3)
        assert [engine.rows(n, "SELECT n FROM account") for n in range(2)] == [[(0,)], [(2,)]]
    finally:
        writing.close()
        reading.close()


@pytest.mark.slow
@needs_postgresql
def test_concurrent_transfers(engine: Postgresql) -> None:
    """The sum over all servers is the same in every reply, and no transfer is lost."""
    count, dsns = 12, [engine.dsn(n) for n in range(3)]
    rows = ", ".join(f"({n}, 100)" for n in range(count))
    schema = f"CREATE TABLE account (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO account VALUES {rows};"
    fill(dsns, schema, {"account": "id"})
    databases = [PartitionedDatabase(dsns, {"account": "id"}, server=n) for n in range(3)]
    expected = dict.fromkeys(range(count), 100)
    sums: list[int] = []
    failures: list[BaseException] = []

    def audit(db: Any) -> bytes:
        (total,) = db.execute("SELECT SUM(n) FROM account").fetchone()
        return msgspec.json.encode(int(total))

    def work(number: int, pairs: list[list[int]]) -> None:
        try:
            for one, other in pairs:

                def transfer(db: Any, one: int = one, other: int = other) -> bytes:
                    found = [db.execute("SELECT n FROM account WHERE id = ?", (a,)).fetchone()[0] for a in (one, other)]
                    for account, n in ((one, found[0] - 1), (other, found[1] + 1)):
                        db.execute("UPDATE account SET n = ? WHERE id = ?", (n, account))
                    return b"null"

                databases[number % 3].write(Call("", "transfer", {}, transfer))
                sums.append(msgspec.json.decode(databases[number % 3].read(Call("", "audit", {}, audit)).reply))
        except BaseException as error:
            failures.append(error)

    choose = random.Random(1)
    work_of = [[choose.sample(range(count), 2) for _ in range(10)] for _ in range(4)]
    for one, other in itertools.chain(*work_of):
        expected[one] -= 1
        expected[other] += 1
    threads = [threading.Thread(target=work, args=each) for each in enumerate(work_of)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for database in databases:
        database.close()
    assert not failures
    assert set(sums) == {100 * count}
    assert dict(row for n in range(3) for row in engine.rows(n, "SELECT id, n FROM account")) == expected
