"""A server without a thread of its own: tests decide when it executes, and when it ships local updates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from plait.bench.gyro.faults import board
from plait.gyro.belt.application import Application
from plait.gyro.belt.databases.outbox import Outbox
from plait.gyro.belt.identity import confirm
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import LogGoneError
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Token
from plait.gyro.belt.replication.rebuild import check_replication, rebuild
from plait.gyro.belt.replication.shipper import Shipper
from tests.gyro.belt.runs import board_routes
from tests.support.engines import Engine


class Unreachable(EmbeddedLog):
    """A log that does not answer `ship` while it is down."""

    down = False

    def ship(self, server: int, updates: object) -> None:
        if self.down:
            raise LogGoneError("timeout")
        super().ship(server, updates)  # type: ignore[arg-type]


class Alone:
    """No other servers."""

    def send(self, server: int, token: Token) -> bool:
        return False

    def hint(self) -> None:
        pass


class Desk:
    """Server 0 of a cluster of two, without a thread of its own: tests decide when it ships."""

    def __init__(
        self, folder: Path, engine: Engine, *, acknowledged: bool = True, step: Callable[[str], None] = lambda _: None
    ) -> None:
        self.folder, self.engine = folder, engine
        self.application = Application(board, board_routes())
        self.log = Unreachable(folder / "log.db")
        engine.shipping = self.log.largest
        self.database = engine.open(0, 2, step)
        check_replication(0, True, engine.schema, self.database, self.log)
        self.shipper = Shipper(
            0, confirm(0, self.database, self.log), self.database, self.log, acknowledged=acknowledged, wait=0.2, step=step
        )  # fmt: skip
        self.node = Node(0, 2, self.database, self.log, Alone(), shipper=self.shipper)
        self._count = 0

    def write(self, operation: str, **arguments: Any) -> Any:
        """Execute a local operation, without waiting for the log."""
        self._count += 1
        return self.database.write(self.application.call(f"request {self._count}", operation, arguments))

    def some(self) -> None:
        for number in range(3):
            self.write("note", owner=0, value=number)
            self.write("paint", person=2, colour=f"c{number}")
            self.write("draw", owner=4, label=f"t{number}")

    def close(self) -> None:
        self.log.close()
        self.database.close()

    def rebuilt(self) -> Outbox:
        """The database that the log gives."""
        self.engine.lose(0)
        database = self.engine.open(0, 2, lambda _: None)
        rebuild(0, database, self.log)
        return database
