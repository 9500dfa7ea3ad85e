"""Servers and clients at the sites of Saissi 2019, section 2.8. Distances are simulated, everything else is real.

Clients are at all five sites of Table 2 and call the nearest server. A message between two sites is delayed by half the
round trip in the table. Each client calls the same number of pages, so that clients near a server do not get more
weight than distant ones. The token takes the shortest ring through the servers.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

from plait.bench.gyro.galera import Galera
from plait.bench.gyro.partitioned import fill
from plait.bench.gyro.partitioned_server import PARTITIONS
from plait.bench.gyro.workloads import (
    Session,
    Workload,
)
from plait.gyro.belt.application import load, schema_of
from plait.gyro.belt.client import CallError, Client
from plait.gyro.belt.databases.postgresql.server import PostgresServer
from plait.gyro.belt.routing import Route, place
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.kernel.errors import UsageError

SITES = ("Germany", "Japan", "United States", "Brazil", "Australia")
_TRIPS = {(0, 1): 253, (0, 2): 92, (0, 3): 193, (0, 4): 314, (1, 2): 153, (1, 3): 282, (1, 4): 188, (2, 3): 145, (2, 4): 229,
          (3, 4): 322}  # fmt: skip
"""Table 2: round trips between two sites, in milliseconds."""
Kind = Literal["central", "gyro", "read-only", "galera", "partitioned"]
_PROGRAMS = {"galera": "plait.bench.gyro.galera_server", "partitioned": "plait.bench.gyro.partitioned_server"}
"""The servers of the peers. They execute every operation at once, and their DBMS coordinates."""


def trip(one: int, other: int) -> float:
    """The round trip between two sites, in seconds."""
    return _TRIPS[min(one, other), max(one, other)] / 1000 if one != other else 0.0


def ring(servers: int) -> tuple[int, ...]:
    """The first sites of the list, in the order of the shortest ring.

    >>> [SITES[s] for s in ring(5)]
    ['Germany', 'United States', 'Japan', 'Australia', 'Brazil']
    """
    orders = ((0, *rest) for rest in itertools.permutations(range(1, servers)))
    return min(orders, key=lambda o: (sum(trip(a, b) for a, b in itertools.pairwise((*o, 0))), o))


class Sample(msgspec.Struct, frozen=True):
    """One operation, as its client measured it: seconds with and without the network delay."""

    seconds: float
    served: float
    needs_token: bool


def routed(known: dict[str, Route], kind: Kind) -> dict[str, Route]:
    """The routes of a configuration."""
    if kind == "gyro":
        return known
    change = msgspec.structs.replace
    if kind == "central":
        return {n: change(r, classed="local") for n, r in known.items()}
    if kind in _PROGRAMS:
        return {n: change(r, keys=[], classed="local") for n, r in known.items()}
    return {n: change(r, keys=[], classed="local" if r.read_only else "global") for n, r in known.items()}


class Deployment:
    """Servers at the first sites of the list, and clients at all sites. Without `far`, there are no delays."""

    def __init__(
        self,
        workload: Workload,
        known: dict[str, Route],
        servers: int,
        folder: Path,
        *,
        far: bool,
        kind: Kind = "gyro",
    ) -> None:
        self.workload = workload
        self.servers = servers
        self._far = far
        self._sites = ring(servers)
        delays = [[self._trip(i, j) / 2 for j in self._sites] for i in self._sites]
        module = load(workload.application)
        schema = schema_of(workload.application, module, None) + workload.data
        self._galera: Galera | None = None
        self._postgresql: list[PostgresServer] = []
        self._supervisor: Supervisor | None = None
        try:
            dsns = self._peer(kind, folder, delays, schema)
            self._start(known, folder, schema, delays, dsns, kind)
        except BaseException:
            self.close()
            raise

    def _peer(self, kind: Kind, folder: Path, delays: list[list[float]], schema: str) -> list[str]:
        """Start the DBMS of a peer. Returns how its servers connect to it."""
        if kind == "galera":
            self._galera = Galera(folder / "galera", delays)
            self._galera.start(schema)
            return self._galera.sockets
        if kind == "partitioned":
            (folder / PARTITIONS).write_bytes(msgspec.json.encode(self.workload.partitions))
            for number in range(self.servers):
                self._postgresql.append(PostgresServer(folder / f"postgresql-{number}"))
                self._postgresql[-1].start()
            fill([p.dsn for p in self._postgresql], schema, self.workload.partitions)
        return [p.dsn for p in self._postgresql]

    def _start(
        self,
        known: dict[str, Route],
        folder: Path,
        schema: str,
        delays: list[list[float]],
        dsns: list[str],
        kind: Kind,
    ) -> None:
        settings = Settings(
            application=self.workload.application,
            routes=known,
            schema=schema,
            urls=[f"http://127.0.0.1:{port}" for port in free_ports(self.servers)],
            folder=str(folder),
            secret="measurement",
            lost=30.0,
            threads=16,
            idle=0.0 if self.servers > 1 and kind not in _PROGRAMS else 0.25,
            delays=delays,
            dsns=dsns,
        )
        self._supervisor = Supervisor(settings, module=_PROGRAMS.get(kind, "plait.gyro.belt.server"))
        self._supervisor.start()
        self.client = Client(settings.urls, timeout=60, protocol="http")  # as all peers

    def _trip(self, one: int, other: int) -> float:
        return trip(one, other) if self._far else 0.0

    def run(self, clients: int, pages: int, think: float) -> tuple[list[Sample], float]:
        """Run clients at each site. Returns one sample per operation, and operations per second."""
        samples: list[Sample] = []
        rates: list[float] = []
        failures: list[Exception] = []

        def work(site: int, number: int) -> None:
            near = (
                min(range(self.servers), key=lambda s: trip(site, self._sites[s]))
                if self._far
                else (site + number) % self.servers
            )
            session = Session(near, self.servers, random.Random(100_000 * clients + 1000 * site + number))
            mine: list[Sample] = []

            def send(operation: str, parameters: dict[str, Any]) -> Any:
                route = self.client.routes[operation]
                server, kind = place(route, parameters, self.servers, near)
                way = self._trip(site, self._sites[server])
                begin = time.perf_counter()
                time.sleep(way / 2)
                asked = time.perf_counter()
                reply = self.client.send(operation, parameters, at=server).reply
                served = time.perf_counter() - asked
                time.sleep(way / 2)
                mine.append(Sample(time.perf_counter() - begin, served, kind == "global"))
                return reply

            time.sleep(session.random.random() * 0.5 if think else 0.0)
            begin = time.perf_counter()
            try:
                for _ in range(pages):
                    time.sleep(session.random.expovariate(1 / think) if think else 0.0)
                    self.workload.page(session, send)
            except (CallError, OSError) as error:
                failures.append(error)
            rates.append(len(mine) / (time.perf_counter() - begin))
            samples.extend(mine)

        everybody = [(site, number) for site in range(len(SITES)) for number in range(clients)]
        threads = [threading.Thread(target=work, args=each, daemon=True) for each in everybody]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise UsageError(
                f"{self.workload.name}: an operation failed: {failures[0]}", hint="read the messages of the servers"
            )
        return samples, sum(rates)

    def close(self) -> None:
        """Stop the servers."""
        if hasattr(self, "client"):
            self.client.close()
        if self._supervisor is not None:
            self._supervisor.stop()
        if self._galera is not None:
            self._galera.close()
        for each in self._postgresql:
            each.close()
