"""/health and /ready tell the truth: about the DBMS, the log, the ring and the lag."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plait.cli.main import main
from plait.gyro.belt.databases.postgresql.server import PostgresServer
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.http import ask
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import Fence, LogGoneError
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Entry, Token, chained
from plait.gyro.belt.service.health import Health
from plait.gyro.belt.supervisor import unready
from tests.gyro.belt.processes import processes
from tests.gyro.belt.variants import needs_postgresql
from tests.support.engines import scratch
from tests.support.patience import until


class Ring:
    """No other server."""

    def send(self, server: int, token: Token) -> bool:
        return False

    def hint(self) -> None:
        pass


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    database = SqliteDatabase(tmp_path / "app.db", schema="CREATE TABLE t (a INTEGER PRIMARY KEY)")
    log = EmbeddedLog(tmp_path / "log.db")
    made = Node(0, 1, database, log, Ring())
    yield made
    made.stop()
    database.close()
    log.close()


def ready(node: Node, **options: Any) -> dict[str, Any]:
    return asyncio.run(Health(node, lag=2, **options).ready())


def test_a_server_is_ready_when_it_has_had_the_token(node: Node) -> None:
    assert ready(node)["reasons"] == ["the server has not joined the ring: it has not had the token yet"]
    node.start()
    until(lambda: bool(ready(node)["ready"]), "the token has arrived")


def test_a_server_that_is_behind_is_not_ready(node: Node) -> None:
    node.metrics.visits = 1
    epoch = node.log.reissue(0)
    assert epoch == 1
    node.log.append(chained("", [Entry(n, 1, 1, 1, f"r{n}", "t", b"{}", b"1", b"") for n in range(1, 3)]))
    assert ready(node)["ready"], "two updates are allowed"
    last = node.log.read(1, 1)[0].chain
    node.log.append(chained(last, [Entry(3, 1, 1, 1, "r3", "t", b"{}", b"1", b"")]))
    assert ready(node)["reasons"] == ["the server is 3 updates behind the log; at most 2 are allowed"]


def test_a_log_that_is_an_older_copy_makes_a_server_unready(node: Node) -> None:
    node.metrics.visits, node.applied = 1, 1
    found = ready(node)
    assert (found["ready"], found["reasons"]) == (False, ["the log is behind the server: it is an older copy"])


def test_a_broken_server_is_healthy_but_not_ready(node: Node) -> None:
    node.metrics.visits, node.broken = 1, "ValueError: oh"
    assert ready(node)["reasons"] == ["the server has stopped: ValueError: oh"]
    assert asyncio.run(Health(node, lag=2).health())["healthy"]


def test_a_log_that_does_not_answer(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails, or it hangs: then all probes share one thread, and none of them waits for longer than its patience."""
    node.metrics.visits = 1
    asked: list[int] = []
    release = threading.Event()

    def fails() -> Fence:
        raise LogGoneError("etcd: gone")

    def hangs() -> Fence:
        asked.append(1)
        release.wait()
        return Fence()

    monkeypatch.setattr(node.log, "fence", fails)
    assert ready(node)["reasons"] == ["the log does not answer: etcd: gone"]
    monkeypatch.setattr(node.log, "fence", hangs)
    checks = Health(node, lag=2, patience=0.01)

    async def many() -> list[dict[str, Any]]:
        return await asyncio.gather(*(checks.ready() for _ in range(20)))

    assert all("the log does not answer within 0.01 s" in found["reasons"] for found in asyncio.run(many()))
    assert asyncio.run(Health(node, lag=2).health())["healthy"]
    release.set()
    assert len(asked) == 1


@pytest.mark.slow
@needs_postgresql
def test_probes_of_servers_whose_dbms_stops(capsys: pytest.CaptureFixture[str]) -> None:
    """PostgreSQL stops and comes back; the server process stays."""
    folder = scratch()
    own = PostgresServer(folder)
    own.start()
    try:
        with processes(1, db="postgresql", dsns=[own.dsn]) as cluster:
            (url,) = cluster.settings.urls
            assert (ask(url, "/health")[0], unready(url)) == (200, None)
            assert main(["gyro", "status", url]) == 0
            own.stop(signal.SIGQUIT)
            until(lambda: ask(url, "/health")[0] == 503, "the server is not healthy")
            status, answer = ask(url, "/ready")
            assert status == 503
            assert "PostgreSQL of server 0" in " ".join(json.loads(answer)["reasons"])
            capsys.readouterr()
            assert main(["gyro", "status", url]) == 1
            assert "server 0 is not ready: the DBMS does not answer" in capsys.readouterr().out
            own.start()
            until(lambda: unready(url) is None, "the server is ready again")
            assert cluster.deaths == 0
    finally:
        own.close()
        shutil.rmtree(folder, ignore_errors=True)
