"""Limits on requests: the rate per client and in total, and the number of waiting operations."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.bench.gyro.faults import board
from plait.gyro.belt.application import Application, load
from plait.gyro.belt.client import Client
from plait.gyro.belt.databases.sqlite.database import SqliteDatabase
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Token
from plait.gyro.belt.server import Server
from plait.gyro.belt.service.limits import Limits
from plait.gyro.belt.settings import Settings
from tests.gyro.belt.processes import processes
from tests.gyro.belt.runs import board_routes


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@given(
    rate=st.sampled_from([0.5, 1.0, 7.0, 100.0]),
    gaps=st.lists(st.floats(0, 2), min_size=1, max_size=200),
)
def test_no_window_has_more_than_the_rate_and_one_burst(rate: float, gaps: list[float]) -> None:
    """The law of the leaky bucket, for all pairs of admitted requests; and the waiting time is the right one."""
    clock = Time()
    limits = Limits(client=rate, clock=clock)
    admitted: list[float] = []
    for gap in gaps:
        clock.now += gap / rate
        if (pause := limits.wait("a")) == 0:
            admitted.append(clock.now)
        else:
            assert Limits.wait(limits, "a") == pause, "a refused request does not count"
            clock.now += pause + 1e-6
            assert limits.wait("a") == 0
            admitted.append(clock.now)
    burst = max(1.0, 1 / rate)
    for first, begin in enumerate(admitted):
        for last in range(first, len(admitted)):
            assert last - first + 1 <= rate * (admitted[last] - begin + burst) + 1e-3


def test_a_client_at_the_rate_is_never_refused() -> None:
    clock = Time()
    limits = Limits(client=10, clock=clock)
    for _ in range(1000):
        assert limits.wait("a") == 0
        clock.now += 0.1


def test_one_client_does_not_use_up_what_another_has() -> None:
    limits = Limits(client=3, total=5, clock=Time())
    assert [limits.wait("a") == 0 for _ in range(5)] == [True] * 3 + [False] * 2
    assert [limits.wait("b") == 0 for _ in range(3)] == [True, True, False], "the total is used up"
    site = Limits(client=1, clock=Time())
    assert site.wait("2001:db8::1") == 0
    assert site.wait("2001:db8::2") > 0, "one site"
    assert site.wait("2001:db8:0:1::1") == 0


def test_without_limits_nothing_is_refused() -> None:
    limits = Limits(clock=Time())
    assert not any(limits.wait("a") for _ in range(10_000))


class Nobody:
    """The token never comes."""

    def send(self, server: int, token: Token) -> bool:
        return False

    def hint(self) -> None:
        pass


async def post(server: Server, operation: str, parameters: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    """Send a request to the ASGI application."""
    body = json.dumps({"parameters": parameters}).encode()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": f"/call/{operation}", "headers": [], "client": ("192.0.2.1", 1),
        "query_string": b"",
    }  # fmt: skip
    await server(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, json.loads(sent[1]["body"])


def test_waiting_operations_are_limited(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "app.db", schema=board.SCHEMA)
    log = EmbeddedLog(tmp_path / "log.db")
    node = Node(0, 1, database, log, Nobody())  # it is not started, so all global operations wait
    settings = Settings(str(board.__file__), board_routes(), "", ["http://a:1"], str(tmp_path), queue=2, wait=0.3)
    server = Server(0, settings, Application(load(settings.application), settings.routes), node)

    async def three() -> Any:
        return await asyncio.gather(
            *(post(server, "move", {"source": 0, "target": 0, "value": n}) for n in range(3)),
            post(server, "notes", {"owner": 0}),
        )

    *moves, read = asyncio.run(three())
    assert read[0] == 200, "others go on"
    assert [status for status, _, _ in moves] == [503] * 3
    assert [answer["error"] == "2 operations already wait" for _, _, answer in moves] == [False, False, True]
    assert moves[2][1]["retry-after"] == "1"
    assert node.metrics.limited == 1
    database.close()
    log.close()


@pytest.mark.slow
def test_a_client_that_is_too_fast_is_told_to_wait() -> None:
    """The client waits and sends again; others are told when. What a client says about its address is not believed."""
    with processes(1, client_rate=2.0) as cluster:
        (url,) = cluster.settings.urls
        client = Client(url)
        found = [
            client.peers[0].request(
                "POST", "/call/notes", b'{"parameters": {"owner": 0}}', {"X-Forwarded-For": f"10.0.0.{n}"}
            )
            for n in range(20)
        ]
        refused = [json.loads(answer) for status, answer in found if status == 429]
        assert refused, "twenty requests take far less than ten seconds"
        assert {answer["error"] for answer in refused} == {"too many requests"}
        assert all(0 < answer["retry_after"] <= 0.5 for answer in refused)
        assert (
            b'plait_gyro_limited_total{server="0"} %d' % len(refused) in client.peers[0].request("GET", "/metrics")[1]
        )
        assert client.call("notes", owner=0) is not None
        client.close()
