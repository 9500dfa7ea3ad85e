"""Starts the servers of a cluster as processes, and restarts servers that die."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from plait.gyro.belt.faults import CRASH
from plait.gyro.belt.http import TlsContext, ask
from plait.gyro.belt.service.certificates import client_context
from plait.gyro.belt.service.lifetime import TIED, tied_environment
from plait.gyro.belt.settings import Settings
from plait.kernel.errors import Argument, UsageError

_GIVES_UP = {2, 4}
"""Exit codes after which a restart would fail again: an error, or the server was removed from the cluster."""
_PORTS = range(20_000, 32_000)
JOINING = "joining.json"
"""A file in the folder of a cluster: the numbers and URLs of servers that shall join it, on this machine."""


class Supervisor:
    """The processes of a cluster. `module` is the Python module that a server process runs."""

    def __init__(
        self,
        settings: Settings,
        *,
        tell: Callable[[str], None] = lambda _: None,
        only: Sequence[int] = (),
        joining: Mapping[int, str] | None = None,
        module: str = "plait.gyro.belt.server",
    ) -> None:
        self.settings = settings
        self._tell = tell
        self._module = module
        self._numbers = list(joining or only) or settings.numbers
        self._joining: dict[int, str] = dict(joining or {})
        """Servers that join the cluster, and their URLs."""
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._born: dict[int, float] = {}
        self._stopping = False
        tls = settings.tls
        self._tls = (lambda: client_context(tls.ca, tls.certificate, tls.key)) if tls is not None else None

    def start(self, *, wait: float = 60.0) -> None:
        """Start all servers, and wait until they are ready."""
        for number in self._numbers:
            _free(self.settings.host, int(self._url(number).rpartition(":")[2]))
        self._file = self.settings.save()
        for number in self._numbers:
            self.spawn(number, os.environ.copy())
        deadline = time.monotonic() + wait
        for number in self._numbers:
            while not self._stopping and (reason := self._missing(number)) is not None:
                code = self._processes[number].poll()
                if code in _GIVES_UP:
                    self.stop()
                    raise UsageError(f"server {number} does not start", hint="see the lines above for the reason")
                if time.monotonic() > deadline:
                    self.stop()
                    raise UsageError(
                        f"server {number} is not ready after {wait:g} s: {reason}",
                        hint="see the lines above for more; /ready of the server has the reasons",
                    )
                self.watch()
                time.sleep(0.05)

    def _url(self, number: int) -> str:
        return self._joining.get(number) or self.settings.url(number)

    def _missing(self, number: int) -> str | None:
        """Why a server is not there; None if it is."""
        if number in self._joining:
            return None if answers(self._joining[number], tls=self._tls) else "it does not answer"
        return unready(self.settings.url(number), tls=self._tls)

    def spawn(self, number: int, environment: dict[str, str]) -> None:
        """Start one server."""
        self._born[number] = time.monotonic()
        self._processes[number] = subprocess.Popen(
            [
                sys.executable,
                "-m",
                self._module,
                str(self._file),
                str(number),
                *filter(None, [self._joining.get(number)]),
            ],
            env={k: v for k, v in environment.items() if k != TIED} | tied_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self) -> None:
        """Restart servers that have died. A restarted server does not get PLAIT_GYRO_CRASH again."""
        self._start_joining()
        for number, process in list(self._processes.items()):
            code = process.poll()
            if code is None or self._stopping or code in _GIVES_UP:
                continue
            if time.monotonic() - self._born[number] < 0.3:
                continue  # it died right after its start: wait before the restart
            self._tell(f"server {number} died ({_cause(code)}) and is restarted")
            self.spawn(number, {k: v for k, v in os.environ.items() if k != CRASH})

    def _start_joining(self) -> None:
        """Start servers that shall join the cluster on this machine."""
        try:
            found = msgspec.json.decode((Path(self.settings.folder) / JOINING).read_bytes(), type=dict[int, str])
        except (OSError, msgspec.DecodeError):
            return
        for number, url in found.items():
            self._joining[number] = url
            if number not in self._processes and not self._stopping:
                self._tell(f"server {number} joins: {url}")
                self.spawn(number, os.environ.copy())

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

    def reload(self) -> None:
        """Make the servers read their certificates again."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGHUP)

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


def answers(url: str, *, tls: TlsContext | None = None) -> bool:
    """Whether a server answers."""
    try:
        return ask(url, "/status", timeout=1.0, tls=tls)[0] == 200
    except OSError:
        return False


def unready(url: str, *, tls: TlsContext | None = None) -> str | None:
    """Why a server is not ready; None if it is."""
    try:
        status, answer = ask(url, "/ready", tls=tls)
        reasons: list[str] = [] if status == 200 else msgspec.json.decode(answer)["reasons"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        return str(error) or type(error).__name__
    return None if status == 200 else "; ".join(reasons)


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback interface.

    They are below the ports that systems give to connections (32768 on Linux). So no connection takes the port of a
    server while it restarts.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def known_cluster(folder: Path) -> Settings | None:
    """The settings of the cluster that was started in a folder; None if there is none."""
    try:
        return msgspec.json.decode((folder / "settings.json").read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError):
        return None


def _free(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            name = "port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "host"
            raise UsageError(
                f"cannot listen at {host}:{port}: {error.strerror}", hint=("choose another ", Argument(name))
            ) from None


def _cause(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
