"""Error propagation analysis: Tables 8 and 10 and Figure 17 of the thesis, overhead, and the check against the formula."""

from __future__ import annotations

import hashlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from plait.bench.engine.common import CountsDifferError, Section, Settings, SkippedError, median, times
from plait.epa.campaign import Campaign, Result, summarize
from plait.epa.events import Event, fast_check, from_rows
from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.toolchain import find_all
from plait.epa.recording import Recording
from plait.epa.reversibility import check
from plait.epa.run import run as record
from plait.epa.run import scratch
from plait.epa.solver import formula_decides

EXAMPLES = Path(__file__).parents[4] / "examples" / "epa"
SMALL = {
    "quicksort": ("4", "60"),
    "kmeans": ("3", "12"),
    "pca": ("3", "5", "4"),
    "blackscholes": ("3", "9"),
    "swaptions": ("3", "3", "2"),
}
LARGE = {
    "quicksort": ("8", "2600"),
    "kmeans": ("4", "330"),
    "pca": ("4", "36", "34"),
    "blackscholes": ("3", "3900"),
    "swaptions": ("4", "16", "66"),
}
"""About a million records each."""
LONG = {
    "quicksort": ("4", "1500000"),
    "kmeans": ("4", "300000"),
    "pca": ("4", "400", "500"),
    "blackscholes": ("3", "2000000"),
    "swaptions": ("4", "64", "14000"),
}
"""0.1 s and more without recording, and traces of up to 5 GB."""
PUBLISHED = {
    "quicksort": (30.38 * 60, 1.57, 0.3),
    "pca": (150.43 * 60, 1.29, 0.17),
    "kmeans": (81.94 * 60, 0.79, 0.13),
    "blackscholes": (0.99 * 60, 1.58, 0.2),
    "swaptions": (144.61 * 60, 8.57, 2.86),
}
"""Table 10: seconds of the reversibility check, of sanitizing and of comparing."""
TYPES = ["bitflip", "mallsize", "callcorr", "invalptr"]


