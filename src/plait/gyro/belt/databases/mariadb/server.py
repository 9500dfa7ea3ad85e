"""MariaDB processes for clusters on one machine: they use the installed programs, a folder and a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from plait.gyro.belt.databases.mariadb.limits import ROLE, trial_of
from plait.gyro.belt.service.lifetime import ends_with_parent
from plait.gyro.belt.service.private import private_folder
from plait.kernel.errors import Argument, UsageError
from plait.kernel.extras import needs

PROGRAMS = ("mariadbd", "mariadb-install-db")


def program(name: str) -> str | None:
    """The path of a program of MariaDB; None if it is not installed."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/usr/libexec")


def user() -> str | None:
    """The user that runs MariaDB. It does not run as root, so root runs it as the user `mysql`."""
    try:
        return pwd.getpwnam("mysql").pw_name if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None


def missing() -> str | None:
    """Why MariaDB cannot start here; None if it can."""
    for name in PROGRAMS:
        if program(name) is None:
            return f"{name} is not installed"
    if user() is None:
        return "MariaDB does not run as root, and the user mysql does not exist"
    return None


def initialize(data: Path, options: Sequence[str] = ()) -> None:
    """Create the system tables in a folder."""
    command = [str(program("mariadb-install-db")), "--no-defaults", f"--user={user()}", "--skip-test-db"]
    command += [f"--datadir={data}", "--auth-root-authentication-method=normal", *options]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(
            f"mariadb-install-db failed: {' '.join((done.stderr or done.stdout).split())[-300:]}",
            hint=("choose another ", Argument("folder")),
        )


class MariadbServer:
    """One MariaDB process. Only its own user and root can connect to its socket."""

    def __init__(self, folder: Path, *, options: Sequence[str] = ()) -> None:
        if (reason := missing()) is not None:
            raise UsageError(
                f"MariaDB cannot start: {reason}",
                hint="install it (Debian: mariadb-server), or give a DSN for each server",
            )
        self._folder = folder
        self._options = tuple(options)
        self._sockets = tempfile.mkdtemp(prefix="plait-my-", dir="/tmp")  # the path of a socket must be short
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        """The path of the socket."""
        return f"{self._sockets}/s"

    @property
    def dsn(self) -> str:
        """The connection string for a server: its user has all rights on one database, and no others."""
        return f"mariadb://{ROLE}@/{ROLE}?unix_socket={self.socket}"

    @property
    def admin(self) -> str:
        """The connection string of the superuser."""
        return f"mariadb://root@/mysql?unix_socket={self.socket}"

    def start(self) -> None:
        """Create the system tables if needed, start MariaDB, and wait until it answers."""
        data = self._folder / "data"
        private_folder(self._folder)
        temporary = private_folder(self._folder / "tmp")  # a MariaDB that starts removes temporary files of all others
        if os.geteuid() == 0:
            for folder in (self._folder, self._sockets, temporary):
                shutil.chown(folder, str(user()))
        if not (data / "mysql").exists():
            initialize(data, self._options)
        options = {
            "datadir": data,
            "socket": self.socket,
            "pid-file": f"{self._sockets}/pid",
            "tmpdir": temporary,
            "character-set-server": "utf8mb4",
            "innodb-flush-log-at-trx-commit": "1",
        }
        command = [str(program("mariadbd")), "--no-defaults", "--skip-networking", *self._options]
        command += [f"--{name}={value}" for name, value in options.items()]
        with (self._folder / "mariadb.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, user=user() if os.geteuid() == 0 else None, cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
                preexec_fn=ends_with_parent(signal.SIGTERM),
            )  # fmt: skip
        deadline = time.monotonic() + 120  # the machine may be busy; a process that fails exits earlier
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                lines = (self._folder / "mariadb.log").read_text(errors="replace").strip().splitlines()
                last = [line for line in lines if "ERROR" in line][-1:] or lines[-1:]
                raise UsageError(
                    f"MariaDB does not start: {' '.join(last)}", hint=f"see {self._folder / 'mariadb.log'}"
                )
            time.sleep(0.05)

    def _ready(self) -> bool:
        """Whether it answers; the first time, create the user and its database."""
        with needs("serve"):
            import pymysql
        if not Path(self.socket).exists():
            return False
        try:
            create_database(self.admin, ROLE)
        except pymysql.OperationalError:
            return False
        return True

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the process. With SIGKILL it crashes, and recovers at the next start."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(how)
                self._process.wait(timeout=120)
            self._process = None

    def close(self) -> None:
        """Stop the process, and remove its socket."""
        self.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)


def create_database(admin: str, name: str) -> None:
    """Create the user and a database in a MariaDB that Plait has started, as `deploy/gyro/role-mariadb.sql` does."""
    from plait.gyro.belt.databases.mariadb.connection import connect, execute, quoted

    db = connect(admin)
    try:
        execute(db, f"CREATE DATABASE IF NOT EXISTS {quoted(name)} CHARACTER SET utf8mb4")
        execute(db, f"CREATE USER IF NOT EXISTS {ROLE}@localhost")
        for each in (name, trial_of(name)):
            execute(db, f"GRANT ALL PRIVILEGES ON {quoted(each).replace('_', chr(92) + '_')}.* TO {ROLE}@localhost")
    finally:
        db.close()
