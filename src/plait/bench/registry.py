"""All benchmarks. Each is one file with a function `measure(options) -> Table`, which is imported when it is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NamedTuple

from plait.bench.options import Options
from plait.bench.table import Table
from plait.kernel.errors import MissingPackageError, UsageError
from plait.kernel.extras import require


class Benchmark(NamedTuple):
    """Where a benchmark is, what it measures, and which options it takes besides --quick."""

    module: str
    group: str
    about: str
    options: frozenset[str] = frozenset()
    extra: str | None = None
    """The extra of the package that it needs."""


def _papers(name: str, about: str, *options: str, extra: str | None = None) -> Benchmark:
    return Benchmark(f"plait.bench.tables.{name}", "papers", about, frozenset(options), extra)


def _engine(name: str, about: str, *options: str) -> Benchmark:
    return Benchmark(f"plait.bench.engine.{name}", "engine", about, frozenset(options))


BENCHMARKS: dict[str, Benchmark] = {
    "dbss": _papers("dbss", "DBSS, Table I: states with each reduction", "workers", "quorum", "plot"),
    "quorum": _papers("quorum", "MP-Basset: quorum transitions and their splits", "workers", "plot"),
    "rounds": _papers("rounds", "Sequentialization, Table 1: bugs found by rounds", "workers", "plot"),
    "bmc": _papers("bmc", "Saissi 2019, Tables 6 and 7: projections in BMC", "timeout", "plot", extra="bmc"),
    "epa": _papers(
        "epa", "Saissi 2019, Tables 8 and 10: error propagation analysis", "repeats", "examples", extra="epa"
    ),
    "gyro": Benchmark(
        "plait.bench.gyro.table",
        "papers",
        "Saissi 2019, section 2.8: servers at five sites",
        frozenset({"figure", "examples", "plot"}),
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
    "throughput": _engine("throughput", "transitions a second, with one worker and with two", "repeats"),
    "searches": _engine("searches", "bfs, dfs, stateless and random search on one Paxos", "repeats", "plot"),
    "reductions": _engine("reductions", "what reductions remove, and what they cost", "repeats"),
    "liveness": _engine("liveness", "time and memory of temporal properties", "repeats"),
    "memory": _engine("memory", "100 million states within 4 GiB"),
    "startup": _engine("startup", "wall time of plait --help and of a small check", "repeats"),
}
GROUPS = {
    "all": "everything below",
    "papers": "the tables of the papers",
    "engine": "speed and memory of the engine, also against other checkers",
}


def select(names: Sequence[str]) -> list[str]:
    """The benchmarks that names of benchmarks and groups stand for, each once.

    >>> select(["startup", "dbss", "startup"]), len(select(["all"])) == len(BENCHMARKS)
    (['startup', 'dbss'], True)
    """
    chosen: dict[str, None] = {}
    for name in names:
        if name not in BENCHMARKS and name not in GROUPS:
            known = ", ".join(BENCHMARKS)
            raise UsageError(f"there is no benchmark {name}", hint=f"one of {known}; plait bench lists them")
        if name in BENCHMARKS:
            chosen[name] = None
        else:
            chosen |= {each: None for each, found in BENCHMARKS.items() if name in ("all", found.group)}
    return list(chosen)


def run_all(names: Sequence[str], options: Options) -> Iterator[Table]:
    """Run benchmarks one after the other; of several, those that need a package that is not installed are skipped."""
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