def run(settings: Settings) -> Section:
    if not find_all():
        raise SkippedError("clang with its libLLVM is not installed: apt-get install clang-14")
    section = Section("Error propagation analysis (thesis 004, chapter 5)")
    folder = Path(tempfile.mkdtemp(prefix="plait-bench-epa-", dir=scratch()))
    try:
        programs = {name: folder / f"{name}.epa" for name in SMALL}
        for name, program in programs.items():
            build([EXAMPLES / f"{name}.c"], program)
        false_positives(section, settings, programs, folder)
        campaigns(section, settings, programs)
        table_10(section, programs, folder)
        overhead(section, settings, programs, folder)
        against_the_formula(section, settings, programs["kmeans"], folder)
        if not settings.quick:
            fifty_million(section, programs["swaptions"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return section


def false_positives(section: Section, settings: Settings, programs: dict[str, Path], folder: Path) -> None:
    """Repeated runs without a fault, under random yields."""
    runs = 25 if settings.quick else 1_000
    for name, program in programs.items():
        record(program, SMALL[name], folder / "golden")
        golden = Recording(folder / "golden")
        raw, deviating = set(), 0
        for seed in range(runs):
            record(program, SMALL[name], folder / "again", yields=seed + 1)
            again = Recording(folder / "again")
            deviating += not golden.native.outcome(again.native)[0]
            raw.add(digest(folder / "again"))
        if deviating:
            raise CountsDifferError(f"{name}: {deviating} of {runs} runs without a fault deviate")
        section.raw[f"false positives {name}"] = deviating
        measured = f"{deviating} of {runs:,} deviate; {len(raw):,} distinct raw"
        section.add(f"{name}: runs without a fault", measured, target="0", met=deviating == 0)


def digest(trace: Path) -> bytes:
    """Of a trace as it was recorded."""
    found = hashlib.blake2b()
    for file in sorted(trace.glob("thread-*.bin")):
        found.update(file.read_bytes())
    return found.digest()


def campaigns(section: Section, settings: Settings, programs: dict[str, Path]) -> None:
    """Figure 17, and the maximal possible false negative rate of crashes and silent corruptions."""
    runs = 20 if settings.quick else 400
    missed = failures = 0
    for name, program in programs.items():
        campaign = Campaign(program, SMALL[name], types=TYPES, runs=runs, seed=1)
        try:
            results: list[Result] = [campaign.inject(i) for i in range(runs)]
        finally:
            campaign.close()
        summary = summarize(campaign.header, results)
        missed, failures = missed + summary.missed, failures + summary.failures
        for share in summary.shares:
            parts = ", ".join(f"{n} {o}" for o, n in share.outcomes.items() if n)
            interval = f"{share.coverage:.0%} ({share.low:.0%} to {share.high:.0%})"
            section.add(f"{name}: {share.type}", f"{interval}: {parts}")
            section.raw[f"{name} {share.type}"] = {"outcomes": share.outcomes, "coverage": share.coverage}
    if missed:
        raise CountsDifferError(f"{missed} of {failures} crashes and corruptions left no deviation")
    section.add(f"MPFNR of {failures:,} crashes and SDC", f"{missed}", target="0", met=missed == 0)


def table_10(section: Section, programs: dict[str, Path], folder: Path) -> None:
    """Traces of a million records: check, sanitize, compare."""
    for name, program in programs.items():
        record(program, LARGE[name], folder / "one")
        record(program, LARGE[name], folder / "two", yields=1)
        one, sanitizing = timed(Recording, folder / "one")
        two = Recording(folder / "two")
        found, checking = timed(check, one)
        (equal, _), comparing = timed(one.native.outcome, two.native)
        if not equal or found.verdict.status != "holds":
            raise CountsDifferError(f"{name}: {found.verdict.status}, equal: {equal}")
        published = PUBLISHED[name]
        records = one.native.records
        section.raw[f"table 10 {name}"] = {
            "records": records, "threads": len(one.threads), "objects": found.shared_objects,
            "dependencies": found.dependencies, "check": checking, "sanitize": sanitizing, "compare": comparing,
        }  # fmt: skip
        size = (
            f"{records / 1e6:.2f} M records, {found.shared_objects} shared objects, {found.dependencies:,} dependencies"
        )
        for what, seconds, old in zip(
            ("check", "sanitize", "compare"), (checking, sanitizing, comparing), published, strict=True
        ):
            section.add(
                f"{name}: {what} ({size})" if what == "check" else f"{name}: {what}",
                f"{seconds:.3f} s",
                ratio=f"thesis {old:,.2f} s",
                target="< 2 s",
                met=seconds < 2,
            )


def overhead(section: Section, settings: Settings, programs: dict[str, Path], folder: Path) -> None:
    """How much longer a recorded run takes than the program without instrumentation, both at -O0."""
    toolchain = find_all()[0]
    for name, program in programs.items():
        plain = folder / f"{name}.plain"
        source = str(EXAMPLES / f"{name}.c")
        subprocess.run([toolchain.clang, "-O0", "-g", source, "-o", str(plain), "-lm", "-pthread"], check=True)
        arguments = list(LONG[name])
        repeats = max(5, settings.repeats)
        before, after = [], []
        for _ in range(repeats):  # one after the other: what else the machine does hits both
            before.append(spent(plainly, plain, arguments))
            shutil.rmtree(folder / "slow", ignore_errors=True)
            after.append(spent(record, program, arguments, folder / "slow"))
        size = sum(p.stat().st_size for p in (folder / "slow").glob("thread-*.bin"))
        shutil.rmtree(folder / "slow")
        wall, processor = (median([a[i] for a in after]) / median([b[i] for b in before]) for i in (0, 1))
        section.raw[f"overhead {name}"] = {"plain": before, "recorded": after, "bytes": size}
        section.add(
            f"{name}: recording",
            f"{median([b[0] for b in before]):.3f} s to {median([a[0] for a in after]):.2f} s, {size / 1e9:.1f} GB",
            ratio=f"{wall:.1f} x, processor time {processor:.1f} x",
            target="<= 15 x",
            met=wall <= 15,
        )


def plainly(program: Path, arguments: list[str]) -> None:
    subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL)


def spent(action: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """The time that an action with processes takes, and the processor time of these."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, seconds = timed(action, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against_the_formula(section: Section, settings: Settings, program: Path, folder: Path) -> None:
    """The largest trace of kmeans that Z3 still decides with the whole formula."""
    limit = 20.0 if settings.quick else 120.0
    best: tuple[int, float, float] | None = None
    for points in (3, 4, 6, 8, 12, 16, 24, 32, 48, 64):
        record(program, ["2", str(points)], folder / "formula")
        recording = Recording(folder / "formula")
        steps: list[Event] = from_rows(recording.native.steps())
        answer, slow = timed(partial(formula_decides, timeout=limit), steps)
        if answer is None or slow > limit:
            break
        found, fast = timed(fast_check, steps)
        if bool(found["pairs"]) != answer:
            raise CountsDifferError(f"kmeans 2 {points}: the formula says {answer}")
        best = (len(steps), slow, fast)
        if slow > limit / 2:
            break
    if best is not None:
        steps_, slow, fast = best
        section.raw["formula"] = {"steps": steps_, "z3": slow, "clocks": fast}
        section.add(
            f"the formula in Z3, {steps_:,} steps", f"{slow:.2f} s against {fast * 1e3:.2f} ms", ratio=times(slow / fast),
            target=">= 100 x", met=slow / fast >= 100,
        )  # fmt: skip


def fifty_million(section: Section, program: Path, folder: Path) -> None:
    """A trace of more than 50 million records, in a process of its own."""
    record(program, ["4", "64", "840"], folder / "huge")
    code = (
        "import sys; from pathlib import Path; from plait.epa.recording import Recording; "
        "from plait.epa.reversibility import check; r = Recording(Path(sys.argv[1])); s = check(r).verdict.status; "
        "e = r.native.outcome(r.native)[0]; "
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]; "
        "print(r.native.records, s, e, peak)"  # not ru_maxrss, which a child has from its parent
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "huge")], capture_output=True, text=True, check=True
    )
    records, status, equal, peak = done.stdout.split()
    gib = int(peak) / 2**20
    section.raw["huge"] = {"records": int(records), "peak_gib": gib, "seconds": time.perf_counter() - start}
    section.add(
        f"{int(records) / 1e6:.1f} M records: sanitize, check ({status}), compare ({equal})",
        f"{time.perf_counter() - start:.1f} s, {gib:.2f} GiB",
        target="< 8 GiB",
        met=gib < 8,
    )


def timed(action: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = action(*arguments)
    return result, time.perf_counter() - start
