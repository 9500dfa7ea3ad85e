"""Against Spin: the same single-message Paxos, without reduction; distinct states per second."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from plait.bench.engine import unrolled
from plait.bench.engine.common import (
    Section,
    Settings,
    Sizes,
    SkippedError,
    checked,
    expected_states,
    in_millions,
    interleaved,
    median,
    same_count,
    single_message_paxos,
    times,
)
from plait.bench.peers.checker import Case, MissingError, Run
from plait.bench.peers.measure import FailedError
from plait.bench.peers.measure import measure as run_measured
from plait.bench.peers.spin import FLAGS, Spin, number, promela

RATIO = 8


def run(settings: Settings) -> Section:
    checker = Spin()
    try:
        checker.version()
    except MissingError as error:
        raise SkippedError(f"{error}; {error.hint}") from None
    section = Section(f"Spin (-O3 {' '.join(FLAGS)}): the same Paxos, one core each")
    cases: list[Sizes] = [(2, 3, 2)] if settings.quick else [(2, 3, 2), (3, 3, 1)]
    with tempfile.TemporaryDirectory(prefix="plait-spin-") as folder:
        for sizes in cases:
            measure(checker, Path(folder), sizes, settings, section)
    section.notes.append("Spin's time is pan's own; Plait's is the whole call of check(), tables filled from nothing.")
    return section


def measure(checker: Spin, folder: Path, sizes: Sizes, settings: Settings, section: Section) -> None:
    expected = expected_states(*sizes)

    @functools.cache
    def verifier(style: str) -> Run:
        plain = promela(Case("paxos", sizes, expected))
        return checker.verifier(plain if style == "plain" else unrolled.promela(*sizes), expected, folder)

    def spin(style: str) -> dict[str, Any]:
        try:
            run = verifier(style)
            measured = run_measured(run.command, cwd=run.cwd)
            vector = int(number(r"^State-vector (\d+) byte", measured.output))
            found = checker.read(measured.output, measured.code)
        except FailedError as error:
            raise SkippedError(str(error)) from None
        return found._asdict() | {"cpu": measured.cpu_seconds, "vector_bytes": vector}

    runs = interleaved(
        settings.repeats,
        plain=lambda: spin("plain"),
        unrolled=lambda: spin("unrolled"),
        plait=lambda: checked(single_message_paxos(sizes), workers=1),
    )
    section.raw[str(sizes)] = runs
    states, transitions = runs["plait"][0]["states"], runs["plait"][0]["transitions"]
    for name in ("plain", "unrolled"):
        same_count(f"states of Spin's {name} model {sizes} against Plait's", runs[name][0]["states"], states)
        found = runs[name][0]["transitions"]
        same_count(f"transitions of Spin's {name} model {sizes} against Plait's", found, transitions)
    plait = median([states / r["wall"] for r in runs["plait"]])
    cpu = {name: median([r["cpu"] for r in results]) for name, results in runs.items()}
    section.add(f"{sizes}, {states:,} states: Plait, one worker", in_millions(plait))
    for name, what in {"plain": "Spin, a process per role", "unrolled": "Spin, unrolled by hand"}.items():
        rate = median([states / max(r["seconds"], 0.005) for r in runs[name]])
        ratio = plait / rate
        section.add(
            f"  {what} ({runs[name][0]['vector_bytes']} B a state)",
            in_millions(rate),
            ratio=times(ratio),
            target=f"≥ {RATIO} x" if name == "plain" else "",
            met=ratio >= RATIO if name == "plain" else None,
        )
    section.notes.append(
        f"{sizes} by processor time, which a busy machine disturbs less: "
        f"{times(cpu['plain'] / cpu['plait'])} and {times(cpu['unrolled'] / cpu['plait'])}."
    )
