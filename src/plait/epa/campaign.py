"""`plait epa campaign`: many runs with one fault each, and their outcomes (Saissi 2019, section 5.5.4).

The seed determines all faults. So a campaign can be repeated, it can continue after an interruption, and each of its
runs can be repeated alone.
"""

from __future__ import annotations

import hashlib
import math
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from plait.epa.faults import TYPES, Fault, draw, targets
from plait.epa.recording import Recording
from plait.epa.reversibility import Reversibility, check
from plait.epa.run import run, scratch
from plait.kernel.errors import TraceError, UsageError

Outcome = Literal["crash", "hang", "sdc", "masked", "none"]
OUTCOMES: dict[Outcome, str] = {
    "crash": "the program ended abnormally",
    "hang": "the program did not end in time",
    "sdc": "the program ended normally with a different output (silent data corruption)",
    "masked": "the error spread, but the output is the same",
    "none": "only the corrupted value deviates",
}


class Header(msgspec.Struct, frozen=True):
    """The identity of a campaign: two campaigns with equal headers are the same."""

    program: str
    digest: str
    arguments: list[str]
    types: list[str]
    runs: int
    seed: int


class Result(msgspec.Struct, frozen=True):
    """The result of one injection."""

    index: int
    fault: Fault
    outcome: Outcome
    deviates: bool
    """Whether the trace differs from the golden trace."""
    propagates: bool
    """Whether the trace differs in more than the corrupted value."""
    struck: bool
    """Whether the run reached the execution of the fault."""
    seconds: float
    place: str


class Share(msgspec.Struct, frozen=True):
    """A type of fault: runs by outcome, and the share of runs in which the error spread, with 95 % interval."""

    type: str
    runs: int
    outcomes: dict[str, int]
    coverage: float
    low: float
    high: float


