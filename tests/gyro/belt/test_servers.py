"""Servers as processes: deaths between any two steps, bad input, redirects, status, secrets."""

from __future__ import annotations

import ast
import concurrent.futures
import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from plait.cli.main import main
from plait.gyro.belt.client import CallError, Client
from plait.gyro.belt.http import ask
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import answers, free_ports
from plait.kernel.errors import UsageError
from tests.gyro.belt.log_engines import Etcd, Nats
from tests.gyro.belt.processes import Processes, processes
from tests.gyro.belt.runs import GENERATED, judge, work
from tests.gyro.belt.variants import needs_mariadb, needs_postgresql
from tests.support.further import further
from tests.support.patience import PATIENCE, until

pytestmark = pytest.mark.slow

STEPS = (
    "received", "applied", "execute", "executed", "captured", "appended", "committed", "replied", "pass", "passed",
)  # fmt: skip


@pytest.fixture(scope="module")
def servers() -> Iterator[Processes]:
    with processes(2, limit=2000) as found:
        yield found


def test_a_server_that_dies_between_any_two_steps_recovers() -> None:
    """kill -9 at each step, of one server and then of the other; the order replays, and no request is lost or done twice."""
    with processes(2) as cluster:
        generator = random.Random(7)
        for round_, step in enumerate(STEPS):
            cluster.doom(round_ % 2, f"{step}:{generator.randrange(1, 4)}")
            work(cluster, 900 + round_, clients=3, operations=8)
        cluster.settle()
        events = len(cluster.events)
        deaths = cluster.deaths
        faults = judge(cluster)
    assert faults == []
    assert events > 200
    assert deaths >= 2 * len(STEPS) - 2  # each was killed to be doomed, and died


@pytest.mark.parametrize(
    ("db", "pending"),
    [
        pytest.param(
            "postgresql",
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()",
            marks=needs_postgresql,
        ),
        pytest.param("mariadb", "XA RECOVER", marks=[needs_mariadb, pytest.mark.long]),
    ],
    ids=["postgresql", "mariadb"],
)
def test_a_server_that_prepares_and_dies_around_the_commit_recovers(db: str, pending: str) -> None:
    """Between prepare, append and commit, the log says what becomes of what is prepared."""
    steps = ("captured", "prepared", "appended", "committed")
    with processes(2, postgresql=db == "postgresql", mariadb=db == "mariadb") as cluster:
        for round_, step in enumerate(steps):
            cluster.doom(round_ % 2, f"{step}:2")
            work(cluster, 920 + round_, clients=3, operations=8, without=GENERATED)
        cluster.settle()
        deaths = cluster.deaths
        faults = judge(cluster)
        prepared = cluster.engine.rows(0, pending)
    assert faults == []
    assert prepared == []
    assert deaths >= 2 * len(steps) - 1


@pytest.mark.parametrize("log", ["etcd", "nats"])
def test_servers_with_another_log_recover(log: str, tmp_path: Path) -> None:
    """The settings reach the server processes; deaths around the append."""
    etcd = Etcd(tmp_path)
    nats = Nats(tmp_path) if log == "nats" else None
    where = {"log": etcd.where} if nats is None else {"log": nats.where, "fence": etcd.where}
    try:
        with processes(2, **where) as cluster:
            for round_, step in enumerate(("captured", "appended")):
                cluster.doom(round_, f"{step}:2")
                work(cluster, 940 + round_, clients=3, operations=12)
            cluster.settle()
            assert judge(cluster) == []
            assert cluster.deaths >= 3
    finally:
        etcd.close()
        if nats is not None:
            nats.close()


