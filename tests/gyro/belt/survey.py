"""Randomised runs of the Conveyor Belt, each judged by replay on one database and by cycles among what clients saw.

    python -m tests.gyro.belt.survey                            200 runs on SQLite
    python -m tests.gyro.belt.survey --db postgresql --runs 20
    python -m tests.gyro.belt.survey --sqlalchemy --runs 50
    python -m tests.gyro.belt.survey --log etcd:http://127.0.0.1:2379 --runs 20

Two runs of three have deaths at random steps, lost and doubled tokens, and delays. The exit code is 1 if a run is not
serializable.
"""

from __future__ import annotations

import argparse
import collections
import sys
import uuid
from typing import Any

from plait.gyro.belt.logs.etcd import EtcdLog
from tests.gyro.belt import board, board_core
from tests.gyro.belt.engines import Postgresql, Sqlite
from tests.gyro.belt.runs import GENERATED, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--log", default="embedded")
    parser.add_argument(
        "--sqlalchemy", action="store_true", help="serve the application that is written with SQLAlchemy"
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    given = parser.parse_args()
    totals: collections.Counter[str] = collections.Counter()
    for seed in range(given.seed, given.seed + given.runs):
        options: dict[str, Any] = {"crashes": 0.02, "losses": 0.02, "delay": 0.002} if seed % 3 else {}
        if given.log.startswith("etcd:"):
            name = uuid.uuid4().hex
            options["open_log"] = lambda _folder, name=name: EtcdLog(given.log.removeprefix("etcd:"), name)
        if given.db == "postgresql":
            options |= {"engine": Postgresql, "without": GENERATED}
        else:
            options |= {"engine": Sqlite}
        faults, cluster = run(seed, module=board_core if given.sqlalchemy else board, **options)
        totals["runs"] += 1
        totals["operations"] += len(cluster.events)
        totals["global operations"] += sum(e.kind == "global" for e in cluster.events)
        totals["deaths"] += cluster.deaths
        totals["tokens"] += cluster.nodes[0].epoch
        totals["runs that are not serializable"] += bool(faults)
        for fault in faults[:3]:
            print(f"seed {seed}: {fault}", flush=True)
    print(
        f"{given.db}{', SQLAlchemy' * given.sqlalchemy}, log {given.log}, 2 to 5 servers: "
        + ", ".join(f"{v:,} {k}" for k, v in totals.items())
    )
    return 1 if totals["runs that are not serializable"] else 0


if __name__ == "__main__":
    sys.exit(main())
