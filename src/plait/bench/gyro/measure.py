"""Latency and throughput at several sites (thesis 004, section 2.8): distances are simulated, everything else is real.

Clients are at all five sites of Table 2 and ask the nearest server. A message between two sites is held back for half of
the round trip that the table gives. *Central* is one server in Germany; *read-only* executes what only reads at the nearest
server and everything else with the token; *gyro* is the classification; *galera* is a clustered DBMS at all sites, and every
operation at the nearest of its nodes (figure 6 compares with MySQL Cluster). Every client calls the same number of pages, so
that clients near a server do not count more than those far away. The token takes the shortest way around.
"""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from plait.bench.gyro.galera import Galera, missing
from plait.bench.gyro.workloads import (
    ITEMS,
    MICRO,
    Session,
    Workload,
    micro_page,
    rubis_data,
    rubis_page,
    tpcw_data,
    tpcw_page,
)
from plait.bench.sites import SiteRow, SiteTable
from plait.gyro.analysis import analyze
from plait.gyro.belt.application import load, schema_of
from plait.gyro.belt.client import CallError, Client
from plait.gyro.belt.routing import Route, place, routes
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.supervisor import Supervisor, free_ports
from plait.kernel.errors import UsageError

SITES = ("Germany", "Japan", "United States", "Brazil", "Australia")
_TRIPS = {(0, 1): 253, (0, 2): 92, (0, 3): 193, (0, 4): 314, (1, 2): 153, (1, 3): 282, (1, 4): 188, (2, 3): 145, (2, 4): 229,
          (3, 4): 322}  # fmt: skip
"""Table 2: milliseconds between two sites, there and back."""
_PUBLISHED = {
    ("TPC-W", "gyro", 2): 1390 / 671, ("TPC-W", "gyro", 3): 1390 / 436, ("TPC-W", "gyro", 5): 1390 / 29,
    ("TPC-W", "read-only", 2): 1390 / 902, ("TPC-W", "read-only", 3): 1390 / 521, ("TPC-W", "read-only", 5): 1390 / 129,
    ("RUBiS", "gyro", 2): 416 / 182, ("RUBiS", "gyro", 3): 416 / 155, ("RUBiS", "gyro", 5): 416 / 35,
    ("RUBiS", "read-only", 2): 416 / 145, ("RUBiS", "read-only", 3): 416 / 131, ("RUBiS", "read-only", 5): 416 / 96,
}  # fmt: skip
"""Table 3, as ratios."""

THINK = 0.25
"""Seconds that a client waits before a page, on average. Without, it would ask for the token again just when it has left."""

Kind = Literal["central", "gyro", "read-only", "galera"]
NEAR = (1, 2, 3)
"""How many servers figure 6 has here."""


def trip(one: int, other: int) -> float:
    """Seconds there and back."""
    return _TRIPS[min(one, other), max(one, other)] / 1000 if one != other else 0.0


def ring(servers: int) -> tuple[int, ...]:
    """The first sites of the list, in the order of the shortest way around.

    >>> [SITES[s] for s in ring(5)]
    ['Germany', 'United States', 'Japan', 'Australia', 'Brazil']
    """
    orders = ((0, *rest) for rest in itertools.permutations(range(1, servers)))
    return min(orders, key=lambda o: (sum(trip(a, b) for a, b in itertools.pairwise((*o, 0))), o))


class Sample(msgspec.Struct, frozen=True):
    """One operation, as its client saw it: seconds with and without the way."""

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
    if kind == "galera":
        return {n: change(r, keys=[], classed="local") for n, r in known.items()}
    return {n: change(r, keys=[], classed="local" if r.read_only else "global") for n, r in known.items()}