def post(
    servers: Processes, path: str, body: bytes, headers: dict[str, str] | None = None, at: int = 0
) -> tuple[int, Any]:
    where = urllib.parse.urlsplit(servers.settings.urls[at])
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
    try:
        connection.request("POST", path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("operation", "body", "status", "said"),
    [
        ("fly", b"{}", 404, "no operation fly"),
        ("note", b"{}", 400, "missing parameters: owner, value"),
        ("note", b'{"parameters": {"owner": 0}}', 400, "missing parameters: value"),
        ("note", b'{"parameters": {"owner": 0, "value": 1, "colour": 2}}', 400, "unknown parameters: colour"),
        ("note", b'{"parameters": {"owner": "0", "value": 1}}', 400, "owner='0': expected a number"),
        ("note", b'{"parameters": {"owner": null, "value": 1}}', 400, "owner is null"),
        ("note", b'{"parameters": [1]}', 400, "the body is not a call"),
        ("note", b"{", 400, "the body is not a call"),
        ("note", b'{"parameter": {}}', 400, "the body is not a call"),
        ("note", b'\xff{"parameters": {}}', 400, "the body is not a call"),
        ("note", b'{"parameters": {"owner": 0, "value": %s' % (b"[" * 1900), 400, "recursion"),
        ("note", b'{"request": "a\\u0000", "parameters": {"owner": 0, "value": 1}}', 400, "is not a valid name"),
        ("move", b'{"request": "%s", "parameters": {"source": 0}}' % (b"x" * 201), 400, "is not a valid name"),
        ("note", b'{"parameters": {"owner": 0, "value": {"a": 1}}}', 422, ""),
        ("note", b'{"parameters": {"owner": 0, "value": "%s"}}' % (b"x" * 3000), 413, "bytes"),
    ],
)
def test_bad_requests_are_refused(servers: Processes, operation: str, body: bytes, status: int, said: str) -> None:
    found, answer = post(servers, f"/call/{operation}", body)
    assert found == status, answer
    assert said in answer["error"]
    assert "Traceback" not in str(answer)


def test_paths_that_are_not_there(servers: Processes) -> None:
    status, answer = post(servers, "/fly", b"")
    assert (status, answer["error"]) == (404, "POST /fly does not exist")
    status, answer = post(servers, "/status", b"")
    assert status == 405
    assert "POST /call/OPERATION" in answer["hint"]


def test_bad_requests_change_nothing_and_the_server_goes_on(servers: Processes) -> None:
    before = servers.client.call("notes", owner=0)
    post(servers, "/call/note", b'{"parameters": {"owner": 0, "value": {"a": 1}}}')
    assert servers.client.call("notes", owner=0) == before
    assert servers.client.call("note", owner=0, value=4711).endswith(" 4711")


def test_parameters_are_never_sql(servers: Processes) -> None:
    evil = "x'); DROP TABLE notes; --"
    assert servers.client.call("note", owner=2, value=evil).endswith(evil)
    assert servers.client.call("notes", owner=2).endswith(evil)
    with pytest.raises(CallError, match="expected a number"):
        servers.client.call("notes", owner="0 OR 1=1")


def test_an_operation_of_another_server_is_redirected(servers: Processes) -> None:
    status, answer = post(servers, "/call/notes", b'{"parameters": {"owner": 1}}', at=0)
    assert (status, answer["map"]) == (307, 1)
    assert answer["url"] == f"{servers.settings.urls[1]}/call/notes"
    assert servers.client.send("notes", {"owner": 1}, at=0).server == 1


def test_a_request_that_comes_again_is_not_executed_again(servers: Processes) -> None:
    for operation, given in (("note", {"owner": 4, "value": 5}), ("post", {"owner": 4, "board": 2, "value": 6})):
        first = servers.client.send(operation, given, request=f"twice {operation}")
        second = servers.client.send(operation, given, request=f"twice {operation}")
        assert (first.reply, first.repeated, second.repeated) == (second.reply, False, True)
        assert servers.client.call("notes", owner=4).split().count(str(given["value"])) == 1


@pytest.mark.parametrize(
    ("operation", "given", "other"),
    [
        ("note", {"owner": 4, "value": 1}, {"owner": 4, "value": 2}),
        ("move", {"source": 1, "target": 1, "value": 1}, {"source": 1, "target": 1, "value": 2}),
    ],
)
def test_a_name_is_of_one_request(servers: Processes, operation: str, given: Any, other: Any) -> None:
    """The other request is not taken for a repetition, whose effects would be lost."""
    servers.client.send(operation, given, request=f"mine {operation}")
    with pytest.raises(CallError, match=f"mine {operation} is already the name of another request"):
        servers.client.send(operation, other, request=f"mine {operation}")


