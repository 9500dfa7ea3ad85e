"""What an operation costs: processor time at the server, over HTTP, in frames, and on one plain PostgreSQL.

All servers run at the same time, each alone in its cluster, and are measured in turn, in short slices. So other programs on
the machine disturb all of them alike. Processor time is that of the server process, or of all processes of PostgreSQL,
as the kernel counts it. *HTTP, one by one* executes each operation in its own transaction, as the servers did before
they had batches. Global operations of one visit of the token always share a transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from plait.bench.options import Options
from plait.bench.table import Cell, Column, Plot, Table
from plait.gyro.analysis import analyze
from plait.gyro.belt.application import load
from plait.gyro.belt.client import Client
from plait.gyro.belt.databases.postgresql.server import PostgresServer, programs
from plait.gyro.belt.routing import Route, routes
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.gyro.belt.wire.async_client import AsyncClient
from plait.kernel.extras import needs

CLIENTS = 64
ROWS = 1000
OPERATIONS = {"read": "price", "local write": "fill", "global write": "order"}
APPLICATION = """
def price(db, item):
    return db.execute("SELECT price FROM items WHERE id = ?", (item,)).fetchone()[0]


def fill(db, cart):
    db.execute("UPDATE carts SET n = n + 1 WHERE id = ?", (cart,))
    return db.execute("SELECT n FROM carts WHERE id = ?", (cart,)).fetchone()[0]


def left(db, item):
    return db.execute("SELECT n FROM stock WHERE id = ?", (item,)).fetchone()[0]


def order(db, cart, item):
    db.execute("UPDATE carts SET n = 0 WHERE id = ?", (cart,))
    db.execute("UPDATE stock SET n = n - 1 WHERE id = ?", (item,))
    return db.execute("SELECT n FROM stock WHERE id = ?", (item,)).fetchone()[0]
