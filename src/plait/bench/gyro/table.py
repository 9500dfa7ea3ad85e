"""Latency and throughput at several sites: the figures of Saissi 2019, section 2.8.

*central* is one server in Germany. *read-only* executes read-only operations at the nearest server, and all others with
the token. *gyro* uses the classification of `plait gyro analyze`. *galera* is a clustered DBMS with a node at each
site; each operation runs at the nearest node. *partitioned* is several servers of PostgreSQL with partitioned data and
two-phase commit (Figure 6 of Saissi 2019 compares with MySQL Cluster).
"""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plait.bench.gyro.deployment import SITES, Deployment, Kind, Sample, routed
from plait.bench.gyro.galera import missing
from plait.bench.gyro.parallel import CLIENTS, Parallel
from plait.bench.gyro.workloads import (
    ITEMS,
    MICRO,
    RUBIS_PARTITIONS,
    TPCW_PARTITIONS,
    Workload,
    micro_page,
    rubis_data,
    rubis_page,
    tpcw_data,
    tpcw_page,
)
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Plot, Row, Table
from plait.gyro.analysis import analyze
from plait.gyro.belt.application import load, schema_of
from plait.gyro.belt.databases.postgresql.server import programs
from plait.gyro.belt.routing import Route, routes
from plait.kernel.errors import Argument, UsageError

_PUBLISHED = {
    ("TPC-W", "gyro", 2): 1390 / 671, ("TPC-W", "gyro", 3): 1390 / 436, ("TPC-W", "gyro", 5): 1390 / 29,
    ("TPC-W", "read-only", 2): 1390 / 902, ("TPC-W", "read-only", 3): 1390 / 521, ("TPC-W", "read-only", 5): 1390 / 129,
    ("RUBiS", "gyro", 2): 416 / 182, ("RUBiS", "gyro", 3): 416 / 155, ("RUBiS", "gyro", 5): 416 / 35,
    ("RUBiS", "read-only", 2): 416 / 145, ("RUBiS", "read-only", 3): 416 / 131, ("RUBiS", "read-only", 5): 416 / 96,
}  # fmt: skip
"""Table 3, as ratios."""

THINK = 0.25
"""Mean seconds that a client waits before a page. Without a wait, it would need the token just after the token left."""

NEAR = (1, 2, 3)
"""Numbers of servers for Figure 6."""
SLOWEST = 5000.0
"""Figure 7: the number of clients is not increased further if the mean latency is above this, in milliseconds."""
_MORE = {"TPC-W": 2.91, "RUBiS": 1.81}
"""Figure 7: how much greater the maximal throughput of gyro is than that of read-only replication, with five servers."""
COLUMNS = [
    Column("servers"),
    Column("clients"),
    Column("operations", shown=False),
    Column("throughput"),
    Column("mean"),
    Column("median"),
    Column("local_median", "local*"),
    Column("local_mean", "local"),
    Column("global_mean", "global"),
    Column("global_share", "share"),
    Column("ratio", published="published"),
]
_PLOT = Plot("mean", "mean latency in milliseconds; operations per second", "throughput")
_PLOT_CLASSES = Plot(
    "global_mean", "mean latency of global operations in milliseconds; of local operations", "local_mean"
)
_REMARK = (
    "* median of operations without the token, measured at the server; local, global: means of operations without and with "
    "the token; "
    "share: their share of all operations; ratio: mean of central / mean of this row."
)


class Run(NamedTuple):
    """The measurements of all clients in one configuration."""

    samples: list[Sample]
    rate: float
    """Operations per second of all clients together."""

    @property
    def mean(self) -> float:
        """The mean latency in milliseconds."""
        return statistics.fmean(s.seconds * 1000 for s in self.samples)


def measure(options: Options) -> Table:
    """Measure the chosen figures: `latency` (Table 3), `lan`, `load`, `share`, `classes` (Figures 6 to 9) and others."""
    if options.faults:
        from plait.bench.gyro.faults import run

        return run.measure(options)
    if "cost" in options.figure:
        if len(options.figure) > 1:
            raise UsageError("--figure cost cannot be combined with other figures", hint="measure it alone")
        from plait.bench.gyro import cost

        return cost.measure(options)
    pages = 15 if options.quick else 40
    table = Table(
        "gyro",
        "Servers at several sites (Saissi 2019, section 2.8)",
        COLUMNS,
        "configuration",
        f"{pages} pages per client, {THINK:g} s apart for latencies; clients at five sites; round trips of Table 2 are "
        "simulated (none in Figure 6), the rest is real: servers are processes on this machine with SQLite, with a "
        "node of MariaDB for Galera, or with PostgreSQL for partitioned data",
        summary=[_REMARK],
        plot=_PLOT_CLASSES if options.figure == ("classes",) else _PLOT,
    )
    remarks: list[str] = []
    with table.measuring():
        for figure in options.figure:
            if figure == "share":
                _shares(table, options, "5 ms operations, 3 servers", 8, 0.0)
            elif figure == "parallel":
                _parallel(table, options)
            elif figure == "classes":
                _shares(table, options, "5 ms operations, light load", 1, THINK)
                _shares(table, options, "5 ms operations, higher load", 8, 0.0)
            else:
                _sites(table, figure, pages, options)
            if figure == "latency":
                remarks.append(_overhead(options))
    table.summary += [*_summary(table.rows), *remarks]
    return table