class Summary(msgspec.Struct, frozen=True):
    """The results of a campaign."""

    header: Header
    shares: list[Share]
    missed: int
    """Crashes and silent data corruptions whose trace does not differ: possible false negatives."""
    direct: int
    """Crashes and silent data corruptions whose trace differs only in the corrupted value: external code used it."""
    failures: int
    """Crashes and silent data corruptions."""
    complete: bool

    @property
    def missed_rate(self) -> float:
        """The maximal possible false negative rate (MPFNR) of crashes and silent data corruptions."""
        return self.missed / self.failures if self.failures else 0.0


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share, by Wilson's method. It is correct for shares near 0 and 1 too.

    >>> [round(x, 3) for x in wilson(50, 100)]
    [0.404, 0.596]
    """
    if total == 0:
        return 0.0, 1.0
    z = 1.959963984540054
    share = hits / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return max(0.0, middle - half), min(1.0, middle + half)


class Campaign:
    """A golden run that passed the check, and the faults to inject."""

    def __init__(
        self,
        program: Path,
        arguments: Sequence[str],
        *,
        types: Sequence[str],
        runs: int,
        seed: int = 0,
        timeout: float | None = None,
        require: bool = True,
    ) -> None:
        unknown = [t for t in types if t not in TYPES]
        if unknown or not types:
            raise UsageError(
                f"{', '.join(unknown)} is not a type of fault" if unknown else "no type of fault was given",
                hint=f"the types are {', '.join(TYPES)}",
            )
        self.folder = Path(tempfile.mkdtemp(prefix="plait-epa-", dir=scratch()))
        self.program, self.arguments = program, list(arguments)
        try:
            done = run(program, arguments, self.folder / "golden", timeout=max(timeout or 0.0, 60.0))
            if done.code or done.timed_out:
                raise UsageError(
                    f"the golden run of {program} failed: {done.ending}", hint="run the program alone to see why"
                )
            self.golden = Recording(self.folder / "golden")
            self.check: Reversibility = check(self.golden)
            if require and not self.check.verdict:
                raise NotDeterministic(self.check)
            self.timeout = timeout or max(2.0, 20 * done.seconds)
            # A longer trace has deviated before. Without this limit, a run that hangs records gigabytes.
            self.most = 2 * max(f.stat().st_size for f in (self.folder / "golden").glob("thread-*.bin")) + (1 << 20)
            digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
            self.header = Header(str(program), digest, self.arguments, list(types), runs, seed)
            self.faults = self._draw()
        except BaseException:
            self.close()
            raise

    def _draw(self) -> list[Fault]:
        executions = self.golden.executions()
        table = self.golden.table
        choices = {t: targets(table, executions, t) for t in self.header.types}
        usable = [t for t in self.header.types if choices[t]]
        if not usable:
            raise UsageError(
                f"the program has no place for a fault of type {', '.join(self.header.types)}",
                hint="choose other types of faults",
            )
        self.unusable = [t for t in self.header.types if not choices[t]]
        found = []
        for i in range(self.header.runs):
            kind = usable[i % len(usable)]
            found.append(draw(table, choices[kind], kind, random.Random(f"{self.header.seed}/{i}")))
        return found

    def inject(self, index: int) -> Result:
        """Perform one run of the campaign."""
        fault = self.faults[index]
        folder = self.folder / "faulty"
        done = run(self.program, self.arguments, folder, fault=fault, timeout=self.timeout, most=self.most)
        try:
            faulty = Recording(folder)
            equal, propagates = self.golden.native.outcome(faulty.native)
            struck = bool(faulty.native.faults())
            same = faulty.output == self.golden.output
        except TraceError:
            # The fault may have corrupted the memory of the recorder. Then the trace counts as different.
            equal, propagates, struck = False, True, True
            same = (folder / "stdout").read_bytes() == self.golden.output
        outcome: Outcome = "none"
        if done.timed_out:
            outcome = "hang"
        elif done.code:
            outcome = "crash"
        elif not same:
            outcome = "sdc"
        elif propagates:
            outcome = "masked"
        place = self.golden.table.place(fault.site)
        return Result(index, fault, outcome, not equal, propagates, struck, done.seconds, place)

    def close(self) -> None:
        """Remove the traces of the campaign."""
        shutil.rmtree(self.folder, ignore_errors=True)


class NotDeterministic(Exception):  # noqa: N818
    """The golden run is not pseudo-deterministic: comparisons with it are not sound."""

    def __init__(self, found: Reversibility) -> None:
        super().__init__(found.verdict.message)
        self.found = found


def load(file: Path, header: Header) -> dict[int, Result]:
    """The results of an earlier part of the same campaign; none if the file does not exist."""
    if not file.exists():
        return {}
    lines = file.read_bytes().splitlines()
    try:
        earlier = msgspec.json.decode(lines[0], type=Header) if lines else None
    except msgspec.DecodeError as error:
        raise UsageError(f"{file} is not a results file: {error}", hint="choose another file for the results") from None
    if earlier != header:
        raise UsageError(
            f"{file} belongs to another campaign (program, arguments, faults, runs or seed differ)",
            hint="choose another file for the results, or remove this one",
        )
    found: dict[int, Result] = {}
    for line in lines[1:]:
        try:
            result = msgspec.json.decode(line, type=Result)
        except msgspec.DecodeError:
            continue  # an incomplete line: the campaign was interrupted while it wrote it
        found[result.index] = result
    return found


def perform(campaign: Campaign, file: Path, tell: Callable[[int, Result], None] = lambda *_: None) -> Iterator[Result]:
    """Perform the remaining runs of a campaign. Each result is saved at once."""
    done = load(file, campaign.header)
    yield from done.values()
    if not done:
        file.write_bytes(msgspec.json.encode(campaign.header) + b"\n")
    torn = file.read_bytes()[-1:] != b"\n"
    with file.open("ab") as out:
        if torn:
            out.write(b"\n")
        for index in range(campaign.header.runs):
            if index in done:
                continue
            result = campaign.inject(index)
            out.write(msgspec.json.encode(result) + b"\n")
            out.flush()
            tell(index, result)
            yield result


def summarize(header: Header, results: Sequence[Result]) -> Summary:
    """The results by type of fault: the numbers of Figure 17."""
    shares = []
    for kind in header.types:
        mine = [r for r in results if r.fault.type == kind]
        if not mine:
            continue
        hits = sum(r.propagates for r in mine)
        low, high = wilson(hits, len(mine))
        outcomes = {o: sum(r.outcome == o for r in mine) for o in OUTCOMES}
        shares.append(Share(kind, len(mine), {str(k): v for k, v in outcomes.items()}, hits / len(mine), low, high))
    failures = [r for r in results if r.outcome in ("crash", "sdc")]
    missed = sum(not r.deviates for r in failures)
    direct = sum(r.deviates and not r.propagates for r in failures)
    return Summary(header, shares, missed, direct, len(failures), len(results) == header.runs)
