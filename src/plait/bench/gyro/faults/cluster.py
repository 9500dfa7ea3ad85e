"""Real servers for a run with faults: every process, disk, clock and link can fail.

Each server has its own settings, in which the URLs of the other servers and of the log are links of a `Network`. With a
`Disks`, its folder is a small file system of its own, so that it can be full. With `clock.c`, its clock can jump.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from plait.bench.gyro.faults import board
from plait.bench.gyro.faults.history import Event
from plait.bench.gyro.faults.network import Network
from plait.bench.gyro.faults.workload import board_routes
from plait.gyro.belt.client import CallError, Client
from plait.gyro.belt.routing import place
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.kernel.extras import needs

with needs("serve"):
    import apsw

PATIENCE = 120.0
"""Seconds after which a cluster without faults must have answered."""
_DISK = "16m"
_CLOCK = Path(__file__).with_name("clock.c")


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {PATIENCE:g} s without faults, it is not true that {what}")
        time.sleep(0.02)


class Etcd:
    """A cluster of etcd, as processes that can be killed and started again."""

    def __init__(self, folder: Path, members: int) -> None:
        ports = free_ports(2 * members)
        self.ports, peers = ports[:members], ports[members:]
        everybody = ",".join(f"m{n}=http://127.0.0.1:{port}" for n, port in enumerate(peers))
        self._commands = [
            [
                "etcd", "--name", f"m{n}", "--data-dir", str(folder / f"etcd-{n}"), "--log-level", "panic",
                "--listen-client-urls", f"http://127.0.0.1:{self.ports[n]}",
                "--advertise-client-urls", f"http://127.0.0.1:{self.ports[n]}",
                "--listen-peer-urls", f"http://127.0.0.1:{peers[n]}",
                "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers[n]}", "--initial-cluster", everybody,
                "--heartbeat-interval", "50", "--election-timeout", "500",
            ]
            for n in range(members)
        ]  # fmt: skip
        self._processes = [self._spawn(n) for n in range(members)]

    def _spawn(self, member: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._commands[member], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self, member: int) -> None:
        """Kill a member, as `kill -9` does."""
        self._processes[member].kill()
        self._processes[member].wait()

    def start(self, member: int) -> None:
        """Start a member again, with its data."""
        self._processes[member] = self._spawn(member)

    def close(self) -> None:
        """Kill all members."""
        for member in range(len(self._processes)):
            self.kill(member)


class Servers(Supervisor):
    """Server processes, each with its own view of the network and its own clock. Their output goes to files."""

    def __init__(self, settings: Settings, views: list[Settings], *, clocks: bool, **options: Any) -> None:
        super().__init__(settings, **options)
        self._clocks = clocks
        self.deaths = 0
        self._files = []
        for number, view in enumerate(views):
            folder = Path(settings.folder) / f"view-{number}"
            folder.mkdir()
            file = folder / "settings.json"
            file.write_bytes(msgspec.json.encode(view))
            self._files.append(file)
            self.set_clock(number, 0)

    def spawn(self, number: int, environment: dict[str, str]) -> None:
        """Start one server."""
        self.deaths += number in self._processes
        self._born[number] = time.monotonic()
        with (self._files[number].parent / "output.txt").open("ab") as output:
            self._processes[number] = subprocess.Popen(
                [sys.executable, "-m", self._module, str(self._files[number]), str(number)],
                env=self.environment(number, environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
            )

    def environment(self, number: int, given: dict[str, str]) -> dict[str, str]:
        """The environment of a server: with a clock of its own, if clocks can jump."""
        if not self._clocks:
            return given
        return given | {"LD_PRELOAD": str(_clock_library()), "PLAIT_CLOCK": str(self._files[number].parent / "clock")}

    def set_clock(self, number: int, seconds: int) -> None:
        """Let the clock of a server be wrong by some seconds."""
        file = self._files[number].parent / "clock"
        with file.open("r+b" if file.exists() else "wb", buffering=0) as found:
            found.write(seconds.to_bytes(8, sys.byteorder, signed=True))


class FaultyCluster:
    """Servers of the board application, and a record of what they answered."""

    def __init__(
        self, folder: Path, servers: int, *, etcd: int = 0, disks: bool = False, clocks: bool = False, **options: Any
    ) -> None:
        self.servers = servers
        self.folder = folder
        self.events: list[Event] = []
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        """Of the two threads that start servers, one does it at a time."""
        self._ended = False
        self._mounted: list[Path] = []
        self.network = Network()
        self.etcd: Etcd | None = None
        self._stack = contextlib.ExitStack()
        self._stack.callback(self._unmount)
        self._stack.callback(self.network.close)
        try:
            if disks:
                for number in range(servers):
                    self._mount(folder / f"server-{number}")
            if etcd:
                self.etcd = Etcd(folder, etcd)
                self._stack.callback(self.etcd.close)
            self.supervisor = self._servers(clocks=clocks, **options)
            self._stack.callback(self.supervisor.stop)
            self.supervisor.start(wait=PATIENCE)
            self.client = Client(self.supervisor.settings.urls, patience=PATIENCE, timeout=5.0)
            self._stack.callback(self.client.close)
            nurse = threading.Thread(target=self._watch, daemon=True)
            nurse.start()
            self._stack.callback(nurse.join)
        except BaseException:
            self.close()
            raise

    def _servers(self, **options: Any) -> Servers:
        ports = free_ports(self.servers)
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        log = "embedded"
        if self.etcd is not None:
            log = "etcd:" + ",".join(f"http://127.0.0.1:{port}" for port in self.etcd.ports)
        settings = Settings(
            application=str(Path(board.__file__)),
            routes=board_routes(),
            schema=board.SCHEMA,
            urls=urls,
            folder=str(self.folder),
            secret="faults",
            idle=0.01,
            lost=0.4,
            log=log,
        )
        return Servers(settings, [self._view(settings, ports, n) for n in range(self.servers)], **options)

    def _view(self, settings: Settings, ports: list[int], server: int) -> Settings:
        """The settings of a server: the others and the log are links."""

        def url(to: object, port: int) -> str:
            return f"http://127.0.0.1:{self.network.link(f'{server}>{to}', port)}"

        urls = [settings.urls[n] if n == server else url(n, port) for n, port in enumerate(ports)]
        log = settings.log
        if self.etcd is not None:
            log = "etcd:" + ",".join(url(f"log {m}", port) for m, port in enumerate(self.etcd.ports))
        return msgspec.structs.replace(settings, urls=urls, log=log)

    def links(self, server: int) -> list[str]:
        """The links from and to a server."""
        others = [n for n in range(self.servers) if n != server]
        logs = [f"{server}>log {m}" for m in range(len(self.etcd.ports))] if self.etcd is not None else []
        return [f"{server}>{n}" for n in others] + [f"{n}>{server}" for n in others] + logs

    def filler(self, server: int) -> Path:
        """The file that fills the disk of a server."""
        return self.folder / f"server-{server}" / "filler"

    def _mount(self, folder: Path) -> None:
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(folder)], check=True)
        self._mounted.append(folder)

    def _unmount(self) -> None:
        for folder in self._mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)

    def _watch(self) -> None:
        while not self._ended:
            with self._starting:
                self.supervisor.watch()
            time.sleep(0.05)

    def crash(self, server: int, environment: dict[str, str]) -> None:
        """Kill a server, and start it with another environment."""
        with self._starting:
            self.supervisor.kill(server)
            self.supervisor.spawn(server, environment)

    def call(self, operation: str, arguments: dict[str, Any], *, request: str, here: int = 0) -> Any:
        """Call an operation until it is answered."""
        route = self.supervisor.settings.routes[operation]
        server, kind = place(route, arguments, self.servers, here)
        try:
            found = self.client.send(operation, arguments, request=request, at=server)
        except CallError as error:
            if error.raised != "ValueError":
                raise
            return error
        event = Event(
            operation, arguments, kind, server, found.reply, found.seq, found.position, found.wrote or found.repeated
        )
        with self._lock:
            self.events.append(event)
        return found.reply

    def settle(self) -> None:
        """Wait until every server has every update."""
        until(self._settled, "every server has every update")

    def _settled(self) -> bool:
        facts = self.status()
        return None not in facts and len({f["applied"] for f in facts if f}) == 1 and not any(
            f["queue"] or f["lag"] or f["broken"] for f in facts if f
        )  # fmt: skip

    def status(self) -> list[dict[str, Any] | None]:
        """The status of each server; None if it does not answer."""
        found: list[dict[str, Any] | None] = []
        for peer in self.client.peers:
            try:
                found.append(msgspec.json.decode(peer.request("GET", "/status")[1]))
            except (OSError, msgspec.DecodeError):
                found.append(None)
        return found

    def rows(self, server: int, query: str) -> list[tuple[Any, ...]]:
        """The result of a query in the file of a server."""
        db = apsw.Connection(str(self.folder / f"server-{server}" / "app.db"))
        try:
            return list(db.execute(query))
        finally:
            db.close()

    def signal(self, server: int, what: signal.Signals) -> None:
        """Send a signal to a server."""
        with contextlib.suppress(ProcessLookupError):
            self.supervisor.signal(server, what)

    def close(self) -> None:
        """Stop everything."""
        self._ended = True
        self._stack.close()


@functools.cache
def can_mount() -> str | None:
    """Why a disk cannot be made full here; None if it can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            tried = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
        except OSError:
            return "the command mount is missing"
        if tried.returncode != 0:
            return "mounting a small file system needs more rights"
        subprocess.run(["umount", folder], check=True)
        return None


@functools.cache
def _clock_library() -> Path:
    """The compiled `clock.c`."""
    folder = Path(tempfile.mkdtemp(prefix="plait-clock-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = folder / "clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_CLOCK), "-ldl"], check=True)
    return library


def can_jump() -> str | None:
    """Why a clock cannot jump here; None if it can."""
    return None if shutil.which("gcc") and sys.platform == "linux" else "clock.c needs gcc and Linux"


def can_log() -> str | None:
    """Why the log cannot fail here; None if it can."""
    return None if shutil.which("etcd") else "etcd is not installed"
