"""The binary protocol: the same answers as by HTTP, many requests on one connection, and connections that break."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import socket
import struct
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.gyro.belt.client import CallError, Client
from plait.gyro.belt.http import Peer
from plait.gyro.belt.wire.async_client import AsyncClient
from plait.gyro.belt.wire.cluster import Sending
from plait.gyro.belt.wire.frames import PREAMBLE, REPLY, Replies, request
from plait.gyro.belt.wire.link import Link, NoFramesError
from plait.kernel.errors import UsageError
from tests.gyro.belt.authority import Authority
from tests.gyro.belt.processes import Processes, processes
from tests.support.patience import PATIENCE, until

LIMIT = 2000


def encoded(replies: list[tuple[int, int, bytes]]) -> bytes:
    return PREAMBLE + b"".join(REPLY.pack(6 + len(body), number, status) + body for number, status, body in replies)


@given(
    replies=st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 999), st.binary(max_size=40)), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=10),
)
def test_replies_are_found_wherever_the_stream_is_cut(replies: list[tuple[int, int, bytes]], cuts: list[int]) -> None:
    data = encoded(replies)
    parser = Replies()
    found = []
    places = sorted({0, len(data), *(c for c in cuts if c < len(data))})
    for begin, end in itertools.pairwise(places):
        found += list(parser.feed(data[begin:end]))
    assert found == replies


def test_another_protocol_is_noticed_at_its_first_bytes() -> None:
    with pytest.raises(ValueError, match="expected the binary protocol"):
        list(Replies().feed(b"HTTP/1.1 400 Bad Request\r\n"))


@pytest.fixture(scope="module")
def servers() -> Iterator[Processes]:
    with processes(2, limit=LIMIT) as found:
        yield found


@pytest.fixture
def line(servers: Processes) -> Iterator[socket.socket]:
    parts = urllib.parse.urlsplit(servers.settings.urls[0])
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as found:
        yield found


def answers(line: socket.socket, count: int) -> list[tuple[int, int, Any]]:
    parser, found = Replies(), []
    while len(found) < count:
        data = line.recv(65536)
        assert data, "the server closed the connection"
        found += [(number, status, json.loads(body)) for number, status, body in parser.feed(data)]
    return found


BODIES = [
    ("fly", b"{}"),
    ("fl\u00fcge", b"{}"),
    ("", b"{}"),
    ("notes", b""),
    ("note", b"{}"),
    ("note", b'{"parameters": {"owner": 0}}'),
    ("note", b'{"parameters": {"owner": 0, "value": 1, "colour": 2}}'),
    ("note", b'{"parameters": {"owner": "0", "value": 1}}'),
    ("note", b'{"parameters": {"owner": 0.5, "value": 1}}'),
    ("note", b'{"parameters": {"owner": null, "value": 1}}'),
    ("note", b'{"parameters": [1]}'),
    ("note", b"{"),
    ("note", b'\xff{"parameters": {}}'),
    ("note", b'{"parameters": {"owner": 0, "value": %s' % (b"[" * 1900)),
    ("note", b'{"request": "a\\u0000", "parameters": {"owner": 0, "value": 1}}'),
    ("note", b'{"parameters": {"owner": 0, "value": {"a": 1}}}'),
    ("note", b'{"parameters": {"owner": 0, "value": "%s"}}' % (b"x" * 3000)),
    ("notes", b'{"parameters": {"owner": 1}}'),
    ("notes", b'{"parameters": {"owner": 2.0}}'),
    ("look", b'{"parameters": {"first": 0, "second": 1}}'),
]


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "body"), BODIES)
def test_answers_are_those_of_http(servers: Processes, operation: str, body: bytes) -> None:
    """Also for bad requests, redirects, and keys in another form."""
    url = servers.settings.urls[0]
    link, peer = Link(url, timeout=PATIENCE), Peer(url, timeout=PATIENCE)
    try:
        assert link.call(operation, body) == peer.call(operation, body)
    finally:
        link.close()
        peer.close()


@pytest.mark.slow
def test_a_request_that_is_too_large_is_skipped_and_others_are_answered(line: socket.socket) -> None:
    small = b'{"parameters": {"owner": 0}}'
    frames = [request(1, b"notes", small), request(2, b"note", b"x" * 300_000), request(3, b"notes", small)]
    line.sendall(PREAMBLE + b"".join(frames))
    found = {number: (status, answer) for number, status, answer in answers(line, 3)}
    assert found[1] == found[3]
    assert found[1][0] == 200
    assert found[2] == (413, {"error": "the request has 300000 bytes", "hint": f"send at most {LIMIT} bytes"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0plait\0\2" + request(0, b"notes", b"{}"), "version"),
        (b"\0" * 40, "version"),
        (PREAMBLE + struct.pack(">IIB", 3, 7, 0), "length"),
        (PREAMBLE + struct.pack(">IIB", 9, 7, 200) + b"note", "length"),
    ],
)
def test_what_is_no_frame_is_refused_and_the_connection_ends(line: socket.socket, data: bytes, said: str) -> None:
    line.sendall(data)
    ((_, status, answer),) = answers(line, 1)
    assert status == 400
    assert said in answer["error"]
    assert line.recv(100) == b""


@pytest.mark.slow
def test_a_client_that_reads_late_gets_all_replies(servers: Processes, line: socket.socket) -> None:
    """Its requests wait in the buffers of the kernel, not in the memory of the server."""
    body = b'{"parameters": {"first": 0, "second": 1}}'
    sender = threading.Thread(
        target=line.sendall, args=(PREAMBLE + b"".join(request(n, b"look", body) for n in range(5000)),)
    )
    sender.start()
    found = answers(line, 5000)
    sender.join(PATIENCE)
    assert sorted(number for number, _, _ in found) == list(range(5000))
    assert {status for _, status, _ in found} <= {200, 503}, "503: too many wait"


@pytest.mark.slow
def test_threads_and_tasks_call_all_classes_of_operations(servers: Processes) -> None:
    """Each request is executed once, at the server that it belongs to."""
    client = Client(servers.settings.urls, timeout=PATIENCE)
    before = client.call("notes", owner=3).split()
    calls = [("note", {"owner": 3, "value": 500_000 + n}) for n in range(150)]
    calls += [("move", {"source": 1, "target": 2, "value": 600_000 + n}) for n in range(50)]
    replies = client.send_all([*calls, ("fly", {})])
    assert isinstance(replies[-1], CallError)
    assert replies[-1].status == 404

    async def tasks() -> None:
        async with await AsyncClient.connect(servers.settings.urls) as many:
            await asyncio.gather(*(many.call("note", owner=3, value=700_000 + n) for n in range(150)))
            assert (await many.send("notes", {"owner": 3}, at=0)).server == 1, "it follows a redirect"
            with pytest.raises(CallError, match="no operation fly"):
                await many.call("fly")

    asyncio.run(tasks())
    after = client.call("notes", owner=3).split()
    assert sorted(after[len(before) :]) == sorted(str(b + n) for b in (500_000, 700_000) for n in range(150))
    board = dict(client.call("look", first=1, second=2))[1].split()
    assert [board.count(str(600_000 + n)) for n in range(50)] == [1] * 50
    assert all(link is not None for link in client._links), "in frames"
    client.close()


@pytest.mark.slow
def test_a_connection_that_breaks_does_not_repeat_an_operation() -> None:
    """Servers die under many requests of one connection; what was answered or not is there once in the end."""
    with processes(2) as cluster:

        async def tasks() -> None:
            async with await AsyncClient.connect(cluster.settings.urls, patience=PATIENCE, timeout=PATIENCE) as client:
                calls = [client.call("note", owner=n % 2, value=n) for n in range(200)]
                calls += [client.call("move", source=n % 2, target=n % 2, value=n) for n in range(200)]
                running = asyncio.gather(*calls)
                for server in (0, 1):
                    await asyncio.sleep(0.2)
                    await asyncio.to_thread(cluster.supervisor.kill, server)
                await running

        asyncio.run(tasks())
        for server in (0, 1):
            notes = cluster.client.call("notes", owner=server).split()
            assert sorted(map(int, notes)) == list(range(server, 200, 2))
            board = dict(cluster.client.call("look", first=server, second=server))[server].split()
            assert sorted(map(int, board)) == list(range(server, 200, 2))


@pytest.mark.slow
def test_limits_count_requests_in_frames() -> None:
    with processes(1, client_rate=2.0) as cluster:
        (url,) = cluster.settings.urls
        link = Link(url, timeout=PATIENCE)
        found = link.calls([("notes", b'{"parameters": {"owner": 0}}')] * 20)
        refused = [json.loads(answer) for status, answer in found if status == 429]
        assert refused
        assert all(answer["error"] == "too many requests" and answer["retry_after"] > 0 for answer in refused)
        link.close()
        assert len(cluster.client.send_all([("notes", {"owner": 0})] * 4)) == 4, "a client waits, and sends again"


@pytest.mark.slow
def test_a_server_that_ends_answers_what_it_executes() -> None:
    """SIGTERM closes idle connections, too."""
    with processes(1) as cluster:
        link = Link(cluster.settings.urls[0], timeout=PATIENCE)
        assert link.call("notes", b'{"parameters": {"owner": 0}}')[0] == 200
        process = cluster.supervisor._processes[0]
        with cluster._paused():
            process.send_signal(signal.SIGTERM)
            until(lambda: process.poll() is not None, "the server ends")
        assert process.returncode in (0, -signal.SIGTERM)
        link.close()


@pytest.mark.slow
def test_frames_over_tls_need_the_right_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with processes(2, tls=authority.tls("server", clients="required")) as cluster:
        tls = cluster.settings.tls
        assert tls is not None
        trust = {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key}

        async def tasks() -> None:
            async with await AsyncClient.connect(cluster.settings.urls, **trust) as client:
                await asyncio.gather(*(client.call("move", source=0, target=1, value=n) for n in range(30)))

        asyncio.run(tasks())
        assert len(dict(cluster.client.call("look", first=0, second=1))[0].split()) == 30
        assert all(link is not None for link in cluster.client._links), "in frames"
        with pytest.raises(UsageError, match="no server answers"):
            asyncio.run(AsyncClient.connect(cluster.settings.urls, ca=tls.ca))


class Proxy(threading.Thread):
    """Answers as a proxy that knows only HTTP."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def run(self) -> None:
        connection, _ = self._socket.accept()
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()
        self._socket.close()


