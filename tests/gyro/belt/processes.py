"""A cluster of real processes, for tests: servers that listen, die by `kill -9`, and are started again."""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from plait.bench.gyro.faults import board
from plait.bench.gyro.faults.history import Event
from plait.gyro.belt.client import CallError, Client
from plait.gyro.belt.faults import CRASH
from plait.gyro.belt.routing import place
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from tests.gyro.belt.runs import board_routes
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite, scratch
from tests.support.patience import PATIENCE, until


class ServerFiles(Sqlite):
    """Where servers keep their SQLite files."""

    def file(self, server: int) -> Path:
        return self._folder / f"server-{server}" / "app.db"


class Processes:
    """Servers as processes, and a record of what they answered; looks like `Cluster` to the judges."""

    def __init__(self, supervisor: Supervisor, engine: Engine, died: list[str]) -> None:
        self._died = died
        self._doomed = 0
        self.supervisor, self.engine = supervisor, engine
        self.settings = supervisor.settings
        self.servers = self.settings.servers
        self.events: list[Event] = []
        self._lock = threading.Lock()
        tls = self.settings.tls
        trust = {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key} if tls is not None else {}
        self.client = Client(self.settings.urls, patience=PATIENCE, timeout=PATIENCE, **trust)
        self._ended = False
        self._nurse = threading.Thread(target=self._watch, daemon=True)
        self._nurse.start()

    def _watch(self) -> None:
        while not self._ended:
            self.supervisor.watch()
            time.sleep(0.02)

    def call(self, operation: str, arguments: dict[str, Any], *, request: str, here: int = 0) -> Any:
        route = self.settings.routes[operation]
        server, kind = place(route, arguments, self.servers, here)
        try:
            found = self.client.send(operation, arguments, request=request, at=server)
        except CallError as error:
            if error.raised != "ValueError":
                raise
            return error
        assert found.server == server
        event = Event(
            operation, arguments, kind, server, found.reply, found.seq, found.position, found.wrote or found.repeated
        )
        with self._lock:
            self.events.append(event)
        return found.reply

    def doom(self, server: int, where: str) -> None:
        """Start a server anew that will die at a step."""
        with self._paused():
            self.supervisor.kill(server)
            self._doomed += 1
            self.supervisor.spawn(server, os.environ | {CRASH: where})

    @contextmanager
    def _paused(self) -> Iterator[None]:
        self._ended = True
        self._nurse.join()
        try:
            yield
        finally:
            self._ended = False
            self._nurse = threading.Thread(target=self._watch, daemon=True)
            self._nurse.start()

    @property
    def deaths(self) -> int:
        """How often a server died."""
        return len(self._died) + self._doomed

    def settle(self) -> None:
        import msgspec

        def settled() -> bool:
            try:
                facts = [msgspec.json.decode(p.request("GET", "/status")[1]) for p in self.client.peers]
            except OSError:
                return False
            return len({f["applied"] for f in facts}) == 1 and not any(f["lag"] or f["queue"] for f in facts)

        until(settled, "every server has every update")

    def close(self) -> None:
        self._ended = True
        self._nurse.join()
        self.client.close()
        self.supervisor.stop()


Made = TypeVar("Made", bound=Processes)


@contextmanager
def started(
    made: type[Made],
    servers: int = 2,
    *,
    postgresql: bool = False,
    mariadb: bool = False,
    spare: int = 0,
    application: str = board.__file__,
    **options: Any,
) -> Iterator[Made]:
    """Servers of the board application, in a folder of their own; `spare` more may join."""
    folder = scratch()
    engine: ServerFiles | Postgresql | Mariadb = ServerFiles(folder, board.SCHEMA)
    if postgresql or mariadb:
        engine = (Postgresql if postgresql else Mariadb)(folder, board.SCHEMA)
        dsns = [engine.dsn(n) for n in range(servers + spare)]
        options |= {"db": "postgresql" if postgresql else "mariadb", "dsns": dsns, "threads": 1}
    settings = Settings(
        application=application,
        schema=engine.schema,
        urls=[f"{'https' if options.get('tls') else 'http'}://127.0.0.1:{port}" for port in free_ports(servers)],
        folder=str(folder),
        secret=f"a secret for tests {uuid.uuid4().hex}",  # it is the name of a log
        **({"idle": 0.01, "lost": 0.4, "routes": board_routes()} | options),
    )
    died: list[str] = []
    supervisor = Supervisor(settings, tell=died.append)
    try:
        supervisor.start(wait=PATIENCE)
        running = made(supervisor, engine, died)
        try:
            yield running
        finally:
            running.close()
    finally:
        supervisor.stop()
        engine.close()
        shutil.rmtree(folder, ignore_errors=True)


def processes(servers: int = 2, **options: Any) -> AbstractContextManager[Processes]:
    """Servers of the board application."""
    return started(Processes, servers, **options)
