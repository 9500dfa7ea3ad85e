"""Safe: only the page is let in, limits hold, and no request gives an error of the server."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.explore import guard
from tests.explore.server import PLAIT, Served, explored
from tests.support.patience import PATIENCE, started, until

MODEL = """
import time
from plait import Process, System, action

class Sleeper(Process):
    n: int = 0

    @action(when=lambda self: self.n == 0)
    def hang(self):
        while True:
            self.n += 1

    @action(when=lambda self: self.n == 0)
    def up(self):
        self.n = 1

model = System([Sleeper()])
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with explored("ping_pong") as found:
        yield found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}"}, 200),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "evil.example:{port}"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "127.0.0.1:{port}.evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://localhost:{port}"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Plait-Secret": None}, 401),
        ({"X-Plait-Secret": ""}, 401),
        ({"X-Plait-Secret": "0" * 32}, 401),
        ({"X-Plait-Secret": "ä"}, 401),
    ],
    ids=str,
)
def test_who_is_let_in(served: Served, headers: dict[str, str | None], status: int) -> None:
    sent = {name: value and value.format(port=served.port) for name, value in headers.items()}
    answer = served.ask("GET", "/api/model", headers=sent)
    assert answer.status == status, answer
    if status != 200:
        assert answer.json["error"]["hint"] == "open the address that plait explore printed"


def test_every_answer_has_the_policy(served: Served) -> None:
    for method, path in [("GET", "/"), ("GET", "/api/model"), ("GET", "/nope"), ("PUT", "/api/walk")]:
        headers = served.ask(method, path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["connect-src"] == policy["script-src"] == policy["style-src"] == "'self'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_a_preflight_is_not_answered(served: Served) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    assert served.ask("OPTIONS", "/api/walk", headers=asked).status == 403


def test_it_listens_on_loopback_only(served: Served) -> None:
    listening = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(file).read_text().splitlines()[1:]:
            address, port = line.split()[1].rsplit(":", 1)
            if line.split()[3] == "0A" and int(port, 16) == served.port:
                listening.add(address)
    assert listening == {"0100007F"}


@pytest.mark.parametrize(
    ("host", "given", "own"),
    [
        ("0.0.0.0", "192.168.1.5:80", True),
        ("0.0.0.0", "evil.example:80", False),
        ("0.0.0.0", "192.168.1.5:81", False),
        ("192.168.1.5", "192.168.1.5:80", True),
        ("192.168.1.5", "192.168.1.6:80", False),
        ("::1", "[::1]:80", True),
        ("127.0.0.1", "192.168.1.5:80", False),
    ],
)
def test_hosts_with_the_option(host: str, given: str, own: bool) -> None:
    async def app(*_: Any) -> None: ...

    assert guard.Guard(app, secret="s", host=host, port=80)._is_own(given) == own


ENDPOINTS = ["/api/walk", "/api/search", "/api/graph", "/api/export"]
KEYS = ["run", "initial", "steps", "watches", "compare", "have", "kind", "from", "expression", "lane", "handler"]
KEYS += ["options", "projection", "fields", "lanes", "most", "format", "timeout", "max_states", "reduce"]
WORDS = st.sampled_from(
    ["", "s", "start@Ping0", "check", "ways", "itf", "s[Ping][0].n", "(" * 99, "\0", "\ud800", "bfs"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(ENDPOINTS), VALUES)
def test_no_request_gives_an_error_of_the_server(served: Served, path: str, body: Any) -> None:
    if isinstance(body, dict) and "run" not in body and path == "/api/walk":
        body = {"run": body}
    answer = served.ask("POST", path, body)
    assert answer.status < 500, (body, answer)
    if answer.status >= 400:
        assert answer.json["error"]["message"]
    elif path == "/api/search":
        served.ask("DELETE", f"/api/search/{answer.json['id']}")


ROUTES = ["", "viewer.js", "viewer.css", "api/model", "api/walk", "api/export", "api/graph", "api/search", "api/events"]
ROUTES += [
    "api/coverage",
    "elk-worker.js",
    "api/search/1",
    "api/search/1/events",
    "api/search/{name}",
    "api/search/{name}/events",
    "{name}",
    "api/{name}",
]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]),
    st.sampled_from(ROUTES),
    st.text("/apiwlk.%~?#=\\0", max_size=20),
    st.binary(max_size=60) | st.just(b'{"kind": "find"}') | st.just(b"{}"),
)
def test_no_path_gives_an_error_of_the_server(served: Served, method: str, route: str, name: str, body: bytes) -> None:
    path = f"/{route.format(name=name)}"
    connection = served.connection()
    try:  # only the head of the answer: a stream has no end
        connection.request(method, path, body, {"X-Plait-Secret": served.secret})
        assert connection.getresponse().status < 500, (method, path)
    finally:
        connection.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"run": 1}',
        b"null",
        b"1e999",
        b'{"run":{"steps":["' + b"x" * 500 + b'"]}}',
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_broken_bodies(served: Served, raw: bytes) -> None:
    answer = served.ask("POST", "/api/walk", raw=raw)
    assert answer.status == 400, answer
    assert answer.json["error"]["message"]


