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

from plait.gyro.belt.application import Application
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import Log
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import DatabaseGoneError, OperationError, Outcome, Token
from plait.gyro.belt.routing import Kind, Route, place
from tests.gyro.belt.engines import Engine
from tests.support.patience import PATIENCE, until


class Crash(BaseException):
    """The process is gone."""


class Event(msgspec.Struct):
    """An operation that was answered."""

    operation: str
    arguments: dict[str, Any]
    kind: Kind
    server: int
    reply: Any
    seq: int
    position: int
    wrote: bool

    @property
    def order(self) -> tuple[int, int, int, int, int]:
        """The order of the proof: an update at its seq, a local operation after what its server had applied."""
        if self.kind == "global" and self.wrote:
            return self.seq, 0, 0, 0, 0
        return self.seq, 1, self.server, self.position, 0 if self.wrote else 1


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


class Cluster:
    """Servers, wires between them, and clients."""

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
    ) -> None:
        self.folder, self.engine, self.servers, self.where = folder, engine, servers, where
        self.application = Application(module, routes)
        self.crashes, self.losses, self.delay, self.idle, self.lost = crashes, losses, delay, idle, lost
        self.deaths = 0
        self.events: list[Event] = []
        self.errors: list[OperationError] = []
        self.log = open_log(folder)
        self._open_log = open_log
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._stopped = False
        self.nodes: list[MortalNode] = [self._start(n) for n in range(servers)]
        self._nurse = threading.Thread(target=self._revive, daemon=True)
        self._nurse.start()

    def _open_database(self, server: int, step: Callable[[str], None]) -> Database:
        return self.engine.open(server, self.servers, step)

    def chance(self, probability: float) -> bool:
        with self._lock:
            return self._random.random() < probability

    def _start(self, server: int) -> MortalNode:
        def step(_name: str) -> None:
            if not self._stopped and self.chance(self.crashes):
                raise Crash

        quiet = self._open_database(server, step)
        node = MortalNode(
            server, self.servers, quiet, self._open_log(self.folder), Wires(self, server),
            idle=self.idle, lost=self.lost, step=step,
        )  # fmt: skip
        while True:
            try:
                node.start()
                return node
            except Crash:  # during recovery: and again
                self.deaths += 1
                node.database.close()
                node.database = self._open_database(server, step)

    def _revive(self) -> None:
        while not self._stopped:
            for server, node in enumerate(self.nodes):
                if node.dead and not self._stopped:
                    self.deaths += 1
                    time.sleep(0.01)
                    node.log.close()
                    node.database.close()
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
            return node.database.read(call)
        if kind == "local":
            return node.database.write(call)
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
        for node in self.nodes:
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