def add(
    table: Table, setting: str, kind: str, servers: int, clients: int, run: Run, central: float | None = None
) -> None:  # fmt: skip
    """Add the row of a configuration, compared with the mean of one central server."""
    times = [s.seconds * 1000 for s in run.samples]
    local = [s for s in run.samples if not s.needs_token]
    waited = [s.seconds * 1000 for s in run.samples if s.needs_token]
    published = _PUBLISHED.get((setting, kind, servers))
    table.add(
        setting,
        kind if kind.endswith("local") else f"{kind}, {servers}",
        servers=Cell(servers),
        clients=Cell(clients * len(SITES)),
        operations=Cell(len(run.samples)),
        throughput=Cell(run.rate, "1/s"),
        mean=Cell(run.mean, "ms"),
        median=Cell(statistics.median(times), "ms"),
        local_median=Cell(statistics.median(s.served * 1000 for s in local), "ms") if local else None,
        local_mean=Cell(statistics.fmean(s.seconds * 1000 for s in local), "ms") if local else None,
        global_mean=Cell(statistics.fmean(waited), "ms") if waited else None,
        global_share=Cell(len(waited) / len(run.samples), "share"),
        ratio=Cell(central / run.mean, "x", published=published) if central else None,
    )


def _workloads(examples: Path) -> list[Workload]:
    found = [
        Workload("TPC-W", str(examples / "gyro" / "tpcw.py"), tpcw_data(), tpcw_page, TPCW_PARTITIONS),
        Workload("RUBiS", str(examples / "gyro" / "rubis.py"), rubis_data(), rubis_page, RUBIS_PARTITIONS),
    ]
    for workload in found:
        if not Path(workload.application).is_file():
            raise UsageError(
                f"{workload.application} does not exist", hint=("run in the repository, or give ", Argument("examples"))
            )
    return found


def _sites(table: Table, figure: str, pages: int, options: Options) -> None:
    """Add the rows of a figure."""
    loads: tuple[int, ...] = (
        (3,) if figure == "latency" else (4, 12, 36) if figure == "load" and not options.quick else (12,)
    )
    think = THINK if figure == "latency" else 0.0
    far = figure != "lan"
    left_out = missing(far=far)
    if left_out is not None:
        table.missing["Galera"] = left_out
    peers: list[Kind] = ["galera"] if left_out is None else []
    if figure == "lan":
        if programs() is not None:
            peers.append("partitioned")
        else:
            table.missing["partitioned"] = "PostgreSQL is not installed"
    for workload in _workloads(options.examples):
        known = routes(analyze(workload.application, servers=5))
        central = dict.fromkeys(loads, 0.0)
        for kind, servers in _configurations(figure, peers, quick=options.quick):
            options.tell(f"{workload.name}, {figure}: {kind}, {servers} server{'s' if servers > 1 else ''}")
            runs = _run(workload, routed(known, kind), servers, loads, pages, think, far=far, kind=kind)
            for clients, run in zip(loads, runs, strict=False):  # fewer runs if latencies become too large
                name = workload.name if figure == "latency" else f"{workload.name}, {clients * len(SITES)} clients"
                central[clients] = run.mean if kind == "central" else central[clients]
                add(table, name if far else f"{name}, no distances", kind, servers, clients, run, central[clients])


def _configurations(figure: str, peers: Sequence[Kind], *, quick: bool) -> list[tuple[Kind, int]]:
    """The configurations and numbers of servers of a figure. Figure 6 has no read-only replication."""
    found: list[tuple[Kind, int]] = [("central", 1)]
    if figure == "lan":
        counts = NEAR[-1:] if quick else NEAR
        kinds: list[Kind] = ["gyro", *peers]
        return [*found, *((kind, n) for kind in kinds for n in counts)]
    for kind in ("gyro", "read-only"):
        found += [(kind, n) for n in ((3, 5) if quick else (2, 3, 4, 5))]
    return [*found, *((kind, n) for kind in peers for n in ((3,) if quick else (3, 5)))]


