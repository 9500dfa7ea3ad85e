"""Faults: links that are cut, clocks that jump, disks that are full; and runs, which notice a server that forgets."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.bench.gyro.faults import run
from plait.bench.gyro.faults.cluster import FaultyCluster, Servers, can_jump, can_mount
from plait.bench.gyro.faults.nemesis import FAULTS
from plait.bench.gyro.faults.network import Network
from plait.bench.gyro.faults.run import Outcome
from plait.bench.options import Options
from plait.cli.main import main
from plait.gyro.belt.settings import Settings


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that repeats what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=repeat, args=(connection,), daemon=True).start()

    def repeat(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(100):
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield int(listener.getsockname()[1])
    listener.close()


def test_a_cut_link_holds_data_until_it_is_healed(echo: int) -> None:
    network = Network()
    try:
        port, other = network.link("one", echo), network.link("other", echo)
        with (
            socket.create_connection(("127.0.0.1", port)) as one,
            socket.create_connection(("127.0.0.1", other)) as two,
        ):
            one.sendall(b"before")
            assert one.recv(100) == b"before"
            network.cut(["one"])
            one.sendall(b"during")
            one.settimeout(0.2)
            with pytest.raises(TimeoutError):
                one.recv(100)
            two.sendall(b"elsewhere")
            assert two.recv(100) == b"elsewhere"
            network.heal(["one"])
            one.settimeout(None)
            assert one.recv(100) == b"during"
    finally:
        network.close()


@pytest.mark.skipif(can_jump() is not None, reason=str(can_jump()))
def test_a_clock_jumps_and_timeouts_stay_right(tmp_path: Path) -> None:
    settings = Settings("", {}, "", ["http://127.0.0.1:1"], str(tmp_path))
    servers = Servers(settings, [settings], clocks=True)
    script = "import time; print(time.time(), time.monotonic()); input(); print(time.time(), time.monotonic())"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=servers.environment(0, {}),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        before = [float(word) for word in process.stdout.readline().split()]
        servers.set_clock(0, -86_400)
        process.stdin.write("\n")
        process.stdin.flush()
        after = [float(word) for word in process.stdout.readline().split()]
    assert abs(before[0] - time.time()) < 3600
    assert abs(after[0] - time.time() + 86_400) < 3600
    assert 0 <= after[1] - before[1] < 3600


@pytest.mark.slow
@pytest.mark.skipif(can_mount() is not None, reason=str(can_mount()))
def test_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    cluster = FaultyCluster(tmp_path, 1, disks=True)
    try:
        cluster.call("note", {"owner": 1, "value": 1}, request="before")
        heal = FAULTS["disk"].strike(cluster, random.Random(0))
        threading.Timer(0.5, heal).start()
        for number in range(200):  # until the file must grow
            cluster.call("draw", {"owner": 1, "label": "x" * 500}, request=f"during {number}")
        assert len(cluster.rows(0, "SELECT id FROM tickets")) == 200
    finally:
        cluster.close()


@pytest.mark.slow
def test_a_run_with_faults_is_right() -> None:
    possible = tuple(name for name, fault in FAULTS.items() if fault.impossible() is None)
    outcome = run.run(7, possible)
    assert outcome.wrong == []
    assert outcome.operations > 70
    assert outcome.strikes > 0


@pytest.mark.slow
def test_a_server_that_forgets_updates_is_noticed(tmp_path: Path) -> None:
    wrong = run.run(8, ("kill",), module="tests.bench.gyro.skipping_server").wrong
    assert any("state of server" in each or "one database says" in each for each in wrong)


def test_the_table_has_a_row_per_fault_and_a_wrong_run_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(seed: int, kinds: tuple[str, ...]) -> Outcome:
        return Outcome(["cycle: [1, 2]"] if seed == 41 else [], 80, 20, 3, 1, 2)

    monkeypatch.setattr(run, "run", outcome)
    table = run.measure(Options(faults=16, seed=40))
    assert sum(row.value("runs") for row in table.rows) == 16
    assert [row.variant for row in table.rows if row.differs] == ["crash"]
    assert table.summary == ["seed 41, crash: cycle: [1, 2]"]


def test_only_gyro_has_runs_with_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dbss", "--faults", "3"]) == 2
    assert "gyro" in capsys.readouterr().err
