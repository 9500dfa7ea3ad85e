"""No process outlives `plait gyro serve`, whatever ends it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plait.gyro.belt.supervisor import answers, free_ports
from tests.gyro.belt.variants import needs_postgresql
from tests.support.engines import scratch
from tests.support.patience import PATIENCE, until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux does this")]

STORE = Path(__file__).parents[3] / "examples" / "gyro" / "store.py"


def descendants(parent: int) -> dict[int, str]:
    """The processes that a process has started, directly or not, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if status[0] != "Z":
                parents[int(entry.name)] = int(status[1])
    found: dict[int, str] = {}
    left = [parent]
    while left:
        for child in [pid for pid, above in parents.items() if above == left[0] and pid not in found]:
            try:
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            left.append(child)
        left.pop(0)
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_postgresql
def test_kill_9_of_the_supervisor_ends_servers_and_their_postgresql() -> None:
    """One server is suspended, so it cannot notice anything itself: the kernel ends it."""
    urls = [f"http://127.0.0.1:{port}" for port in free_ports(2)]
    folder = scratch()
    command = [sys.executable, "-m", "plait.cli.main", "gyro", "serve", str(STORE), "--db", "postgresql"]
    command += ["--url", urls[0], "--url", urls[1], "--folder", str(folder / "folder")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    started: dict[int, str] = {}
    try:
        until(lambda: all(map(answers, urls)), "the servers answer")
        started = descendants(process.pid)
        servers = [pid for pid, line in started.items() if "plait.gyro.belt.server" in line]
        masters = [pid for pid, line in started.items() if "/postgres -D" in line]
        assert (len(servers), len(masters)) == (2, 2)
        assert len(started) > 4  # the processes of PostgreSQL
        found = (folder / "folder").rglob("*")
        assert [each for each in found if each.stat().st_mode & 0o077] == [], "only the owner may read the databases"
        os.kill(servers[0], signal.SIGSTOP)
        process.kill()
        process.communicate(timeout=PATIENCE)
        until(lambda: not any(map(alive, started)), "all processes have ended")
    finally:
        process.kill()
        process.communicate()
        for pid in filter(alive, started):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
