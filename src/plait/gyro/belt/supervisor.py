"""Starts the servers of a cluster as processes, and restarts servers that die."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from plait.gyro.belt.faults import CRASH
from plait.gyro.belt.http import ask
from plait.gyro.belt.settings import Settings
from plait.kernel.errors import Argument, UsageError

_GIVES_UP = {2}
"""Exit codes after which a restart would fail again."""


class Supervisor:
    """The processes of a cluster. `module` is the Python module that a server process runs."""

    def __init__(
        self,
        settings: Settings,
        *,
        tell: Callable[[str], None] = lambda _: None,
        only: Sequence[int] = (),
        module: str = "plait.gyro.belt.server",
    ) -> None:
        self.settings = settings
        self._tell = tell
        self._module = module
        self._numbers = list(only) or list(range(settings.servers))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._born: dict[int, float] = {}
        self._stopping = False

    def start(self, *, wait: float = 60.0) -> None:
        """Start all servers, and wait until they answer."""
        for number in self._numbers:
            _free(self.settings.host, int(self.settings.urls[number].rpartition(":")[2]))
        self._file = self.settings.save()
        for number in self._numbers:
            self.spawn(number, os.environ.copy())
        deadline = time.monotonic() + wait
        for number in self._numbers:
            while not self._stopping and not answers(self.settings.urls[number]):
                code = self._processes[number].poll()
                if code in _GIVES_UP or time.monotonic() > deadline:
                    self.stop()
                    raise UsageError(f"server {number} does not start", hint="see the lines above for the reason")
                self.watch()
                time.sleep(0.05)

    def spawn(self, number: int, environment: dict[str, str]) -> None:
        """Start one server."""
        self._born[number] = time.monotonic()
        self._processes[number] = subprocess.Popen(
            [sys.executable, "-m", self._module, str(self._file), str(number)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self) -> None:
        """Restart servers that have died. A restarted server does not get PLAIT_GYRO_CRASH again."""
        for number, process in list(self._processes.items()):
            code = process.poll()
            if code is None or self._stopping or code in _GIVES_UP:
                continue
            if time.monotonic() - self._born[number] < 0.3:
                continue  # it died right after its start: wait before the restart
            self._tell(f"server {number} died ({_cause(code)}) and is restarted")
            self.spawn(number, {k: v for k, v in os.environ.items() if k != CRASH})

    def run(self, *, also: Callable[[], None] = lambda: None) -> None:
        """Watch the servers until `end` is called."""
        while not self._stopping:
            self.watch()
            also()
            if all(p.poll() in _GIVES_UP for p in self._processes.values()):
                raise UsageError("all servers have stopped", hint="see the lines above for the reason")
            time.sleep(0.1)

    def end(self) -> None:
        """Make `run` return."""
        self._stopping = True

    def kill(self, number: int) -> None:
        """Kill a server, as `kill -9` does."""
        self._processes[number].send_signal(signal.SIGKILL)
        self._processes[number].wait()

    def signal(self, number: int, what: signal.Signals) -> None:
        """Send a signal to a server."""
        self._processes[number].send_signal(what)

    def stop(self) -> None:
        """Stop all servers."""
        self._stopping = True
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self._processes.values():
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def answers(url: str) -> bool:
    """Whether a server answers."""
    try:
        return ask(url, "/status", timeout=1.0)[0] == 200
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def known_cluster(folder: Path) -> list[str]:
    """The URLs of the cluster that was started in a folder; empty if there is none."""
    try:
        return msgspec.json.decode((folder / "settings.json").read_bytes(), type=Settings).urls
    except (OSError, msgspec.DecodeError):
        return []


def _free(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UsageError(
                f"cannot listen at {host}:{port}: {error.strerror}", hint=("choose another ", Argument("port"))
            ) from None


def _cause(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