"""
"""A query by key, a local operation that writes a row, and a global one that writes two."""
SCHEMA = """
CREATE TABLE items (id INTEGER PRIMARY KEY, price INTEGER NOT NULL);
CREATE TABLE carts (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
"""
BASE = "HTTP, one by one"
_TARGETS = {"read": 5.0, "local write": 3.0, "global write": 3.0}
COLUMNS = [
    Column("cpu", "processor time"),
    Column("per_core", "per core"),
    Column("throughput", "measured"),
    Column("ratio", "ratio"),
]


class Slice(NamedTuple):
    """A short measurement."""

    seconds: float
    """Processor time per operation."""
    rate: float
    """Operations per second."""


class Subject(NamedTuple):
    """What is measured."""

    name: str
    processes: Callable[[], list[int]]
    """The processes whose time counts."""
    run: Callable[[str, int, int], None]
    """Executes an operation by name, so many times, with a seed."""


def measure(options: Options) -> Table:
    """Measure all subjects in turn."""
    table = Table(
        "gyro",
        "The cost of an operation at a server",
        COLUMNS,
        "interface",
        f"one server with SQLite, or one PostgreSQL; {CLIENTS} clients with one operation each at a time; processor time "
        "of the server, as the median of slices that take turns; per core: operations per second of processor time; "
        "measured: operations per second, with the clients on the same machine",
        plot=Plot("cpu", "processor time per operation in microseconds; ratio", "ratio"),
    )
    rounds, count = (3, 1920) if options.quick else (7, 3200)
    folder = Path(tempfile.mkdtemp(prefix="plait-gyro-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    slices: dict[tuple[str, str], list[Slice]] = {}
    try:
        with table.measuring(), _subjects(folder, table) as subjects:
            for number in range(rounds + 1):
                options.tell(f"cost: slice {number} of {rounds}")
                for setting, operation in OPERATIONS.items():
                    for subject in subjects:
                        found = _slice(subject, operation, count if number else 200, number)
                        if number:  # the first one warms up
                            slices.setdefault((setting, subject.name), []).append(found)
            _rows(table, slices, [s.name for s in subjects])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    table.summary.append(f"load of the machine at the end: {os.getloadavg()[0]:.1f} ({os.cpu_count()} cores)")
    return table


def _rows(table: Table, slices: dict[tuple[str, str], list[Slice]], names: list[str]) -> None:
    for setting in OPERATIONS:
        costs = {name: statistics.median(s.seconds for s in slices[setting, name]) for name in names}
        for name, cost in costs.items():
            table.add(
                setting,
                name,
                cpu=Cell(cost * 1e6, "µs"),
                per_core=Cell(1 / cost, "1/s"),
                throughput=Cell(statistics.median(s.rate for s in slices[setting, name]), "1/s"),
                ratio=Cell(costs[BASE] / cost, "x"),
            )
        best = min(cost for name, cost in costs.items() if name.startswith("frames"))
        text = f"{setting}: frames need {costs[BASE] / best:.1f} times less processor time than {BASE}"
        if "PostgreSQL" in costs:
            text += f", and {costs['PostgreSQL'] / best:.1f} times less than PostgreSQL"
        table.summary.append(f"{text} (target: {_TARGETS[setting]:g})")


def _slice(subject: Subject, operation: str, count: int, seed: int) -> Slice:
    before = {pid: processor_time(pid) for pid in subject.processes()}
    begin = time.perf_counter()
    subject.run(operation, count, seed)
    took = time.perf_counter() - begin
    used = sum(processor_time(pid) - before.get(pid, 0.0) for pid in subject.processes())
    return Slice(used / count, count / took)


def processor_time(pid: int) -> float:
    """The processor time of all threads of a process, in seconds."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # it has just ended
            total += int(task.read_text().split()[0])
    return total / 1e9


def parameters(operation: str, chance: random.Random) -> dict[str, int]:
    """The parameters of a random call."""
    names = {"price": ("item",), "fill": ("cart",), "order": ("cart", "item")}[operation]
    return {name: chance.randrange(ROWS) for name in names}


# -- subjects ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _subjects(folder: Path, table: Table) -> Iterator[list[Subject]]:
    file = folder / "cost.py"
    file.write_text(APPLICATION, encoding="utf-8")
    (folder / "cost.sql").write_text(SCHEMA, encoding="utf-8")
    known = routes(analyze(file, servers=3))
    with contextlib.ExitStack() as stack:
        found = []
        for name, together in ((BASE, 1), ("together", 64)):
            supervisor = Supervisor(_settings(file, known, folder / name.replace(" ", "-"), together))
            stack.callback(supervisor.stop)
            supervisor.start()
            urls, processes = supervisor.settings.urls, _pids(supervisor)
            by_http = Client(urls, protocol="http")
            stack.callback(by_http.close)
            found.append(Subject(BASE if together == 1 else "HTTP", processes, _threads(by_http)))
            if together > 1:
                in_frames = Client(urls)
                stack.callback(in_frames.close)
                found.append(Subject("frames, threads", processes, _threads(in_frames)))
                found.append(Subject("frames, asyncio", processes, _tasks(urls)))
        if programs() is None:
            table.missing["PostgreSQL"] = "not installed (Debian: postgresql)"
        else:
            server = PostgresServer(folder / "postgresql")
            stack.callback(server.close)
            server.start()
            found.append(_postgresql(server, folder, stack))
        yield found


def _settings(file: Path, known: dict[str, Route], folder: Path, together: int) -> Settings:
    folder.mkdir()
    return Settings(
        application=str(file),
        routes=known,
        schema=SCHEMA + _data(),
        urls=[f"http://127.0.0.1:{port}" for port in free_ports(1)],
        folder=str(folder),
        secret="measurement",
        lost=30.0,
        together=together,
    )


def _data() -> str:
    rows = {"items": 5, "carts": 0, "stock": 1_000_000}
    return "\n".join(
        f"INSERT INTO {name} VALUES {', '.join(f'({n}, {value})' for n in range(ROWS))};"
        for name, value in rows.items()
    )


def _pids(supervisor: Supervisor) -> Callable[[], list[int]]:
    return lambda: [process.pid for process in supervisor._processes.values()]


def _each(count: int, work: Callable[[int, int], None]) -> None:
    """Run clients in threads; each gets its number and how many operations to call."""
    failures: list[BaseException] = []

    def attempt(number: int) -> None:
        try:
            work(number, count // CLIENTS)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _threads(client: Client) -> Callable[[str, int, int], None]:
    """Clients are threads, each with its own connection."""

    def run(operation: str, count: int, seed: int) -> None:
        def work(number: int, calls: int) -> None:
            chance = random.Random(100 * seed + number)
            for _ in range(calls):
                client.send(operation, parameters(operation, chance))

        _each(count, work)

    return run


def _tasks(urls: list[str]) -> Callable[[str, int, int], None]:
    """Clients are tasks that share a connection."""

    def run(operation: str, count: int, seed: int) -> None:
        async def work(client: AsyncClient, number: int) -> None:
            chance = random.Random(100 * seed + number)
            for _ in range(count // CLIENTS):
                await client.send(operation, parameters(operation, chance))

        async def everybody() -> None:
            async with await AsyncClient.connect(urls) as client:
                await asyncio.gather(*(work(client, number) for number in range(CLIENTS)))

        with asyncio.Runner(loop_factory=_loop()) as runner:
            runner.run(everybody())

    return run


def _loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fast event loop, if it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _postgresql(server: PostgresServer, folder: Path, stack: contextlib.ExitStack) -> Subject:
    """Clients are threads, each with its own connection and prepared statements. Writers are serializable."""
    with needs("serve"):
        import psycopg
        from psycopg import errors

    with psycopg.connect(server.dsn, autocommit=True) as db:
        db.execute(SCHEMA + _data())
    connections = [psycopg.connect(server.dsn, autocommit=True, prepare_threshold=0) for _ in range(CLIENTS)]
    for connection in connections:
        stack.callback(connection.close)
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    file = folder / "plain.py"
    file.write_text(APPLICATION.replace("?", "%s"), encoding="utf-8")
    module = load(str(file))

    def run(operation: str, count: int, seed: int) -> None:
        def work(number: int, calls: int) -> None:
            chance = random.Random(100 * seed + number)
            for _ in range(calls):
                given = parameters(operation, chance)
                while True:
                    try:
                        with connections[number].transaction():
                            getattr(module, operation)(connections[number], **given)
                        break
                    except (errors.SerializationFailure, errors.DeadlockDetected):
                        continue

        _each(count, work)

    return Subject("PostgreSQL", lambda: _family(server.pid), run)


def _family(parent: int) -> list[int]:
    """A process and its children."""
    found = [parent]
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(file.parent.name))
    return found
