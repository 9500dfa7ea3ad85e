"""One randomised run with faults, and a table of many. A seed decides the number of servers, requests and faults."""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from plait.bench.gyro.faults.cluster import FaultyCluster, can_log
from plait.bench.gyro.faults.nemesis import FAULTS, Heal
from plait.bench.gyro.faults.workload import judge, work
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Table
from plait.kernel.errors import PlaitError

MEMORY = Path("/dev/shm")
MOST = 6
"""The maximal number of faults in a run is one more."""
THINK = 0.1
"""Mean seconds between two operations of a client. Without a pause, a run ends before a fault strikes."""
COLUMNS = [
    Column("runs"),
    Column("operations"),
    Column("global_operations", "global"),
    Column("strikes", "faults"),
    Column("deaths"),
    Column("tokens"),
    Column("wrong", "wrong runs"),
]


class Outcome(NamedTuple):
    """What a run did, and what is wrong with it."""

    wrong: list[str]
    operations: int
    global_operations: int
    strikes: int
    deaths: int
    tokens: int


def measure(options: Options) -> Table:
    """Make the runs; one row per kind of fault, and one for all of them together."""
    table = Table(
        "gyro",
        "Servers under faults: is every run serializable, and nothing acknowledged lost?",
        COLUMNS,
        "fault",
        "2 to 4 servers as processes with SQLite; 4 clients with 20 operations each; each run is executed again on one "
        "database in the order of its replies, the rows of all servers are compared with it, and what clients read is "
        "searched for cycles of dependencies",
    )
    kinds: list[tuple[str, ...]] = []
    for name, fault in FAULTS.items():
        if (why := fault.impossible()) is None:
            kinds.append((name,))
        else:
            table.missing[name] = why
    kinds.append(tuple(name for kind in kinds for name in kind))
    totals: dict[str, list[Outcome]] = {_row(k): [] for k in kinds}
    with table.measuring():
        for number in range(options.faults):
            kind, seed = kinds[number % len(kinds)], options.seed + number
            options.tell(f"run {number + 1} of {options.faults}: {_row(kind)}")
            outcome = run(seed, kind)
            totals[_row(kind)].append(outcome)
            table.summary += [f"seed {seed}, {_row(kind)}: {each}" for each in outcome.wrong[:3]]
    for kind in kinds:
        if found := totals[_row(kind)]:
            table.add(
                "board",
                _row(kind),
                runs=Cell(len(found)),
                operations=Cell(sum(o.operations for o in found)),
                global_operations=Cell(sum(o.global_operations for o in found)),
                strikes=Cell(sum(o.strikes for o in found)),
                deaths=Cell(sum(o.deaths for o in found)),
                tokens=Cell(sum(o.tokens for o in found)),
                wrong=Cell(sum(bool(o.wrong) for o in found), expected=0),
            )
    return table


def _row(kind: tuple[str, ...]) -> str:
    return kind[0] if len(kind) == 1 else "all"


def run(seed: int, kinds: tuple[str, ...], **options: Any) -> Outcome:
    """One run with faults of these kinds. The options are those of `Supervisor`."""
    chance = random.Random(seed)
    servers = chance.randrange(2, 5)
    with_etcd = any(FAULTS[k].etcd for k in kinds) or (can_log() is None and chance.random() < 0.3)
    folder = Path(tempfile.mkdtemp(prefix="plait-faults-", dir=MEMORY if MEMORY.is_dir() else None))
    wrong: list[str] = []
    try:
        cluster = FaultyCluster(
            folder, servers, etcd=3 if with_etcd else 0, disks="disk" in kinds, clocks="clock" in kinds, **options
        )
        strikes = 0
        try:
            try:
                with _nemesis(cluster, kinds, chance) as struck:
                    work(cluster, seed, operations=20, think=THINK)
                strikes = len(struck)
                cluster.settle()
                wrong = judge(cluster.events, servers, cluster.rows)
            except (AssertionError, PlaitError) as error:
                wrong = [str(error)]
            tokens = max((facts["epoch"] for facts in cluster.status() if facts), default=0)
        finally:
            cluster.close()
        events = cluster.events
        return Outcome(
            wrong,
            len(events),
            sum(e.kind == "global" for e in events),
            strikes,
            cluster.supervisor.deaths,
            tokens,
        )
    finally:
        if wrong:
            kept = Path(tempfile.mkdtemp(prefix=f"plait-faults-seed-{seed}-"))
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            wrong.append(f"databases and outputs are kept in {kept}")
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _nemesis(cluster: FaultyCluster, kinds: tuple[str, ...], chance: random.Random) -> Iterator[list[str]]:
    """Strike some times while the block runs, then heal everything. At most two faults last at the same time."""
    ended = threading.Event()
    struck: list[str] = []
    lasting: list[tuple[float, Heal]] = []
    most = chance.randrange(2, 2 + MOST)

    def strike() -> None:
        now = 0.0
        while not ended.wait(pause := chance.uniform(0.05, 0.4)):
            now += pause
            for each in [each for each in lasting if each[0] <= now]:
                lasting.remove(each)
                each[1]()
            if len(lasting) < 2 and len(struck) < most:
                kind = chance.choice(kinds)
                struck.append(kind)
                lasting.append((now + chance.uniform(0.1, FAULTS[kind].lasts), FAULTS[kind].strike(cluster, chance)))

    thread = threading.Thread(target=strike, name="nemesis")
    thread.start()
    try:
        yield struck
    finally:
        ended.set()
        thread.join()
        for _, heal in lasting:
            heal()
