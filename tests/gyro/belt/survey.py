"""Randomised runs of the Conveyor Belt, each judged by replay on one database and by cycles among what clients saw.

    python -m tests.gyro.belt.survey                            200 runs on SQLite
    python -m tests.gyro.belt.survey --db postgresql --runs 20
    python -m tests.gyro.belt.survey --db mariadb --runs 20
    python -m tests.gyro.belt.survey --sqlalchemy --runs 50
    python -m tests.gyro.belt.survey --frames --runs 50
    python -m tests.gyro.belt.survey --log etcd:http://127.0.0.1:2379 --runs 20
    python -m tests.gyro.belt.survey --log nats:nats://127.0.0.1:4222 --fence etcd:http://127.0.0.1:2379 --runs 20

Two runs of three have deaths at random steps, lost and doubled tokens, and delays. The exit code is 1 if a run is not
serializable.
"""

from __future__ import annotations

import argparse
import collections
import sys
from typing import Any

from plait.bench.gyro.faults import board
from plait.gyro.belt.logs.address import addresses
from tests.gyro.belt import board_core
from tests.gyro.belt.log_engines import opener
from tests.gyro.belt.runs import GENERATED, run
from tests.gyro.belt.wires import WireCluster
from tests.support.engines import Engine, Mariadb, Postgresql, Sqlite


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", choices=["sqlite", "postgresql", "mariadb"], default="sqlite")
    parser.add_argument("--log", default="embedded")
    parser.add_argument("--fence", default="")
    parser.add_argument(
        "--sqlalchemy", action="store_true", help="serve the application that is written with SQLAlchemy"
    )
    parser.add_argument("--frames", action="store_true", help="16 clients call servers over connections, in frames")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    given = parser.parse_args()
    totals: collections.Counter[str] = collections.Counter()
    for seed in range(given.seed, given.seed + given.runs):
        options: dict[str, Any] = {"crashes": 0.02, "losses": 0.02, "delay": 0.002} if seed % 3 else {}
        if given.log != "embedded":
            where, fence = addresses(given.log, given.fence)
            opening = opener(where, fence)
            options["open_log"] = lambda _folder, opening=opening: opening()
        engines: dict[str, type[Engine]] = {"sqlite": Sqlite, "postgresql": Postgresql, "mariadb": Mariadb}
        options |= {"engine": engines[given.db]} | ({"without": GENERATED} if given.db != "sqlite" else {})
        if given.frames:
            options |= {"made_of": WireCluster, "clients": 16}
        faults, cluster = run(seed, module=board_core if given.sqlalchemy else board, **options)
        if isinstance(cluster, WireCluster):
            totals["operations in batches"] += sum(n for sizes in cluster.sizes.values() for n in sizes if n > 1)
        totals["runs"] += 1
        totals["operations"] += len(cluster.events)
        totals["global operations"] += sum(e.kind == "global" for e in cluster.events)
        totals["deaths"] += cluster.deaths
        totals["tokens"] += cluster.nodes[0].epoch
        totals["runs that are not serializable"] += bool(faults)
        for fault in faults[:3]:
            print(f"seed {seed}: {fault}", flush=True)
    print(
        f"{given.db}{', SQLAlchemy' * given.sqlalchemy}{', frames' * given.frames}, log {given.log}, 2 to 5 servers: "
        + ", ".join(f"{v:,} {k}" for k, v in totals.items())
    )
    return 1 if totals["runs that are not serializable"] else 0


if __name__ == "__main__":
    sys.exit(main())