class Deployment:
    """Servers at the first sites of the list, and clients at all of them. If it is not far, all are at one place."""

    def __init__(
        self,
        workload: Workload,
        known: dict[str, Route],
        servers: int,
        folder: Path,
        *,
        far: bool,
        galera: bool = False,
    ) -> None:
        self.workload = workload
        self.servers = servers
        self._far = far
        self._sites = ring(servers)
        delays = [[self._trip(i, j) / 2 for j in self._sites] for i in self._sites]
        module = load(workload.application)
        schema = schema_of(workload.application, module, None) + workload.data
        self._galera = Galera(folder / "galera", delays) if galera else None
        if self._galera is not None:
            self._galera.start(schema)
        settings = Settings(
            application=workload.application,
            routes=known,
            schema=schema,
            urls=[f"http://127.0.0.1:{port}" for port in free_ports(servers)],
            folder=str(folder),
            secret="measurement",
            lost=30.0,
            threads=16,
            idle=0.0 if servers > 1 and not galera else 0.25,
            delays=delays,
            dsns=self._galera.sockets if self._galera is not None else [],
        )
        program = "plait.bench.gyro.galera_server" if galera else "plait.gyro.belt.server"
        self._supervisor = Supervisor(settings, module=program)
        try:
            self._supervisor.start()
            self.client = Client(settings.urls, timeout=60)
        except BaseException:
            self.close()
            raise

    def _trip(self, one: int, other: int) -> float:
        return trip(one, other) if self._far else 0.0

    def run(self, clients: int, pages: int, think: float) -> tuple[list[Sample], float]:
        """So many clients at each site, each of which calls so many pages; and how many operations there were per second."""
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
                f"{self.workload.name}: an operation failed: {failures[0]}", hint="see what the servers say"
            )
        return samples, sum(rates)

    def close(self) -> None:
        """Stop the servers."""
        if hasattr(self, "client"):
            self.client.close()
        self._supervisor.stop()
        if self._galera is not None:
            self._galera.close()


def row(workload: str, kind: str, servers: int, clients: int, found: tuple[list[Sample], float]) -> SiteRow:
    """What a run came to."""
    samples, rate = found
    times = [s.seconds * 1000 for s in samples]
    local = [s.served * 1000 for s in samples if not s.needs_token]
    waited = [s.seconds * 1000 for s in samples if s.needs_token]
    return SiteRow(
        workload,
        kind,
        servers,
        clients * len(SITES),
        len(samples),
        rate,
        statistics.fmean(times),
        statistics.median(times),
        statistics.median(local) if local else 0.0,
        statistics.fmean(waited) if waited else 0.0,
        len(waited) / len(samples),
    )


def site_table(
    figures: Sequence[str], examples: Path, *, quick: bool, tell: Callable[[str], None]
) -> SiteTable:  # fmt: skip
    """The figures that are asked for: `lan` (figure 6), `load` (figure 7), `latency` (Table 3), `share` (figure 8)."""
    rows: list[SiteRow] = []
    summary: list[str] = []
    complete = True
    pages = 15 if quick else 40
    try:
        for figure in figures:
            if figure == "share":
                _shares(rows, quick=quick, tell=tell)
            else:
                summary += _sites(rows, figure, examples, pages, quick=quick, tell=tell)
            if figure == "latency":
                summary.append(_overhead(examples, tell))
    except KeyboardInterrupt:
        complete = False
    conditions = (
        f"{pages} pages per client, {THINK:g} s apart for latencies; clients at five sites; round trips of the thesis' "
        "Table 2 are simulated (none in figure 6), the rest is real (servers are processes on this machine, with SQLite; "
        "Galera: the same servers, with a node of MariaDB each)"
    )
    return SiteTable("gyro", "Thesis 004, section 2.8", conditions, rows, _summary(rows) + summary, complete)


def _sites(
    rows: list[SiteRow], figure: str, examples: Path, pages: int, *, quick: bool, tell: Callable[[str], None]
) -> list[str]:
    """The lines of a figure; what there is to say about them."""
    workloads = [
        Workload("TPC-W", str(examples / "tpcw.py"), tpcw_data(), tpcw_page),
        Workload("RUBiS", str(examples / "rubis.py"), rubis_data(), rubis_page),
    ]
    loads: tuple[int, ...] = (3,) if figure == "latency" else (4, 12) if figure == "load" and not quick else (12,)
    think = THINK if figure == "latency" else 0.0
    far = figure != "lan"
    left_out = missing(far=far)
    for workload in workloads:
        if not Path(workload.application).is_file():
            raise UsageError(
                f"{workload.application} is not there", hint="run it in the repository, or give --examples"
            )
        known = routes(analyze(workload.application, servers=5))
        central = dict.fromkeys(loads, 0.0)
        for kind, servers in _configurations(figure, quick=quick, galera=left_out is None):
            tell(f"{workload.name}, {figure}: {kind}, {servers} server{'s' if servers > 1 else ''}")
            runs = _run(workload, routed(known, kind), servers, loads, pages, think, far=far, galera=kind == "galera")
            for clients, found in zip(loads, runs, strict=True):
                name = workload.name if figure == "latency" else f"{workload.name}, {clients * len(SITES)} clients"
                made = row(name if far else f"{name}, no distances", kind, servers, clients, found)
                central[clients] = made.mean if kind == "central" else central[clients]
                published = _PUBLISHED.get((made.workload, kind, servers), 0.0)
                ratio = central[clients] / made.mean
                rows.append(msgspec.structs.replace(made, ratio=ratio, published_ratio=published))
    return [f"Galera is left out: {left_out}"] if left_out is not None else []


