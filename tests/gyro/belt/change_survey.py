"""Kill a server at every step of a change: `python -m tests.gyro.belt.change_survey [--db NAME] [--log NAME] [STEP …]`.

`--db`: sqlite, postgresql or mariadb. `--log`: embedded, etcd or nats. `--tables`: the change has a migration.
`--rounds N`: N times, with other operations.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.gyro.belt.changing import MIGRATING, STEPS, killed
from tests.gyro.belt.log_engines import Etcd, Nats


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", nargs="*")
    parser.add_argument("--db", choices=["sqlite", "postgresql", "mariadb"], default="sqlite")
    parser.add_argument("--log", choices=["embedded", "etcd", "nats"], default="embedded")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    options: dict[str, Any] = {given.db: True} if given.db != "sqlite" else {}
    engines: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        if given.log != "embedded":
            engines.append(Etcd(Path(folder)))
            where = engines[0].where
            options["log"] = where
        if given.log == "nats":
            engines.append(Nats(Path(folder)))
            options |= {"log": engines[1].where, "fence": where}
        steps = given.steps or (MIGRATING[: None if given.db == "mariadb" else -2] if given.tables else STEPS)
        try:
            for seed in range(given.rounds):
                for number, step in enumerate(steps):
                    for server in (0, 1):
                        killed(step, server, seed=100 * seed + number, migrating=given.tables, **options)
                        sys.stdout.write(f"{given.db} {given.log} {seed} {step} at server {server}: right\n")
                        sys.stdout.flush()
        finally:
            for engine in engines:
                engine.close()


if __name__ == "__main__":
    main()
