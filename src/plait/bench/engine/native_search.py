"""One model of `plait bench native`, searched twice in a process of its own: cold (empty tables), then warm.

`measured` starts the process. It prints one JSON object. The file has the models, too, by name.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from plait.bench.engine import termination
from plait.bench.engine.common import MILLION
from plait.bench.errors import FailedError
from plait.bench.peers.process import run
from plait.check.explain.verdicts import violated
from plait.check.options import Options, options_from
from plait.check.reduce.plan import plan
from plait.model.system import System
from plait.protocols.lamport_mutex import lamport_mutex
from plait.protocols.paxos import paxos
from plait.protocols.raft import raft
from plait.protocols.register_paxos import register_paxos
from plait.protocols.three_phase_commit import three_phase_commit
from plait.protocols.two_phase_commit import two_phase_commit
from plait.protocols.zab import zab

Native = Literal["auto", "off"]
"""Whether steps are executed natively where possible, or by CPython only."""
How = Literal["auto", "off", "plain"]
"""A search by Plait, or the plain search of the model in Python."""


class Model(NamedTuple):
    """A model, and how many of its states are searched."""

    make: Callable[[], System]
    states: int
    limited: bool = False
    """The model has more states: a limit ends the search."""
    plain: Callable[[], termination.Found] | None = None
    """A plain search of the same states in Python."""


def _one_process(nodes: int, capacity: int) -> Model:
    return Model(
        lambda: termination.termination(nodes, capacity),
        termination.expected_states(nodes, capacity),
        plain=lambda: termination.plain_search(nodes, capacity),
    )


FULL = {
    "Raft, 5 servers": Model(lambda: raft(servers=5), 2 * MILLION, limited=True),
    "Zab (4, 3, 2)": Model(lambda: zab(leaders=4, followers=3, proposals=2), 323_321),
    "Three-phase commit, 4 participants": Model(lambda: three_phase_commit(4), 2 * MILLION, limited=True),
    "Lamport mutex, 3 processes": Model(lambda: lamport_mutex(3, None, quorum=False, clock_limit=6), 724_274),
    "Register Paxos, 3 clients": Model(lambda: register_paxos(clients=3), 1_194_428),
    "Two-phase commit, 8 resource managers": Model(lambda: two_phase_commit(8, quorum=False), 1_745_408),
    "Paxos (3, 3, 1)": Model(lambda: paxos(3, 3, 1, quorum=False), 177**3),
    "One process, 5 nodes": _one_process(5, 4),
}
QUICK = {
    "Raft, 5 servers": Model(lambda: raft(servers=5), 20_000, limited=True),
    "Three-phase commit, 4 participants": Model(lambda: three_phase_commit(4), 20_000, limited=True),
    "Lamport mutex, 2 processes": Model(lambda: lamport_mutex(2, None, quorum=False, clock_limit=4), 401),
    "Register Paxos, 2 clients": Model(lambda: register_paxos(clients=2), 16_668),
    "Two-phase commit, 5 resource managers": Model(lambda: two_phase_commit(5, quorum=False), 8_832),
    "Paxos (2, 3, 1)": Model(lambda: paxos(2, 3, 1, quorum=False), 177**2),
    "One process, 4 nodes": _one_process(4, 2),
}
SIZES = {"full": FULL, "quick": QUICK}
TIMEOUT = 1800.0
"""Seconds after which a process is stopped."""
MODULE = "plait.bench.engine.native_search"


def switches() -> bool:
    """Whether this version of Plait has the option `native`."""
    return any(field.name == "native" for field in dataclasses.fields(Options))


def measured(size: str, name: str, how: How, workers: int = 1) -> dict[str, Any]:
    """Search a model in a new process, and return its figures."""
    done = run([sys.executable, "-m", MODULE, size, name, how, str(workers)], timeout=TIMEOUT)
    if done.code != 0:
        raise FailedError(f"{name}: the search failed (exit code {done.code}): {done.output.strip()[-400:]}")
    found: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return found


def search(model: Model, native: Native, workers: int) -> dict[str, Any]:
    """Search a model twice with the same tables. The cold time includes what is done once, before the search."""
    changes: dict[str, Any] = {"workers": workers, "max_states": model.states if model.limited else None}
    if switches():
        changes["native"] = native
    options = options_from(changes).completed()
    system = model.make()
    start = time.perf_counter()
    runner = plan(system, options).runner(system)
    report = runner.engine.search(options)
    cold = _figures(report, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if violated(system, report):
        raise FailedError("a property is violated, so the search was not complete")
    start = time.perf_counter()
    warm = _figures(runner.engine.search(options), time.perf_counter() - start, cold["python_calls"])
    return {"cold": cold, "warm": warm, "peak_rss_bytes": peak}


def _figures(report: Any, seconds: float, before: int = 0) -> dict[str, Any]:
    """What a search counted. The engine does not reset its calls of Python: `before` were made before this search."""
    counters = report.counters
    return {
        "seconds": seconds,
        "states": counters.states,
        "transitions": counters.transitions,
        "python_calls": counters.python_calls - before,
        "local_bytes": getattr(counters, "local_bytes", None),
        "local_states": getattr(counters, "local_states", None),
        "bound": report.bound,
    }


def plain(model: Model) -> dict[str, Any]:
    """The plain search of a model."""
    assert model.plain is not None
    start = time.perf_counter()
    found = model.plain()
    return {"seconds": time.perf_counter() - start, **found._asdict()}


def main(size: str, name: str, how: str, workers: str) -> None:
    """Search one model, and print the figures."""
    model = SIZES[size][name]
    figures = plain(model) if how == "plain" else search(model, "off" if how == "off" else "auto", int(workers))
    sys.stdout.write(f"{json.dumps(figures)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
