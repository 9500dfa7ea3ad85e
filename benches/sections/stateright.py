"""Against Stateright: its register Paxos, 3 clients and 3 servers, with the history; distinct states per second."""

from __future__ import annotations

import shutil
from typing import Any

from peers.stateright import run as peer

from plait.protocols.register_paxos import register_paxos

from .common import Section, Settings, SkippedError, checked, in_millions, interleaved, median, same_count, times

CLIENTS, SERVERS, WORKERS, UNIQUE = 3, 3, 2, 1_194_428
RATIO = 10


def run(settings: Settings) -> Section:
    if shutil.which("cargo") is None:
        raise SkippedError("cargo is not on the PATH: install the Rust toolchain (https://rustup.rs)")
    section = Section(
        f"Stateright: register Paxos with history, {CLIENTS} clients, {SERVERS} servers, two workers each"
    )

    def stateright() -> dict[str, Any]:
        try:
            return dict(peer.run(CLIENTS, SERVERS, WORKERS))
        except peer.StaterightError as error:
            raise SkippedError(str(error)) from None

    def plait(workers: int) -> dict[str, Any]:
        return checked(register_paxos(clients=CLIENTS, servers=SERVERS), UNIQUE, workers=workers)

    runs = interleaved(settings.repeats, stateright=stateright, plait=lambda: plait(WORKERS), one=lambda: plait(1))
    section.raw["register_paxos"] = runs
    same_count("Stateright's unique states", runs["stateright"][0]["unique"], UNIQUE)
    # Stateright counts the initial state as one more.
    same_count("Stateright's transitions", runs["stateright"][0]["total"] - 1, runs["plait"][0]["transitions"])
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
