"""The searches beside one another on one Paxos; there are no targets here."""

from __future__ import annotations

from plait.bench.engine.common import (
    Section,
    Settings,
    checked,
    in_millions,
    interleaved,
    median,
    single_message_paxos,
    times,
)

SIZES, STATES = (2, 3, 2), 463_761
STATELESS_SECONDS = 3
WALKS = 50_000


def run(settings: Settings) -> Section:
    section = Section(f"Searches: single-message Paxos {SIZES}, {STATES:,} states, one worker")
    runs = interleaved(
        settings.repeats,
        bfs=lambda: checked(single_message_paxos(SIZES), STATES, search="bfs", workers=1),
        dfs=lambda: checked(single_message_paxos(SIZES), STATES, search="dfs", workers=1),
        stateless=lambda: checked(
            single_message_paxos(SIZES), search="stateless", workers=1, timeout=STATELESS_SECONDS
        ),
        random=lambda: checked(single_message_paxos(SIZES), search="random", workers=1, walks=WALKS),
    )
    section.raw["paxos"] = runs
    bfs = median([r["states"] / r["seconds"] for r in runs["bfs"]])
    dfs = median([r["states"] / r["seconds"] for r in runs["dfs"]])
    section.add("bfs", f"{in_millions(bfs)} distinct states")
    section.add("dfs", f"{in_millions(dfs)} distinct states", ratio=f"{times(dfs / bfs)} bfs")
    visits = median([r["transitions"] / r["seconds"] for r in runs["stateless"]])
    section.add(f"stateless, cut after {STATELESS_SECONDS} s", f"{in_millions(visits)} transitions, with repetition")
    steps = median([r["transitions"] / r["seconds"] for r in runs["random"]])
    section.add(f"random, {WALKS:,} walks", f"{in_millions(steps)} steps")
    return section
