"""PostgreSQL processes for clusters on one machine: they use the installed programs, a folder and a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from plait.gyro.belt.databases.postgresql.role import ROLE, create_role
from plait.gyro.belt.service.lifetime import ends_with_parent
from plait.gyro.belt.service.private import private_folder
from plait.kernel.errors import Argument, UsageError
from plait.kernel.extras import needs


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`: from PATH, or the newest version in the folder of Debian."""
    for name in (
        shutil.which("initdb"),
        *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), reverse=True),
    ):
        if name is not None and (folder := Path(name).resolve().parent).joinpath("postgres").exists():
            return folder
    return None


class PostgresServer:
    """One PostgreSQL process. PostgreSQL does not run as root, so root runs it as the user `postgres`."""

    def __init__(self, folder: Path) -> None:
        found = programs()
        if found is None:
            raise UsageError(
                "PostgreSQL is not installed", hint="install it (Debian: postgresql), or give a DSN for each server"
            )
        self._programs = found
        self._folder = folder
        self._sockets = tempfile.mkdtemp(prefix="plait-pg-", dir="/tmp")  # the path of a socket must be short
        self._user: str | None = None
        if os.geteuid() == 0:
            try:
                self._user = pwd.getpwnam("postgres").pw_name
            except KeyError:
                raise UsageError(
                    "PostgreSQL does not run as root, and the user postgres does not exist",
                    hint="run as another user, or give a DSN for each server",
                ) from None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The connection string for a server: its role is no superuser, and owns its database."""
        return f"host={self._sockets} user={ROLE} dbname={ROLE}"

    @property
    def admin(self) -> str:
        """The connection string of the superuser."""
        return f"host={self._sockets} user=postgres dbname=postgres"

    def start(self) -> None:
        """Create the database cluster if needed, start PostgreSQL, and wait until it answers."""
        data = self._folder / "data"
        private_folder(self._folder)
        if self._user is not None:
            shutil.chown(self._folder, self._user)
            shutil.chown(self._sockets, self._user)
        if not (data / "PG_VERSION").exists():
            command = [
                "initdb",
                "-D",
                str(data),
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "-N",
            ]
            done = subprocess.run(
                [str(self._programs / command[0]), *command[1:]],
                user=self._user, cwd="/", capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                raise UsageError(
                    f"initdb failed: {' '.join(done.stderr.split())[-300:]}",
                    hint=("choose another ", Argument("folder")),
                )
        options = {"listen_addresses": "", "unix_socket_directories": self._sockets, "max_prepared_transactions": "16"}
        log = (self._folder / "postgres.log").open("ab")
        self._process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(data), *(f"--{k}={v}" for k, v in options.items())],
            user=self._user, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=ends_with_parent(signal.SIGINT),
        )  # fmt: skip
        log.close()
        deadline = time.monotonic() + 120  # the machine may be busy; a process that fails exits earlier
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                last = (self._folder / "postgres.log").read_text(errors="replace").strip().splitlines()[-1:]
                raise UsageError(
                    f"PostgreSQL does not start: {' '.join(last)}", hint=f"see {self._folder / 'postgres.log'}"
                )
            time.sleep(0.05)
        create_role(self.admin)

    def _ready(self) -> bool:
        with needs("serve"):
            import psycopg
        try:
            psycopg.connect(self.admin, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def pid(self) -> int:
        """The id of the process, whose children serve the connections; 0 if it does not run."""
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the process. With SIGQUIT it crashes, and recovers at the next start."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(how)
                self._process.wait(timeout=120)
            self._process = None

    def close(self) -> None:
        """Stop the process, and remove its socket."""
        self.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)
