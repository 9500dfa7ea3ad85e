"""A cluster in one process: real nodes, databases and logs, and a network and deaths that a seed decides on."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from plait.bench.gyro.faults.history import Event
from plait.gyro.belt.application import Application
from plait.gyro.belt.databases.outbox import Outbox
from plait.gyro.belt.identity import confirm
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import DatabaseGoneError, OperationError, Outcome, Token
from plait.gyro.belt.replication.rebuild import check_replication, rebuild
from plait.gyro.belt.replication.shipper import Shipper
from plait.gyro.belt.routing import Kind, Route, place
from tests.support.engines import Engine
from tests.support.patience import PATIENCE, until


class Crash(BaseException):
    """The process is gone."""


class MortalNode(Node):
    """A node that can die at every step."""

    dead = False

    def _guarded(self) -> None:
        try:
            super()._guarded()
        except Crash:
            self.dead = True
            self._stopped = True
            self._refuse("the server died")


class MortalShipper(Shipper):
    """A shipper that can die at every step, and its server with it."""

    node: MortalNode

    def _run(self) -> None:
        try:
            super()._run()
        except Crash:
            self._end()
            self.node.dead = True


class Cluster:
    """Servers, wires between them, and clients."""

    shippers: type[MortalShipper] = MortalShipper

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        module: ModuleType,
        routes: dict[str, Route],
        *,
        servers: int = 3,
        seed: int = 0,
        crashes: float = 0.0,
        losses: float = 0.0,
        delay: float = 0.0,
        idle: float = 0.002,
        lost: float = 0.15,
        open_log: Callable[[Path], Log] = lambda folder: EmbeddedLog(folder / "log.db"),
        where: Callable[..., tuple[int, Kind]] = place,
        replicate: str = "none",
    ) -> None:
        self.folder, self.engine, self.servers, self.where = folder, engine, servers, where
        self.application = Application(module, routes)
        self.crashes, self.losses, self.delay, self.idle, self.lost = crashes, losses, delay, idle, lost
        self.deaths = 0
        self.events: list[Event] = []
        self.errors: list[OperationError] = []
        self.log = open_log(folder)
        self._open_log = open_log
        self.replicate = replicate
        if replicate != "none":
            engine.shipping = self.log.largest
        self.lost_disks = 0
        self._zombies: list[MortalNode] = []
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._reviving = threading.Lock()
        self._stopped = False
        self.nodes: list[MortalNode] = [self._start(n) for n in range(servers)]
        self._nurse = threading.Thread(target=self._revive, daemon=True)
        self._nurse.start()

    def _open_database(self, server: int, step: Callable[[str], None]) -> Outbox:
        return self.engine.open(server, self.servers, step)

    def chance(self, probability: float) -> bool:
        with self._lock:
            return self._random.random() < probability

    def _start(self, server: int) -> MortalNode:
        def step(_name: str) -> None:
            if not self._stopped and self.chance(self.crashes):
                raise Crash

        while True:
            log = self._open_log(self.folder)
            quiet, incarnation = self._opened(server, step, log)
            node = MortalNode(
                server, self.servers, quiet, log, Wires(self, server),
                idle=self.idle, lost=self.lost, step=step, incarnation=incarnation,
            )  # fmt: skip
            if self.replicate != "none":
                node.shipper = shipper = self.shippers(
                    server, node.incarnation, quiet, log, acknowledged=self.replicate == "acknowledged",
                    step=step, stop=node.end,
                )  # fmt: skip
                shipper.node = node
            try:
                node.start()
                return node
            except Crash:  # during recovery: and again
                self.deaths += 1
                self._bury(node)

    def _opened(self, server: int, step: Callable[[str], None], log: Log) -> tuple[Outbox, int]:
        """The database of a server, and its incarnation. Nothing stays open if it is refused."""
        try:
            database = self._open_database(server, step)
            try:
                check_replication(server, self.replicate != "none", self.engine.schema, database, log)
                return database, confirm(server, database, log)
            except BaseException:
                database.close()
                raise
        except BaseException:
            log.close()
            raise

    def _bury(self, node: MortalNode) -> None:
        if node.shipper is not None:
            node.shipper._end()
        node.log.close()
        node.database.close()

    def lose(self, server: int, *, zombie: bool = False) -> None:
        """A server loses its disk, and is rebuilt from the log. A zombie has its disk, and goes on for some time."""
        with self._reviving:
            old = self.nodes[server]
            if not zombie:
                old.dead = True
                old._stopped = True
                if old.shipper is not None:
                    old.shipper._end()
            self._zombies.append(old)
            self.engine.lose(server)
            log = self._open_log(self.folder)
            database = self.engine.open(server, self.servers, lambda _: None)
            rebuild(server, database, log)
            database.close()
            log.close()
            self.lost_disks += 1
            self.nodes[server] = self._start(server)

    def _revive(self) -> None:
        while not self._stopped:
            for server in range(self.servers):
                with self._reviving:
                    node = self.nodes[server]
                    if node.dead and not self._stopped:
                        self.deaths += 1
                        time.sleep(0.01)
                        self._bury(node)
                        self.nodes[server] = self._start(server)
            time.sleep(0.005)

    def call(self, operation: str, arguments: dict[str, Any], *, request: str, here: int = 0) -> Any:
        """Send a request until it is answered; it has one name, so it is executed once."""
        call = self.application.call(request, operation, arguments)
        route = self.application.routes[operation]
        server, kind = self.where(route, call.arguments, self.servers, here)
        while True:
            node = self.nodes[server]
            try:
                outcome = self._ask(node, call, kind)
            except OperationError as error:
                self.errors.append(error)
                return error
            except DatabaseGoneError:
                if self._stopped:
                    raise
                time.sleep(0.005)
                continue
            event = Event(
                operation, call.arguments, kind, server, msgspec.json.decode(outcome.reply),
                outcome.seq, outcome.position, outcome.wrote or outcome.repeated,
            )  # fmt: skip
            with self._lock:
                self.events.append(event)
            return event.reply

    @staticmethod
    def _ask(node: MortalNode, call: Any, kind: Kind) -> Outcome:
        if node.dead:
            raise DatabaseGoneError("dead")
        if kind == "read":
            return node.read(call)
        if kind == "local":
            return node.write(call)
        future = node.submit(call)
        while True:
            try:
                return future.result(timeout=0.2)
            except TimeoutError:
                if node.dead or node._stopped:
                    raise DatabaseGoneError("dead") from None

    def settle(self) -> None:
        """No more deaths; wait until every server has every update."""
        self.crashes = self.losses = 0.0

        def settled() -> bool:
            last = self.log.fence().last
            return all(not n.dead and n.applied == last for n in list(self.nodes))

        until(settled, "every server has every update")

    def stop(self) -> None:
        self._stopped = True
        self._nurse.join(timeout=PATIENCE)
        for node in [*self.nodes, *self._zombies]:
            node.stop()
            node.log.close()
            node.database.close()
        self.log.close()


class Wires:
    """From one server to all others: late, lost, twice."""

    def __init__(self, cluster: Cluster, server: int) -> None:
        self._cluster, self._server = cluster, server

    def send(self, server: int, token: Token) -> bool:
        cluster = self._cluster
        node = cluster.nodes[server] if server < len(getattr(cluster, "nodes", [])) else None
        if cluster.delay:
            time.sleep(cluster._random.random() * cluster.delay)
        if cluster.chance(cluster.losses):
            return cluster.chance(0.5)  # lost, and the sender may believe that it arrived
        if node is None or node.dead:
            return False
        node.receive(token)
        if cluster.chance(cluster.losses):
            node.receive(token)
        return not cluster.chance(cluster.losses)  # it arrived, and the sender may believe that it was lost

    def hint(self) -> None:
        for node in getattr(self._cluster, "nodes", []):
            node.hurry()