def test_what_the_application_raises_is_told(servers: Processes) -> None:
    while (len(dict(servers.client.call("look", first=0, second=0))[0].split()) + 1) % 7:
        servers.client.call("move", source=0, target=0, value="filler")
    with pytest.raises(CallError, match="unlucky") as error:
        servers.client.call("post", owner=1, board=0, value=7000)
    assert (error.value.raised, error.value.status) == ("ValueError", 422)
    assert "7000" not in servers.client.call("notes", owner=1).split()


@pytest.mark.parametrize("path", ["/belt/token", "/belt/wanted"])
@pytest.mark.parametrize("secret", [None, "", "wrong"])
def test_only_servers_may_pass_the_token(servers: Processes, path: str, secret: str | None) -> None:
    status, answer = post(servers, path, b"x", {} if secret is None else {"X-Plait-Gyro-Secret": secret})
    assert status == 403
    assert "between servers" in answer["error"]
    good = {"X-Plait-Gyro-Secret": servers.settings.secret}
    if path == "/belt/token":
        assert post(servers, path, b"not a token", good)[0] == 400


def test_servers_listen_at_loopback(servers: Processes) -> None:
    """A server that listens at all addresses of a machine also listens at 127.0.0.2."""
    port = int(servers.settings.urls[0].rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), timeout=2).close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), timeout=2)


def test_settings_are_for_their_owner_only(servers: Processes) -> None:
    assert (Path(servers.settings.folder) / "settings.json").stat().st_mode & 0o077 == 0


def test_many_clients_at_once(servers: Processes) -> None:
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: servers.client.call("move", source=2, target=2, value=f"m{n}"), range(64)))
    servers.settle()
    for near in range(2):
        client = Client(servers.settings.urls, near=near)
        items = dict(client.call("look", first=2, second=2))[2].split()
        client.close()
        assert sorted(i for i in items if i.startswith("m")) == sorted(f"m{n}" for n in range(64))


