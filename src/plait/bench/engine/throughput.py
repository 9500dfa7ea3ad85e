"""Transitions per second on single-message Paxos with one and with two workers; Python calls and bytes per state."""

from __future__ import annotations

from plait.bench.engine.common import (
    MEASURED,
    MILLION,
    Sizes,
    checked,
    expected_states,
    interleaved,
    median,
    rate,
    single_message_paxos,
    times,
)
from plait.bench.options import Options
from plait.bench.report.cells import number
from plait.bench.table import Cell, Table

RATE, SPEED_UP, CALLS, BYTES = 10 * MILLION, 1.6, 0.001, 24


def measure(options: Options) -> Table:
    """Search every state of Paxos, in one size or two."""
    table = Table("throughput", "Throughput: single-message Paxos, every state, no reduction", MEASURED, "what")
    sizes: list[Sizes] = [(3, 3, 1)] if options.quick else [(3, 3, 1), (2, 4, 2)]
    with table.measuring():
        for size in sizes:
            options.tell(f"Paxos {size}")
            _add(table, size, options.times)
    return table


def _add(table: Table, sizes: Sizes, repeats: int) -> None:
    states = expected_states(*sizes)
    runs = interleaved(
        repeats,
        one=lambda: checked(single_message_paxos(sizes), states, workers=1),
        two=lambda: checked(single_message_paxos(sizes), states, workers=2),
    )
    table.raw[str(sizes)] = runs
    rates = {name: median([r["transitions"] / r["seconds"] for r in results]) for name, results in runs.items()}
    by_cpu = median([r["transitions"] / r["cpu"] for r in runs["one"]])
    first = runs["one"][0]
    name = f"Paxos {sizes}, {first['states']:,} states, {first['transitions']:,} transitions"
    table.add(name, "one worker", measured=rate(rates["one"]), target="≥ 10 M transitions/s", met=rates["one"] >= RATE)
    ratio = rates["two"] / rates["one"]
    table.add(
        name,
        "two workers",
        measured=rate(rates["two"]),
        ratio=times(ratio),
        target="≥ 1.6 x one worker",
        met=ratio >= SPEED_UP,
    )
    share = first["python_calls"] / first["transitions"]
    table.add(
        name,
        "Python calls",
        measured=Cell(first["python_calls"]),
        ratio=Cell(f"{share:.4%} of transitions"),
        target="≤ 0.1 % of transitions",
        met=share <= CALLS,
    )
    for workers, results in runs.items():
        per_state = results[0]["table_bytes"] / results[0]["states"]
        table.add(
            name,
            f"visited set with parents, {workers} worker{'s' if workers == 'two' else ''}",
            measured=Cell(results[0]["table_bytes"], "B"),
            ratio=Cell(per_state, "B/state"),
            target="≤ 24 B/state",
            met=per_state <= BYTES,
        )
    table.summary.append(
        f"{sizes}, one worker, by processor time, which a busy machine affects less: {number(by_cpu, '1/s')}."
    )