def test_a_proxy_that_knows_only_http_is_noticed() -> None:
    proxy = Proxy()
    proxy.start()
    link = Link(proxy.url, timeout=PATIENCE)
    with pytest.raises(NoFramesError):
        link.call("notes", b"{}")
    link.close()
    proxy.join(PATIENCE)


@pytest.mark.parametrize("status", [502, 503, 504, 429])
def test_a_proxy_that_says_in_html_that_a_server_is_away_is_asked_again(status: int) -> None:
    page = b"<html><h1>Bad Gateway</h1>\n</html>"
    sending = Sending("note", {"owner": 1}, "", 0, patience=PATIENCE)
    assert sending.answered(status, page) is None
    assert sending.wait > 0
    with pytest.raises(CallError, match=f"with status {status}: <html><h1>Bad Gateway</h1> </html>") as error:
        Sending("note", {}, "", 0, patience=0).answered(status, page)
    assert error.value.status == status


@pytest.mark.parametrize(
    ("status", "answer"), [(200, b"<html>Welcome</html>"), (404, b"Not Found"), (307, b""), (307, b"{}"), (500, b"[1]")]
)
def test_what_is_no_answer_of_a_server_is_an_error_of_the_call(status: int, answer: bytes) -> None:
    with pytest.raises(CallError) as error:
        Sending("note", {}, "", 0, patience=PATIENCE).answered(status, answer)
    assert error.value.status == status
