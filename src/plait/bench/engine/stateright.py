"""Against Stateright: its register Paxos, 3 clients and 3 servers, with the history; distinct states per second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plait.bench.engine.common import (
    Section,
    Settings,
    SkippedError,
    checked,
    in_millions,
    interleaved,
    median,
    same_count,
    times,
)
from plait.bench.peers.checker import Case, MissingError
from plait.bench.peers.measure import FailedError, measure
from plait.bench.peers.stateright import Stateright
from plait.protocols.register_paxos import register_paxos

CLIENTS, SERVERS, WORKERS, UNIQUE = 3, 3, 2, 1_194_428
RATIO = 10


def run(settings: Settings) -> Section:
    checker = Stateright()
    try:
        checker.version()
    except MissingError as error:
        raise SkippedError(f"{error}; {error.hint}") from None
    section = Section(
        f"Stateright: register Paxos with history, {CLIENTS} clients, {SERVERS} servers, two workers each"
    )

    def stateright() -> dict[str, Any]:
        try:
            run = checker.prepare(Case("register_paxos", (CLIENTS, SERVERS), UNIQUE), WORKERS, Path())
            measured = measure(run.command)
            return checker.read(measured.output, measured.code)._asdict()
        except FailedError as error:
            raise SkippedError(str(error)) from None

    def plait(workers: int) -> dict[str, Any]:
        return checked(register_paxos(clients=CLIENTS, servers=SERVERS), UNIQUE, workers=workers)

    runs = interleaved(settings.repeats, stateright=stateright, plait=lambda: plait(WORKERS), one=lambda: plait(1))
    section.raw["register_paxos"] = runs
    same_count("Stateright's unique states", runs["stateright"][0]["states"], UNIQUE)
    same_count("Stateright's transitions", runs["stateright"][0]["transitions"], runs["plait"][0]["transitions"])
    theirs = median([UNIQUE / r["seconds"] for r in runs["stateright"]])
    section.add(f"Stateright, {UNIQUE:,} states", in_millions(theirs))
    for name, what in {"plait": "Plait, two workers", "one": "Plait, one worker"}.items():
        ours = median([UNIQUE / r["wall"] for r in runs[name]])
        ratio = ours / theirs
        section.add(
            what,
            in_millions(ours),
            ratio=times(ratio),
            target=f"≥ {RATIO} x" if name == "plait" else "",
            met=ratio >= RATIO if name == "plait" else None,
        )
    first = runs["plait"][0]
    share = first["python_calls"] / first["transitions"]
    section.add("  calls of Python", f"{first['python_calls']:,}", ratio=f"{share:.2%} of transitions")
    return section
