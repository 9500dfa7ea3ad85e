"""Compares the searches on one Paxos model. There are no targets."""

from __future__ import annotations

from plait.bench.engine.common import checked, interleaved, median, rate, single_message_paxos, times
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Plot, Table

SIZES, STATES = (2, 3, 2), 463_761
STATELESS_SECONDS = 3
WALKS = 50_000


def measure(options: Options) -> Table:
    """Run each search with one worker. bfs and dfs find every state."""
    table = Table(
        "searches",
        f"Searches: single-message Paxos {SIZES}, one worker",
        [Column("rate"), Column("of", "counted"), Column("ratio", "rate / bfs")],
        "search",
        plot=Plot("rate", "states, transitions or steps per second"),
    )
    with table.measuring():
        options.tell("bfs, dfs, stateless and random search")
        runs = interleaved(
            options.times,
            bfs=lambda: checked(single_message_paxos(SIZES), STATES, search="bfs", workers=1),
            dfs=lambda: checked(single_message_paxos(SIZES), STATES, search="dfs", workers=1),
            stateless=lambda: checked(
                single_message_paxos(SIZES), search="stateless", workers=1, timeout=STATELESS_SECONDS
            ),
            random=lambda: checked(single_message_paxos(SIZES), search="random", workers=1, walks=WALKS),
        )
        table.raw["paxos"] = runs
        name = f"Paxos {SIZES}, {STATES:,} states"
        bfs = median([r["states"] / r["seconds"] for r in runs["bfs"]])
        dfs = median([r["states"] / r["seconds"] for r in runs["dfs"]])
        visits = median([r["transitions"] / r["seconds"] for r in runs["stateless"]])
        steps = median([r["transitions"] / r["seconds"] for r in runs["random"]])
        table.add(name, "bfs", rate=rate(bfs), of=Cell("distinct states"))
        table.add(name, "dfs", rate=rate(dfs), of=Cell("distinct states"), ratio=times(dfs / bfs))
        cut = f"stateless, stopped after {STATELESS_SECONDS} s"
        table.add(name, cut, rate=rate(visits), of=Cell("transitions, with repetition"))
        table.add(name, f"random, {WALKS:,} walks", rate=rate(steps), of=Cell("steps"))
    return table
