"""Transitions per second on single-message Paxos, with one worker and with two; what a transition and a state cost."""

from __future__ import annotations

from plait.bench.engine.common import (
    MILLION,
    Section,
    Settings,
    Sizes,
    checked,
    expected_states,
    in_millions,
    interleaved,
    median,
    single_message_paxos,
    times,
)

RATE, SPEED_UP, CALLS, BYTES = 10 * MILLION, 1.6, 0.001, 24


def run(settings: Settings) -> Section:
    section = Section("Throughput: single-message Paxos, every state, no reduction")
    cases: list[Sizes] = [(3, 3, 1)] if settings.quick else [(3, 3, 1), (2, 4, 2)]
    for sizes in cases:
        measure(sizes, settings, section)
    return section


def measure(sizes: Sizes, settings: Settings, section: Section) -> None:
    states = expected_states(*sizes)
    runs = interleaved(
        settings.repeats,
        one=lambda: checked(single_message_paxos(sizes), states, workers=1),
        two=lambda: checked(single_message_paxos(sizes), states, workers=2),
    )
    section.raw[str(sizes)] = runs
    rates = {name: median([r["transitions"] / r["seconds"] for r in results]) for name, results in runs.items()}
    by_cpu = median([r["transitions"] / r["cpu"] for r in runs["one"]])
    first = runs["one"][0]
    name = f"{sizes}, {first['states']:,} states, {first['transitions']:,} transitions"
    section.add(
        f"{name}: one worker",
        in_millions(rates["one"]),
        target="≥ 10 M transitions/s",
        met=rates["one"] >= RATE,
    )
    ratio = rates["two"] / rates["one"]
    section.add(
        "  two workers", in_millions(rates["two"]), ratio=times(ratio), target="≥ 1.6 x one", met=ratio >= SPEED_UP
    )
    share = first["python_calls"] / first["transitions"]
    section.add(
        "  calls of Python",
        f"{first['python_calls']:,}",
        ratio=f"{share:.4%}",
        target="≤ 0.1 % of transitions",
        met=share <= CALLS,
    )
    for workers, results in runs.items():
        per_state = results[0]["table_bytes"] / results[0]["states"]
        section.add(
            f"  visited set with parents, {workers} worker{'s' if workers == 'two' else ''}",
            f"{results[0]['table_bytes'] / 2**20:.0f} MiB",
            ratio=f"{per_state:.1f} B/state",
            target="≤ 24 B/state",
            met=per_state <= BYTES,
        )
    section.notes.append(
        f"{sizes}, one worker, by processor time, which a busy machine disturbs less: {in_millions(by_cpu)}."
    )