def _run(
    workload: Workload,
    known: dict[str, Route],
    servers: int,
    loads: Sequence[int],
    pages: int,
    think: float,
    *,
    far: bool = True,
    kind: Kind = "gyro",
) -> list[Run]:
    """Run each number of clients per site, one after the other, on the same servers, until latencies become too large."""
    folder = Path(tempfile.mkdtemp(prefix="plait-gyro-"))
    folder.chmod(0o755)  # MariaDB runs as another user.
    try:
        deployment = Deployment(workload, known, servers, folder, far=far, kind=kind)
        try:
            runs: list[Run] = []
            for clients in loads:
                if runs and runs[-1].mean > SLOWEST:
                    break
                runs.append(Run(*deployment.run(clients, pages, think)))
            return runs
        finally:
            deployment.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _overhead(options: Options) -> str:
    """The time that the middleware adds to a local operation: a client and a server against a plain connection."""
    options.tell("overhead of a local operation")
    workload = _workloads(options.examples)[0]
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
        f"get_book of TPC-W takes {one:.2f} ms through client and server, {other:.2f} ms on a plain connection: "
        f"the middleware adds {one - other:.2f} ms (target: below 1)."
    )


def _shares(table: Table, options: Options, setting: str, clients: int, think: float) -> None:
    """Figures 8 and 9: operations of 5 ms, with different shares of local operations."""
    folder = Path(tempfile.mkdtemp(prefix="plait-gyro-"))
    pages = 10 if options.quick else 25
    try:
        file = folder / "micro.py"
        file.write_text(MICRO, encoding="utf-8")
        known = routes(analyze(file, servers=3))
        for percent in (0, 30, 60, 90) if options.quick else range(0, 100, 10):
            options.tell(f"{setting}: {percent} % local")
            workload = Workload("micro", str(file), "", micro_page(percent / 100))
            (run,) = _run(workload, known, 3, (clients,), pages, think)
            add(table, setting, f"{percent} % local", 3, clients, run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parallel(table: Table, options: Options) -> None:
    """Section 2.6: global operations of one server, one after the other and at the same time. The ratio is of throughput."""
    if programs() is None:
        table.missing["parallel"] = "PostgreSQL is not installed"
        return
    parallel = Parallel()
    try:
        for milliseconds in (5, 50) if options.quick else (5, 20, 100):
            setting = f"{milliseconds} ms in PostgreSQL, 1 server"
            alone = 0.0
            for variant, together, conflict in (
                ("one after the other", False, False),
                ("at the same time", True, False),
                ("at the same time, all conflict", True, True),
            ):
                options.tell(f"{setting}: {variant}")
                calls = 8 if options.quick else 16
                run = Run(*parallel.run(milliseconds / 1000, calls, together=together, conflict=conflict))
                alone = alone or run.rate
                table.add(
                    setting, variant, servers=Cell(1), clients=Cell(CLIENTS), operations=Cell(len(run.samples)),
                    throughput=Cell(run.rate, "1/s"), mean=Cell(run.mean, "ms"),
                    global_mean=Cell(run.mean, "ms"), ratio=Cell(run.rate / alone, "x"),
                )  # fmt: skip
    finally:
        parallel.close()


def _summary(rows: Sequence[Row]) -> list[str]:
    """The targets and the measured values."""
    lines = []
    for row in rows:
        if (row.setting, row.variant) == ("TPC-W", "gyro, 5"):
            lines.append(
                f"TPC-W at 5 sites: the mean is {row.value('ratio'):.1f} times lower than that of central (target: 10)."
            )
            lines.append(
                f"Local operations at the server, median: {row.value('local_median'):.2f} ms (target: below 2)."
            )
        peer, _, _ = row.variant.partition(",")
        if peer in ("galera", "partitioned"):
            for ours in (r for r in rows if r.setting == row.setting):
                if ours.variant == row.variant.replace(peer, "gyro"):
                    lines.append(
                        f"{row.setting}, {row.value('servers')} servers: the mean of gyro is "
                        f"{row.value('mean') / ours.value('mean'):.1f} times lower than that of {peer}, its throughput "
                        f"{ours.value('throughput') / row.value('throughput'):.1f} times as high."
                    )
    for name, published in _MORE.items():
        rates = {
            kind: max(
                (r.value("throughput") for r in rows if r.setting.startswith(f"{name}, ") and r.variant == kind),
                default=0,
            )
            for kind in ("gyro, 5", "read-only, 5")
        }
        if all(rates.values()):
            more = rates["gyro, 5"] / rates["read-only, 5"] - 1
            lines.append(
                f"{name}: the greatest throughput of gyro with 5 servers is {more:.0%} above that of read-only replication "
                f"(published: {published:.0%})."
            )
    return lines
