"""`plait epa campaign`: many injections, one per run, and what became of them (Saissi 2019, section 5.5.4).

Every fault is drawn from the seed, so that a campaign is the same each time, can go on where it was interrupted, and
each of its runs can be repeated alone.
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
    "crash": "ended abnormally",
    "hang": "did not end in time",
    "sdc": "ended well, with another output (silent data corruption)",
    "masked": "the error spread, with the same output",
    "none": "nothing but the corrupted value deviated",
}


class Header(msgspec.Struct, frozen=True):
    """What makes two campaigns the same."""

    program: str
    digest: str
    arguments: list[str]
    types: list[str]
    runs: int
    seed: int


class Result(msgspec.Struct, frozen=True):
    """One injection."""

    index: int
    fault: Fault
    outcome: Outcome
    deviates: bool
    """Whether its trace differs from the golden one."""
    propagates: bool
    """Whether more differs than the value that the fault changed."""
    struck: bool
    """Whether the faulty execution was reached."""
    seconds: float
    place: str


class Share(msgspec.Struct, frozen=True):
    """A type of fault: how many ended how, and the share in which the error spread, with its 95 % confidence interval."""

    type: str
    runs: int
    outcomes: dict[str, int]
    coverage: float
    low: float
    high: float


class Summary(msgspec.Struct, frozen=True):
    """A campaign's results."""

    header: Header
    shares: list[Share]
    missed: int
    """Crashes and silent corruptions whose trace does not differ: possible false negatives."""
    direct: int
    """Those whose trace differs only in the value that the fault changed: an external function used it."""
    failures: int
    """Crashes and silent corruptions."""
    complete: bool

    @property
    def missed_rate(self) -> float:
        """The maximal possible false negative rate (MPFNR) of crashes and silent corruptions."""
        return self.missed / self.failures if self.failures else 0.0


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share (Wilson's, which is right for shares near 0 and 1 too).

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
    """A golden run that passed the check, and the faults that will strike."""

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
                f"--faults: {', '.join(unknown) or 'nothing'} is not a type of fault",
                hint=f"the types are {', '.join(TYPES)}",
            )
        self.folder = Path(tempfile.mkdtemp(prefix="plait-epa-", dir=scratch()))
        self.program, self.arguments = program, list(arguments)
        try:
            done = run(program, arguments, self.folder / "golden", timeout=max(timeout or 0.0, 60.0))
            if done.code or done.timed_out:
                raise UsageError(f"the golden run of {program} failed: {done.ending}", hint="run it alone and see why")
            self.golden = Recording(self.folder / "golden")
            self.check: Reversibility = check(self.golden)
            if require and not self.check.verdict:
                raise NotDeterministic(self.check)
            self.timeout = timeout or max(2.0, 20 * done.seconds)
            # What deviates does so before it is longer than the golden one. A run that hangs records gigabytes otherwise.
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
                f"the program has nothing that {', '.join(self.header.types)} could strike",
                hint="choose other --faults",
            )
        self.unusable = [t for t in self.header.types if not choices[t]]
        found = []
        for i in range(self.header.runs):
            kind = usable[i % len(usable)]
            found.append(draw(table, choices[kind], kind, random.Random(f"{self.header.seed}/{i}")))
        return found

    def inject(self, index: int) -> Result:
        """Do one run of the campaign."""
        fault = self.faults[index]
        folder = self.folder / "faulty"
        done = run(self.program, self.arguments, folder, fault=fault, timeout=self.timeout, most=self.most)
        try:
            faulty = Recording(folder)
            equal, propagates = self.golden.native.outcome(faulty.native)
            struck = bool(faulty.native.faults())
            same = faulty.output == self.golden.output
        except TraceError:
            # A fault may strike the recorder's own memory. What is then left of the trace differs from the golden one.
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
        """Remove the traces."""
        shutil.rmtree(self.folder, ignore_errors=True)


class NotDeterministic(Exception):  # noqa: N818
    """The golden run does not satisfy the pseudo-deterministic condition: comparisons would not be sound."""

    def __init__(self, found: Reversibility) -> None:
        super().__init__(found.verdict.message)
        self.found = found


def load(file: Path, header: Header) -> dict[int, Result]:
    """Results of an earlier part of the same campaign; none if there is no such file."""
    if not file.exists():
        return {}
    lines = file.read_bytes().splitlines()
    try:
        earlier = msgspec.json.decode(lines[0], type=Header) if lines else None
    except msgspec.DecodeError as error:
        raise UsageError(f"{file} is not a results file: {error}", hint="choose another file with -o") from None
    if earlier != header:
        raise UsageError(
            f"{file} belongs to another campaign (program, arguments, faults, runs or seed differ)",
            hint="choose another file with -o, or remove it",
        )
    found: dict[int, Result] = {}
    for line in lines[1:]:
        try:
            result = msgspec.json.decode(line, type=Result)
        except msgspec.DecodeError:
            continue  # the line that was being written when the campaign was interrupted
        found[result.index] = result
    return found


def perform(campaign: Campaign, file: Path, tell: Callable[[int, Result], None] = lambda *_: None) -> Iterator[Result]:
    """Do what is left of a campaign, and note each result at once."""
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
    """Figure 17 as numbers."""
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
