"""All benchmarks. Each is one file with a function `measure(options) -> Table`. `run` imports the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NamedTuple

from plait.bench.options import Options
from plait.bench.table import Table
from plait.kernel.errors import MissingPackageError, UsageError
from plait.kernel.extras import require


class Benchmark(NamedTuple):
    """The module of a benchmark, what it measures, and which options it takes besides `quick`."""

    module: str
    group: str
    about: str
    options: frozenset[str] = frozenset()
    extra: str | None = None
    """The extra of Plait that it needs."""


def _papers(name: str, about: str, *options: str, extra: str | None = None) -> Benchmark:
    return Benchmark(f"plait.bench.papers.{name}", "papers", about, frozenset(options), extra)


def _engine(name: str, about: str, *options: str, extra: str | None = None) -> Benchmark:
    return Benchmark(f"plait.bench.engine.{name}", "engine", about, frozenset(options), extra)


BENCHMARKS: dict[str, Benchmark] = {
    "dbss": _papers("dbss", "DBSS, Table I: states with each reduction", "workers", "quorum", "plot"),
    "quorum": _papers("quorum", "MP-Basset: quorum transitions and their splits", "workers", "plot"),
    "rounds": _papers("rounds", "Sequentialization, Table 1: bugs found by rounds", "workers", "plot"),
    "bmc": _papers(
        "bmc",
        "Saissi 2019, Tables 6 and 7: projections in BMC; or CBMC",
        "timeout",
        "peer",
        "files",
        "plot",
        extra="bmc",
    ),
    "epa": _papers(
        "epa",
        "Saissi 2019, Tables 8 and 10, Figure 17: error propagation analysis",
        "repeats",
        "examples",
        "runs",
        "jobs",
        "plot",
        extra="epa",
    ),
    "gyro": Benchmark(
        "plait.bench.gyro.table",
        "papers",
        "Saissi 2019, section 2.8: servers at five sites",
        frozenset({"figure", "faults", "seed", "examples", "plot"}),
        "serve",
    ),
    "peers": Benchmark(
        "plait.bench.peers.table",
        "engine",
        "Plait, Spin, Stateright and TLC on the same protocols",
        frozenset({"workers", "tla2tools", "plot"}),
    ),
    "spin": _engine("spin", "speed against Spin on single-message Paxos", "repeats", "plot"),
    "stateright": _engine("stateright", "speed against Stateright on its register Paxos", "repeats", "plot"),
    "throughput": _engine("throughput", "transitions per second with one and with two workers", "repeats"),
    "searches": _engine("searches", "speed of bfs, dfs, stateless and random search on Paxos", "repeats", "plot"),
    "reductions": _engine("reductions", "how many states reductions remove, and their cost", "repeats"),
    "liveness": _engine("liveness", "time and memory of temporal properties", "repeats"),
    "native": _engine("native", "native execution of handlers, cold and warm searches, two workers", "repeats"),
    "memory": _engine("memory", "100 million states within 4 GiB"),
    "startup": _engine("startup", "wall time of plait --help, a small check and plait bmc", "repeats"),
    "explore": _engine("explore", "how fast plait explore answers: a step, a long run, a graph", extra="explore"),
}
GROUPS = {
    "all": "all benchmarks",
    "papers": "the tables of the papers",
    "engine": "speed and memory of the engine; comparisons with other checkers",
}


def select(names: Sequence[str]) -> list[str]:
    """Resolve names of benchmarks and groups; each benchmark is listed once.

    >>> select(["startup", "dbss", "startup"]), len(select(["all"])) == len(BENCHMARKS)
    (['startup', 'dbss'], True)
    """
    chosen: dict[str, None] = {}
    for name in names:
        if name not in BENCHMARKS and name not in GROUPS:
            known = ", ".join(BENCHMARKS)
            raise UsageError(f"there is no benchmark {name}", hint=f"choose one of {known}")
        if name in BENCHMARKS:
            chosen[name] = None
        else:
            chosen |= {each: None for each, found in BENCHMARKS.items() if name in ("all", found.group)}
    return list(chosen)


def run_all(names: Sequence[str], options: Options) -> Iterator[Table]:
    """Run benchmarks one after the other. If there are several, skip those that need a missing package."""
    for name in names:
        try:
            table = run(name, options)
        except MissingPackageError as error:
            if len(names) == 1:
                raise
            table = Table(name, BENCHMARKS[name].about, [], skipped=f"{error.message}; {error.hint}")
        yield table
        if not table.complete:
            break


def run(name: str, options: Options | None = None) -> Table:
    """Run one benchmark.

    >>> run("startup", Options(quick=True)).title  # doctest: +SKIP
    'Start-up: wall time of a command'
    """
    benchmark = BENCHMARKS[name]
    if benchmark.extra is not None:
        require(benchmark.extra)
    table: Table = import_module(benchmark.module).measure(options or Options())
    return table