def test_status_and_metrics(servers: Processes, capsys: pytest.CaptureFixture[str]) -> None:
    servers.client.call("notes", owner=0)
    servers.settle()
    assert main(["gyro", "status", servers.settings.urls[1], "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = shown["servers"]
    assert shown["token"].keys() == {"server", "epoch", "turn", "held"}
    assert shown["updates"] == found[0]["applied"]
    assert [f["server"] for f in found] == [0, 1]
    assert all(f["up"] and f["lag"] == 0 and f["epoch"] >= 1 for f in found)
    assert main(["gyro", "status", servers.settings.folder]) == 0
    shown = capsys.readouterr().out
    assert servers.settings.urls[0] in shown
    assert re.search(r"^token \d+ (at|has left) server [01], turn \d+; \d+ updates?$", shown, re.MULTILINE)
    status, body = ask(servers.settings.urls[0], "/metrics")
    assert status == 200
    lines = body.decode().splitlines()
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    assert values['plait_gyro_operations_total{server="0",class="read"}'] > 0
    assert values['plait_gyro_lag_updates{server="0"}'] == 0


def test_status_without_servers(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gyro", "status", str(tmp_path)]) == 2
    assert "has no servers" in capsys.readouterr().err
    assert main(["gyro", "status", "http://127.0.0.1:9"]) == 2
    assert "does not answer" in capsys.readouterr().err


def test_a_client_without_servers() -> None:
    with pytest.raises(UsageError, match="no server answers"):
        Client("http://127.0.0.1:9")


def start(settings: Settings, number: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Start a server that is expected to refuse."""
    file = folder / "other.json"
    file.write_bytes(msgspec.json.encode(settings))
    command = [sys.executable, "-m", "plait.gyro.belt.server", str(file), str(number)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def test_a_schema_mismatch_is_refused(servers: Processes) -> None:
    folder = Path(servers.settings.folder)
    (folder / "server-7").mkdir()
    db = apsw.Connection(str(folder / "server-7" / "app.db"))
    db.execute(servers.settings.schema.replace("label TEXT, drawn REAL", "label TEXT, drawn TEXT, more TEXT"))
    db.close()
    other = msgspec.structs.replace(servers.settings, members=[*range(servers.servers - 1), 7])
    done = start(other, 7, folder)
    assert done.returncode == 2, done.stderr
    assert "the schema differs from that of the cluster" in done.stderr
    assert "more TEXT" in done.stderr


def test_another_number_of_servers_is_refused(servers: Processes) -> None:
    folder = Path(servers.settings.folder)
    done = start(msgspec.structs.replace(servers.settings, urls=servers.settings.urls * 2), 0, folder)
    assert done.returncode == 2, done.stderr
    assert "number of servers differs from that of the cluster" in done.stderr


ROOT = Path(__file__).parents[3]


def test_the_manual_lists_every_option() -> None:
    text = (ROOT / "docs" / "guides" / "gyro-serving.md").read_text(encoding="utf-8")
    for command in ("serve", "status"):
        tree = ast.parse((ROOT / "src" / "plait" / "cli" / f"gyro_{command}.py").read_text(encoding="utf-8"))
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == command)
        for argument in function.args.kwonlyargs:
            option = f"--{argument.arg.replace('_', '-')}"
            assert f"`{option}`" in text, f"plait gyro {command} {option} is not in docs/guides/gyro-serving.md"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.py"], "no application nothing.py"),
        (["--dsn", "host=a"], "1 times --dsn, but 3 servers with --db sqlite"),
        (["--log", "paper"], "--log paper: expected embedded, etcd:http://HOST:PORT or nats:nats://HOST:PORT"),
        (["--only", "3"], "--only 3: expected one of 0, 1, 2"),
        (["--port", "65535"], "3 servers need ports up to 65537"),
        (["--url", "ftp://a", "--url", "http://b:1"], "expected http://HOST:PORT"),
        (["--data", "missing.sql"], "missing.sql cannot be read"),
        (["--classification", "pyproject.toml"], "is not a classification"),
    ],
)
def test_bad_commands_are_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    application = [] if arguments[0].endswith(".py") else [str(ROOT / "examples" / "gyro" / "store.py")]
    assert main(["gyro", "serve", *application, *arguments, "--folder", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("made", "asked"), [("sqlite", "postgresql"), ("postgresql", "sqlite"), ("mariadb", "sqlite")])
def test_a_folder_belongs_to_one_dbms(
    made: Any, asked: str, servers: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    msgspec.structs.replace(servers.settings, folder=str(tmp_path), db=made).save()
    assert main(["gyro", "serve", servers.settings.application, "--db", asked, "--folder", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"error: --db {asked}: the servers of {tmp_path} were started with {made}, and have their rows there" in said
    assert f"hint: use --db {made}; or begin a new cluster" in said


@pytest.mark.parametrize("application", ["store.py", *further("store_core.py")])
def test_serve_and_stop(application: str, tmp_path: Path) -> None:
    """The command as a user has it: it starts, answers, and ends with Ctrl-C."""
    (port,) = free_ports(1)
    (tmp_path / "items.sql").write_text("INSERT INTO items VALUES (1, 'pen', 10)", encoding="utf-8")
    command = ["gyro", "serve", str(ROOT / "examples" / "gyro" / application), "--servers", "1", "--port", str(port)]
    command += ["--data", str(tmp_path / "items.sql"), "--folder", str(tmp_path / "folder")]
    url = f"http://127.0.0.1:{port}"
    for stock in (8, 6):  # the second time, it goes on where it was
        process = subprocess.Popen(
            [sys.executable, "-m", "plait.cli.main", *command], stderr=subprocess.PIPE, text=True
        )
        try:
            until(lambda: answers(url), "the server answers")
            client = Client(url)
            if stock == 8:
                client.call("create", cart=1)
            assert client.call("add", cart=1, item=1, amount=2) is True
            client.call("order", cart=1)
            assert client.call("add", cart=1, item=1, amount=stock + 1) is False
            client.close()
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert f"server 0: {url}" in said
        assert "Traceback" not in said
        assert not answers(url)


def test_a_holder_that_sleeps_is_fenced_off() -> None:
    """SIGSTOP with the token, for longer than the others wait; what it does when it wakes up breaks nothing."""
    with processes(3, lost=0.3) as cluster:
        for sleeper in range(3):
            cluster.supervisor.signal(sleeper, signal.SIGSTOP)
            waker = threading.Timer(0.8, cluster.supervisor.signal, (sleeper, signal.SIGCONT))
            waker.start()
            work(cluster, 950 + sleeper, clients=3, operations=8)
            waker.join()
        cluster.settle()
        facts = json.loads(ask(cluster.settings.urls[0], "/status")[1])
        faults = judge(cluster)
    assert faults == []
    assert facts["epoch"] > 1
