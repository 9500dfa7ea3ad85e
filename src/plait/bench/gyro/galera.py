"""Starts Galera, a clustered DBMS: several MariaDB servers that certify each transaction together.

Each node is a process on this machine with its own folder. With delays, each node has its own network namespace, and
relays delay the messages to other nodes (`relay.py`). So group communication sees the distances. Without delays, all
nodes are on loopback. New nodes get their first state from another node without delays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from plait.bench.gyro.relay import Relays, address
from plait.gyro.belt.databases.mariadb.server import initialize, program, user
from plait.gyro.belt.databases.mariadb.server import missing as without
from plait.gyro.belt.supervisor import free_ports
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

_LIBRARIES = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib/libgalera_smm.so")
_START = 120.0
_ATTEMPTS = 4
INSTALL = "make galera, or apt-get install mariadb-server galera-4"


def library() -> str | None:
    """The path of the Galera library; None if it is not installed."""
    return next((found for found in _LIBRARIES if Path(found).exists()), None)


def missing(*, far: bool) -> str | None:
    """Why Galera cannot start here, and how to fix it; None if it can. `far` means with delays."""
    if (reason := without()) is not None:
        return f"{reason}; {INSTALL}"
    if library() is None:
        return f"the library libgalera_smm.so is not installed; {INSTALL}"
    if find_spec("pymysql") is None:
        return "the Python package pymysql is not installed; pip install 'plait[peers]'"
    if far and subprocess.run(["unshare", *_isolated(), "true"], capture_output=True, check=False).returncode:
        return "delays need network namespaces, and this user cannot create them; run as root"
    return None


def _isolated() -> list[str]:
    return ["--net"] if os.geteuid() == 0 else ["--map-current-user", "--net", "--keep-caps"]


class Galera:
    """A cluster in a folder, with a socket for each node."""

    def __init__(self, folder: Path, delays: Sequence[Sequence[float]]) -> None:
        self._folder = folder
        self._delays = [list(row) for row in delays]
        self._far = any(map(any, self._delays))
        if (reason := missing(far=self._far)) is not None:
            raise UsageError("Galera cannot start", hint=reason)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._group, self._increment, self._snapshot = free_ports(3)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        self._owned(folder)

    def _owned(self, path: Path) -> None:
        if os.geteuid() == 0:
            shutil.chown(path, str(user()))

    @property
    def sockets(self) -> list[str]:
        """The sockets of the nodes."""
        return [str(self._folder / f"{n}.sock") for n in range(len(self._delays))]

    def start(self, schema: str) -> None:
        """Start all nodes. Returns when they form one cluster that has these tables."""
        initialize(self._folder / "0", _SMALL)
        try:
            for number in range(len(self._delays)):
                self._join(number)
            for number in range(len(self._delays)):
                self._await(number, "wsrep_cluster_size", str(len(self._delays)))
            self._fill(schema)
        except BaseException:
            self.close()
            raise

    def _join(self, number: int) -> None:
        """Start a node, and wait until it is ready. A node that exits because its first state came too late starts again."""
        folder = self._folder / str(number)
        for attempt in range(_ATTEMPTS):
            if number:  # the first node has the installed tables
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                self._owned(folder)
            self._spawn(number)
            try:
                self._await(number, "wsrep_ready", "ON")
                break
            except UsageError:
                if attempt == _ATTEMPTS - 1 or self._processes[number].poll() is None:
                    raise
                self._processes.pop()

    def _spawn(self, number: int) -> None:
        here = address(number)
        known = ",".join(f"{address(n)}:{self._group}" for n in range(number))
        provider = {
            "gmcast.listen_addr": f"tcp://{here}:{self._group}",
            "ist.recv_addr": f"{here}:{self._increment}",
            "gcache.size": "32M",
            "evs.suspect_timeout": "PT30S",
            "evs.inactive_timeout": "PT1M",
            "evs.install_timeout": "PT1M",
            "pc.recovery": "false",
        }
        options = {
            "user": user(),
            "datadir": self._folder / str(number),
            "socket": self._folder / f"{number}.sock",
            "pid-file": self._folder / f"{number}.pid",
            "wsrep-on": "ON",
            "wsrep-provider": library(),
            "wsrep-provider-options": ";".join(f"{k}={v}" for k, v in provider.items()),
            "wsrep-cluster-address": f"gcomm://{known}",
            "wsrep-cluster-name": "plait",
            "wsrep-node-name": f"node-{number}",
            "wsrep-node-address": f"{here}:{self._group}",
            "wsrep-sst-method": "rsync",
            "wsrep-sst-receive-address": f"{here}:{self._snapshot}",
            "wsrep-slave-threads": "4",
            "binlog-format": "ROW",
            "innodb-autoinc-lock-mode": "2",
            "innodb-buffer-pool-size": "64M",
            "sql-mode": "ANSI_QUOTES,NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES",
        }
        command = [str(program("mariadbd")), "--no-defaults", "--skip-networking", *_SMALL]
        command += [f"--{name}={value}" for name, value in options.items()]
        ports = [self._group, self._increment, self._snapshot] if self._far else []
        relays = Relays(number, self._delays[number], str(self._folder), ports, ports[:1])
        around = [sys.executable, "-m", "plait.bench.gyro.relay", msgspec.json.encode(relays).decode()]
        command = [*(["unshare", *_isolated()] if self._far else []), *around, *command]
        with (self._folder / f"{number}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            )

    def _await(self, number: int, variable: str, wanted: str) -> None:
        deadline = time.monotonic() + _START
        while self._status(number, variable) != wanted:
            if self._processes[number].poll() is not None or time.monotonic() > deadline:
                log = self._folder / f"{number}.log"
                lines = log.read_text(errors="replace").splitlines()
                said = [line for line in lines if "ERROR" in line] or lines[-1:]
                raise UsageError(
                    f"node {number} of Galera did not start: {' '.join(said[:1])}"[:400],
                    hint="see whether MariaDB starts by itself",
                )
            time.sleep(0.1)

    def _status(self, number: int, variable: str) -> str:
        with needs("peers"):
            import pymysql
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(self.sockets[number]):
                return ""
        try:
            with self.connect(number) as db, db.cursor() as cursor:
                cursor.execute("SHOW STATUS LIKE %s", (variable,))
                found: Any = cursor.fetchone()
                return str(found[1]) if found else ""
        except pymysql.MySQLError:
            return ""

    def connect(self, number: int) -> Any:
        """A connection to a node."""
        with needs("peers"):
            import pymysql

            from plait.gyro.belt.databases.mariadb.connection import local_socket
        db = pymysql.connect(unix_socket=self.sockets[number], user="root", autocommit=True, defer_connect=True)
        db.connect(local_socket(self.sockets[number]))
        return db

    def _fill(self, schema: str) -> None:
        from plait.bench.gyro.mariadb import fill

        with self.connect(0) as db:
            fill(db, schema)
        for number in range(1, len(self._delays)):
            with self.connect(number) as db, db.cursor() as cursor:
                cursor.execute("SET wsrep_sync_wait = 1")
                cursor.execute("SELECT 1")

    def close(self) -> None:
        """Kill all nodes. Their files are not needed any more."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._processes = []


_SMALL = ("--innodb-log-file-size=16M",)