def test_a_request_that_is_too_large(served: Served) -> None:
    sent = {"Content-Length": str(1 << 40)}
    assert served.ask("POST", "/api/walk", raw=b"{}", headers=sent).status == 413


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch x')",
        "open('/etc/passwd').read()",
        "exec('1')",
        "eval('1')",
        "globals()",
        "s.system",
    ],
)
def test_an_expression_reaches_nothing_but_the_state(served: Served, text: str) -> None:
    (watch,) = served.walk(watches=[text])["watches"]
    assert watch["error"]
    assert served.searched(kind="find", expression=text)["status"] == "error"


@pytest.mark.parametrize("text", ["[0] * 10**10", "sum(i for i in range(10**12))", "'a' * 10**12", "2 ** 2 ** 99"])
def test_an_expression_that_takes_too_much_is_ended(served: Served, text: str) -> None:
    (watch,) = served.walk(watches=[text])["watches"]
    assert watch["error"]


def test_a_hundred_clients(served: Served) -> None:
    """A hundred pages listen, and ask at the same time. All get the same answer as one."""
    expected = served.walk()["enabled"]
    found: list[Any] = []

    def client() -> None:
        with served.listening("/api/events"):
            for _ in range(3):
                found.append(served.walk()["enabled"])

    threads = [threading.Thread(target=client) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == [expected] * 300


def test_connections_that_stay_silent_do_no_harm(served: Served) -> None:
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(50)]
    try:
        for one in silent[:25]:
            one.sendall(b"POST /api/walk HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert served.walk()["valid"] == 0
    finally:
        for one in silent:
            one.close()


def test_too_many_searches_are_refused(served: Served) -> None:
    with explored("raft", "-p", "servers=5") as large:
        began = [large.ask("POST", "/api/search", {"kind": "check", "from": None}) for _ in range(6)]
        assert [answer.status for answer in began] == [200] * 4 + [429] * 2
        for answer in began[:4]:
            assert large.ask("DELETE", f"/api/search/{answer.json['id']}").status == 200
        number = began[0].json["id"]
        assert b'"stopped"' in large.ask("GET", f"/api/search/{number}/events").body
        assert large.ask("POST", "/api/search", {"kind": "check", "from": None}).status == 200


def test_ctrl_c_ends_streams_and_searches_without_a_word(tmp_path: Path) -> None:
    """Pages still listen, and a search runs. `explored` asserts exit code 0 and no traceback."""
    with explored("raft", "-p", "servers=5") as large:
        number = large.post("/api/search", {"kind": "check", "from": None})["id"]
        with large.listening("/api/events"), large.listening(f"/api/search/{number}/events") as events:
            assert next(events)[0] == "progress"
            children = large.children
            large.process.send_signal(signal.SIGINT)
            assert large.process.wait(PATIENCE) == 0
            assert dict(events)["done"] == {"status": "stopped", "text": "plait explore ended"}
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), "no process is left")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--port", "{port}"], "127.0.0.1:{port} cannot be used: Address already in use", "choose another --port"),
        (["--port", "70000"], "--port 70000 is not a port", "give a number from 0 to 65535"),
        (["--host", "no.such.host.invalid"], "no.such.host.invalid is no address of this machine", "another --host"),
    ],
)
def test_an_address_that_cannot_be_used(served: Served, arguments: list[str], message: str, hint: str) -> None:
    command = [*PLAIT, "explore", "ping_pong", "--no-open", *(word.format(port=served.port) for word in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {message.format(port=served.port)}" in done.stderr
    assert hint in done.stderr.partition("hint:")[2]


def test_a_machine_without_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "/nonexistent/browser")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("DISPLAY", raising=False)
    with started([*PLAIT, "explore", "ping_pong"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("explore: http://127.0.0.1:")
        assert "no browser was found: open the address yourself\n" in iter(process.stderr.readline, "")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_a_handler_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """The answer says so within the limit, and the next request is answered."""
    (tmp_path / "model.py").write_text(MODEL.replace("while True", "while self.n >= 0"))
    with explored("model.py", folder=tmp_path, seconds=2.0) as served:
        answer = served.ask("POST", "/api/walk", {"run": {"steps": []}})
        assert answer.status == 422
        assert "longer than" in answer.json["error"]["message"]
        until(lambda: served.ask("GET", "/api/model").status in (200, 422), "the server answers")
