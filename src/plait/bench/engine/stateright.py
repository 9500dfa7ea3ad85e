"""Compares distinct states per second with Stateright, on its register Paxos with 3 clients and 3 servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plait.bench.engine.common import MEASURED, checked, interleaved, median, rate, same_count, times
from plait.bench.options import Options
from plait.bench.peers.checker import Case
from plait.bench.peers.process import run
from plait.bench.peers.stateright import Stateright
from plait.bench.table import Plot, Table
from plait.protocols.register_paxos import register_paxos

CLIENTS, SERVERS, WORKERS, UNIQUE = 3, 3, 2, 1_194_428
RATIO = 10


def measure(options: Options) -> Table:
    """Run both in turns with two workers each, and Plait also with one."""
    table = Table(
        "stateright",
        "Stateright: register Paxos with history, two workers each",
        MEASURED,
        "checker",
        plot=Plot("measured", "states per second"),
    )
    with table.measuring():
        checker = Stateright()
        options.tell(checker.version())
        runs = interleaved(
            options.times, stateright=lambda: _stateright(checker), plait=lambda: _plait(WORKERS), one=lambda: _plait(1)
        )
        table.raw["register_paxos"] = runs
        _fill(table, runs)
    return table


def _stateright(checker: Stateright) -> dict[str, Any]:
    prepared = checker.prepare(Case("register_paxos", (CLIENTS, SERVERS), UNIQUE), WORKERS, Path())
    measured = run(prepared.command)
    return checker.read(measured.output, measured.code)._asdict()


def _plait(workers: int) -> dict[str, Any]:
    return checked(register_paxos(clients=CLIENTS, servers=SERVERS), UNIQUE, workers=workers)


def _fill(table: Table, runs: dict[str, list[dict[str, Any]]]) -> None:
    same_count("Stateright's unique states", runs["stateright"][0]["states"], UNIQUE)
    same_count("Stateright's transitions", runs["stateright"][0]["transitions"], runs["plait"][0]["transitions"])
    name = f"{CLIENTS} clients, {SERVERS} servers, {UNIQUE:,} states"
    theirs = median([UNIQUE / r["seconds"] for r in runs["stateright"]])
    table.add(name, "Stateright", measured=rate(theirs))
    for variant, key in {"Plait, two workers": "plait", "Plait, one worker": "one"}.items():
        ours = median([UNIQUE / r["wall"] for r in runs[key]])
        ratio = ours / theirs
        target = f"≥ {RATIO} x" if key == "plait" else ""
        table.add(name, variant, measured=rate(ours), ratio=times(ratio), target=target, met=ratio >= RATIO)
    first = runs["plait"][0]
    calls, share = first["python_calls"], first["python_calls"] / first["transitions"]
    table.summary.append(f"Plait calls Python {calls:,} times, for {share:.2%} of the transitions.")
