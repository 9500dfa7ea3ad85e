"""A randomised run of the board application, and everything that has to be true of it."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from plait.bench.gyro.faults import board, workload
from plait.bench.gyro.faults.workload import GENERATED, board_routes, work
from plait.gyro.belt.routing import Route
from tests.gyro.belt.cluster import Cluster
from tests.support.engines import Engine, Sqlite, scratch
from tests.support.patience import PATIENCE

__all__ = ["GENERATED", "board_routes", "judge", "run", "work"]


def judge(cluster: Cluster) -> list[str]:
    """What is wrong with a run of a cluster."""
    return workload.judge(cluster.events, cluster.servers, cluster.engine.rows)


@contextmanager
def disturbed(cluster: Cluster, disturb: Callable[[Cluster], None] | None) -> Iterator[None]:
    """Run a function in a thread meanwhile."""
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            if disturb is not None:
                disturb(cluster)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    yield
    thread.join(timeout=PATIENCE)
    if failures:
        raise failures[0]


def run(
    seed: int,
    *,
    engine: type[Engine] = Sqlite,
    routing: dict[str, Route] | None = None,
    without: set[str] | None = None,
    lenient: bool = False,
    module: ModuleType = board,
    disturb: Callable[[Cluster], None] | None = None,
    made_of: type[Cluster] = Cluster,
    clients: int = 4,
    **options: Any,
) -> tuple[list[str], Cluster]:
    """A run that the seed decides on, as far as threads let it; what is wrong with it.

    `module` is the application that is served; the judges execute the one in SQL. `disturb` runs while clients work.
    With `WireCluster` (`wires.py`), clients call servers in frames, and operations that come together run together.
    """
    generator = random.Random(seed)
    options = {"servers": generator.randrange(2, 6), **options}
    folder = scratch()
    made = engine(folder, board.SCHEMA)
    cluster = made_of(folder, made, module, routing or board_routes(), seed=seed, **options)
    try:
        try:
            with disturbed(cluster, disturb):
                work(cluster, seed, without=without, clients=clients)
            cluster.settle()
        except AssertionError as error:
            if not lenient:  # a mutant may get stuck, and is caught by that
                raise
            return [str(error)], cluster
        finally:
            cluster.stop()
        return judge(cluster), cluster
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