def _configurations(figure: str, *, quick: bool, galera: bool) -> list[tuple[Kind, int]]:
    """What a figure compares. Figure 6 has no read-only replication."""
    found: list[tuple[Kind, int]] = [("central", 1)]
    if figure == "lan":
        counts = NEAR[-1:] if quick else NEAR
        return [*found, *(("gyro", n) for n in counts), *(("galera", n) for n in counts if galera)]
    for kind in ("gyro", "read-only"):
        found += [(kind, n) for n in ((3, 5) if quick else (2, 3, 4, 5))]
    return [*found, *(("galera", n) for n in ((3,) if quick else (3, 5)) if galera)]


def _run(
    workload: Workload,
    known: dict[str, Route],
    servers: int,
    loads: Sequence[int],
    pages: int,
    think: float,
    *,
    far: bool = True,
    galera: bool = False,
) -> list[tuple[list[Sample], float]]:
    """Clients at each site, one number of them after the other, on the same servers."""
    folder = Path(tempfile.mkdtemp(prefix="plait-gyro-"))
    folder.chmod(0o755)  # MariaDB runs as another user
    try:
        deployment = Deployment(workload, known, servers, folder, far=far, galera=galera)
        try:
            return [deployment.run(clients, pages, think) for clients in loads]
        finally:
            deployment.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _overhead(examples: Path, tell: Callable[[str], None]) -> str:
    """What the middleware adds to a local operation: one client, one server, against the function on a plain connection."""
    tell("overhead of a local operation")
    workload = Workload("TPC-W", str(examples / "tpcw.py"), tpcw_data(), tpcw_page)
    folder = Path(tempfile.mkdtemp(prefix="plait-gyro-"))
    module = load(workload.application)
    try:
        plain = sqlite3.connect(folder / "plain.db")
        plain.executescript(schema_of(workload.application, module, None) + workload.data)
        deployment = Deployment(workload, routes(analyze(workload.application)), 1, folder, far=True)
        try:
            served, direct = [], []
            for number in range(600):
                item = 1 + number % ITEMS
                begin = time.perf_counter()
                deployment.client.call("get_book", item_id=item)
                middle = time.perf_counter()
                module.get_book(plain, item)
                served.append(middle - begin)
                direct.append(time.perf_counter() - middle)
        finally:
            deployment.close()
            plain.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    one, other = statistics.median(served[100:]) * 1000, statistics.median(direct[100:]) * 1000
    return (
        f"get_book of TPC-W takes {one:.2f} ms through client and server, {other:.2f} ms on a connection: "
        f"the middleware adds {one - other:.2f} ms (wanted: below 1)"
    )


def _shares(rows: list[SiteRow], *, quick: bool, tell: Callable[[str], None]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="plait-gyro-"))
    pages, clients = (10, 8) if quick else (25, 8)
    try:
        file = folder / "micro.py"
        file.write_text(MICRO, encoding="utf-8")
        known = routes(analyze(file, servers=3))
        for percent in (0, 30, 60, 90) if quick else range(0, 100, 10):
            tell(f"operations of 5 ms: {percent} % local")
            workload = Workload("micro", str(file), "", micro_page(percent / 100))
            (found,) = _run(workload, known, 3, (clients,), pages, 0.0)
            rows.append(row("5 ms operations, 3 servers", f"{percent} % local", 3, clients, found))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _summary(rows: Sequence[SiteRow]) -> list[str]:
    """What was wanted, and what came out."""
    lines = []
    for found in rows:
        if found.workload == "TPC-W" and (found.configuration, found.servers) == ("gyro", 5):
            lines.append(f"TPC-W at 5 sites: the mean is {found.ratio:.1f} times lower than central (wanted: 10)")
            lines.append(f"local operations at the server, median: {found.local_median:.2f} ms (wanted: below 2)")
        if found.configuration == "galera":
            for ours in (r for r in rows if r.workload == found.workload and r.servers == found.servers):
                if ours.configuration == "gyro":
                    lines.append(
                        f"{found.workload}, servers: {found.servers}; gyro has a mean {found.mean / ours.mean:.1f} times "
                        f"lower than Galera's, its throughput {ours.throughput / found.throughput:.1f} times as high"
                    )
    return lines
