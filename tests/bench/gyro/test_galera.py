"""The peer of the measurements: relays hold messages back and keep their order, MariaDB takes the applications' SQL."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from plait.bench.gyro.deployment import routed
from plait.bench.gyro.galera import Galera, missing
from plait.bench.gyro.mariadb import GaleraDatabase, ddl
from plait.bench.gyro.relay import pump
from plait.gyro.analysis import analyze
from plait.gyro.belt.application import Application, load
from plait.gyro.belt.databases.mariadb import server
from plait.gyro.belt.records import OperationError
from plait.gyro.belt.routing import routes
from plait.kernel.errors import UsageError

STORE = Path(__file__).parents[3] / "examples" / "gyro" / "store.py"


def test_a_relay_delays_and_keeps_the_order() -> None:
    async def run() -> tuple[float, bytes]:
        received = asyncio.Queue[bytes]()

        async def sink(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found = await reader.read()
            writer.close()
            await writer.wait_closed()
            received.put_nowait(found)

        server = await asyncio.start_server(sink, "127.0.0.1")
        reader = asyncio.StreamReader()
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        begin = time.monotonic()
        task = asyncio.create_task(pump(reader, writer, 0.05))
        for number in range(20):
            reader.feed_data(b"%d " % number)
            await asyncio.sleep(0)
        reader.feed_eof()
        found = await received.get()
        took = time.monotonic() - begin
        await task
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        return took, found

    took, found = asyncio.run(run())
    assert found.split() == [b"%d" % n for n in range(20)]
    assert took >= 0.05


def test_schemas_are_written_for_mariadb() -> None:
    made = ddl(load(str(STORE)).SCHEMA)
    assert all(m.startswith("CREATE TABLE") for m in made)
    assert not any("TEXT" in m for m in made)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server, "program", lambda _: None)
    assert "apt-get install mariadb-server galera-4" in str(missing(far=False))
    with pytest.raises(UsageError, match="Galera cannot start") as error:
        Galera(tmp_path, [[0.0]])
    assert "mariadbd is not installed" in str(error.value.hint)


@pytest.mark.slow
@pytest.mark.skipif(missing(far=True) is not None, reason=str(missing(far=True)))
def test_group_communication_sees_the_distance() -> None:
    with TemporaryDirectory(prefix="plait-galera-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # MariaDB runs as another user
        _see_the_distance(Path(folder) / "g")


def _see_the_distance(folder: Path) -> None:
    module = load(str(STORE))
    application = Application(module, routed(routes(analyze(STORE)), "galera"))
    cluster = Galera(folder, [[0.0, 0.1], [0.1, 0.0]])
    cluster.start(module.SCHEMA + "INSERT INTO items VALUES (1, 'book', 50);")
    try:
        one, other = (GaleraDatabase(s, server=n) for n, s in enumerate(cluster.sockets))
        begin = time.monotonic()
        one.write(application.call("a", "create", {"cart": 7}))
        assert time.monotonic() - begin >= 0.2  # there and back, before it is committed
        with pytest.raises(OperationError, match="Duplicate entry"):
            other.write(application.call("b", "create", {"cart": 7}))
        one.close()
        other.close()
    finally:
        cluster.close()
