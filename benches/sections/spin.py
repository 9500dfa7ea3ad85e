"""Against Spin: the same single-message Paxos, without reduction; distinct states per second."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from peers.spin import paxos_pml

from .common import (
    Section,
    Settings,
    Sizes,
    SkippedError,
    checked,
    in_millions,
    interleaved,
    median,
    same_count,
    single_message_paxos,
    times,
)

RATIO = 8


def run(settings: Settings) -> Section:
    ensure_spin()
    section = Section(f"Spin ({' '.join(paxos_pml.FLAGS)}): the same Paxos, one core each")
    cases: list[Sizes] = [(2, 3, 2)] if settings.quick else [(2, 3, 2), (3, 3, 1)]
    for sizes in cases:
        measure(sizes, settings, section)
    section.notes.append("Spin's time is pan's own; Plait's is the whole call of check(), tables filled from nothing.")
    return section


def ensure_spin() -> None:
    if shutil.which("spin") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "spin"], capture_output=True, check=False)
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise SkippedError(f"{tool} is not installed: apt-get install {tool}")


def measure(sizes: Sizes, settings: Settings, section: Section) -> None:
    def spin(style: paxos_pml.Style) -> dict[str, Any]:
        try:
            return dict(paxos_pml.run(*sizes, style=style))
        except paxos_pml.SpinError as error:
            raise SkippedError(str(error)) from None

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
        # pan counts the initial state as one more.
        found = runs[name][0]["transitions"] - 1
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
