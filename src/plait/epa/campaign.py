"""`plait epa campaign`: many runs with one fault each, and their outcomes (Saissi 2019, section 5.5.4).

The seed determines all faults. So a campaign can be repeated, it can continue after an interruption, and each of its
runs can be repeated alone.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal

import msgspec

from plait.epa import files
from plait.epa.custom_faults import model
from plait.epa.faults import CALLS, TYPES, Fault, Where, draw, targets
from plait.epa.oracle import Oracle, results
from plait.epa.recording import Recording
from plait.epa.replay import Ending, ending, identity_of_file, with_limit, write
from plait.epa.reversibility import Reversibility, decide
from plait.epa.run import Run, run, scratch
from plait.kernel.errors import TraceError, UsageError

Outcome = Literal["crash", "hang", "sdc", "masked", "none"]
OUTCOMES: dict[Outcome, str] = {
    "crash": "the program ended abnormally",
    "hang": "the program did not end in time",
    "sdc": "the program ended normally with wrong results (silent data corruption)",
    "masked": "the error spread, but the results are correct",
    "none": "only the corrupted value deviates",
}

_PATIENCE = 30.0
"""The number of seconds after which replay without a fault ends, if a thread does not come to its turn."""


class Header(msgspec.Struct, frozen=True):
    """The identity of a campaign: two campaigns whose headers differ only in the number of runs are the same."""

    program: str
    digest: str
    arguments: list[str]
    types: list[str]
    runs: int
    seed: int
    where: list[str] = []
    """Conditions on the sites and executions of the faults."""
    definitions: list[str] = []
    """Digests of the files in Python that define types of faults."""
    input: str | None = None
    """A digest of the standard input."""
    oracle: str | None = None
    """A digest of the checker."""
    tolerance: float | None = None
    ignore: list[str] = []
    allow: list[str] = []
    nondeterministic: list[str] = []
    benign_same_value: bool = False
    replay: str | None = None
    """A digest of the order and the results that all runs replay; None if they run freely."""


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
    ending: str = ""
    differences: list[str] = []
    """The wrong results: stdout, stderr, file NAME; or what the checker said."""
    replay: Ending | None = None
    """Where replay ended before the run did."""
    certain: bool = True
    """Whether deviations are effects of the fault. False: replay ended by the fault itself, or by its time limit."""
    sanitizing: float = 0.0
    """The seconds that it took to read and sanitize the trace."""
    comparing: float = 0.0
    """The seconds that it took to compare it with the golden trace."""


class Share(msgspec.Struct, frozen=True):
    """A type of fault: runs by outcome, and the share of runs in which the error spread, with 95 % interval."""

    type: str
    runs: int
    outcomes: dict[str, int]
    coverage: float
    low: float
    high: float

    @property
    def mpfnr(self) -> float:
        """The maximal possible false negative rate (Saissi 2019, section 5.5.4): 1 - coverage."""
        return 1 - self.coverage


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
    mpfnr: float = 0.0
    """The maximal possible false negative rate of Saissi 2019: the share of all runs in which no propagation is seen."""
    mpfnr_low: float = 0.0
    mpfnr_high: float = 1.0
    needs: list[str] = []
    """What replay repeats in all runs, if the program is comparable only with replay."""
    diverged: int = 0
    """Runs that diverged from the golden run by the fault, so that replay ended."""
    stalled: int = 0
    """Runs in which replay ended after a time limit: the order of threads may have changed without the fault."""
    uncertain: int = 0
    """Runs that count as propagation, although another order of threads after the end of replay may be its cause."""

    @property
    def missed_rate(self) -> float:
        """The MPFNR of crashes and silent data corruptions: in these runs, an error has certainly propagated."""
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


def runs_for(width: float) -> int:
    """The number of runs after which the 95 % interval of any share has at most this width.

    >>> runs_for(0.1), runs_for(1.0)
    (381, 1)
    """
    low, high = 1, 1
    while _widest(high) > width:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _widest(middle) > width else (low, middle)
    return high


def _widest(total: int) -> float:
    """The width of the widest interval: the one of a share of one half."""
    low, high = wilson(total // 2, total)
    return high - low


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
        where: Sequence[str] = (),
        oracle: Oracle | None = None,
        stdin: Path | None = None,
        jobs: int = 1,
        benign_same_value: bool = False,
        allow: Sequence[str] = (),
        nondeterministic: Sequence[str] = (),
        replay: Literal["auto", "always", "never"] = "auto",
        order: Path | None = None,
    ) -> None:
        """Run the program, check the run, and draw faults.

        `order` is the file for what replay repeats. If it exists, the golden run replays it: it belongs to a campaign that
        continues.
        """
        if not types:
            raise UsageError("no type of fault was given", hint=f"the types are {', '.join(TYPES)}")
        self.models = {t: model(t) for t in types}
        self.where = Where.of(where)
        self.folder = Path(tempfile.mkdtemp(prefix="plait-epa-", dir=scratch()))
        self.program, self.arguments = program, list(arguments)
        self.oracle, self.stdin, self.jobs = oracle or Oracle(), stdin, jobs
        self.base = Path.cwd().resolve()
        try:
            self.order: Path | None = None
            earlier = order if replay != "never" and order is not None and order.exists() else None
            if earlier is not None:
                with_limit(earlier, self.folder / "order", stall=_PATIENCE)
                self.order = self.folder / "order"
            done = self._run(self.folder / "golden", timeout=max(timeout or 0.0, 60.0))
            if done.code or done.timed_out:
                raise UsageError(
                    f"the golden run of {program} failed: {done.ending}", hint="run the program alone to see why"
                )
            self.golden = Recording(self.folder / "golden")
            self.results = results(self.folder / "golden")
            self.check: Reversibility = decide(
                self.golden,
                replay=replay if earlier is None else "always",
                benign_same_value=benign_same_value,
                allow=allow,
                nondeterministic=nondeterministic,
            )
            if require and not self.check.verdict:
                raise NotDeterministic(self.check)
            self.timeout = (timeout or max(2.0, 20 * done.seconds)) * math.ceil(jobs / (os.cpu_count() or 1))
            self.stall = max(2.0, self.timeout)
            if self.check.replay:
                self._prepare_replay(earlier, order)
            # A longer trace has deviated before. Without this limit, a run that hangs records gigabytes.
            self.most = 2 * max(f.stat().st_size for f in (self.folder / "golden").glob("thread-*.bin")) + (1 << 20)
            self.written = self._written()
            if require:
                self._repeat()
            if self.order is not None:
                with_limit(self.order, self.order, stall=self.stall)
            self.header = Header(
                str(program),
                _digest(program),
                self.arguments,
                list(types),
                runs,
                seed,
                list(where),
                [_digest(Path(t)) for t in types if t not in TYPES],
                done.input,
                _digest(self.oracle.path) if self.oracle.path else None,
                self.oracle.tolerance,
                sorted(self.oracle.ignore),
                sorted(allow),
                sorted(nondeterministic),
                benign_same_value,
                identity_of_file(self.order) if self.order is not None else None,
            )
            self.faults = self._draw()
        except BaseException:
            self.close()
            raise

    def _run(self, folder: Path, *, base: Path | None = None, **options: Any) -> Run:
        """Run the program, and give the files that it wrote their old content."""
        try:
            return run(self.program, self.arguments, folder, stdin=self.stdin, base=base, order=self.order, **options)
        finally:
            files.restore(folder)

    def _prepare_replay(self, earlier: Path | None, order: Path | None) -> None:
        """Let all other runs replay the golden one."""
        if earlier is not None:
            if (ended := ending(self.folder / "golden")) is not None:
                raise UsageError(
                    f"{earlier} cannot be replayed: {ended.words}",
                    hint=f"remove {earlier} and the results to begin a new campaign",
                )
            return
        self.order = self.folder / "order"
        write(self.golden, self.order, stall=_PATIENCE)
        if order is not None:
            shutil.copyfile(self.order, order)

    def _written(self) -> list[str]:
        """The files that the golden run wrote. Parallel runs need copies of them."""
        names = list(self.results.files)
        outside = [name for name in names if Path(name).is_absolute()]
        if self.jobs > 1 and outside:
            raise UsageError(
                f"parallel runs would write the same file: {outside[0]}",
                hint="use --jobs 1, or let the program write to the working folder",
            )
        return names

    def _repeat(self) -> None:
        """Run the program again without a fault, in another schedule: the net under the check."""
        folder = self.folder / "again"
        self._private(folder, timeout=max(self.timeout, 60.0), yields=self._YIELDS)
        again = Recording(folder)
        wrong = self.oracle.differences(self.results, results(folder))
        equal, _ = self.golden.native.outcome(again.native)
        ended = ending(folder)
        shutil.rmtree(folder)
        if ended is not None:
            raise UsageError(
                f"a second run without a fault cannot be replayed: {ended.words}",
                hint="the program waits for something that is not replayed, or the machine is overloaded",
            )
        if not equal:
            raise UsageError(
                "a second run without a fault deviates from the golden run, although the golden run passed the check",
                hint="the program depends on something that changes between runs (plait epa run, compare --unsound)",
            )
        if wrong:
            raise UsageError(
                f"a second run without a fault has other results: {', '.join(wrong)}",
                hint="--ignore leaves out a result; --tolerance and --oracle accept differences",
            )

    _YIELDS = 1

    def _private(self, folder: Path, **options: Any) -> Run:
        """Run the program, in parallel campaigns with own copies of the files that it writes."""
        if self.jobs == 1 or not self.written:
            return self._run(folder, **options)
        own = folder.with_name(f"{folder.name}-work")
        files.mirror(self.base, own, self.written)
        try:
            return self._run(folder, base=own, **options)
        finally:
            shutil.rmtree(own, ignore_errors=True)

    def _draw(self) -> list[Fault]:
        executions = self.golden.executions()
        table = self.golden.table
        choices = {t: targets(table, executions, t, model=self.models[t], where=self.where) for t in self.header.types}
        usable = [t for t in self.header.types if choices[t]]
        if not usable:
            raise UsageError(
                f"the program has no place for a fault of type {', '.join(self.header.types)}"
                + (f" where {', '.join(self.header.where)}" if self.header.where else ""),
                hint="choose other types of faults" + (", or other conditions" if self.header.where else ""),
            )
        self.unusable = [t for t in self.header.types if not choices[t]]
        found = []
        for i in range(self.header.runs):
            kind = usable[i % len(usable)]
            custom = None if kind in TYPES else self.models[kind]
            found.append(draw(table, choices[kind], kind, random.Random(f"{self.header.seed}/{i}"), custom))
        return found

    def inject(self, index: int) -> Result:
        """Perform one run of the campaign."""
        fault = self.faults[index]
        folder = self.folder / f"faulty-{index}"
        started = read = compared = 0.0
        try:
            # Replay never takes from a run the time that it has without replay.
            limit = self.timeout + (self.stall if self.order is not None else 0.0)
            done = self._private(folder, fault=fault, timeout=limit, most=self.most)
            ended = ending(folder)
            try:
                started = time.perf_counter()
                faulty = Recording(folder)
                read = time.perf_counter()
                equal, propagates = self.golden.native.outcome(faulty.native)
                compared = time.perf_counter()
                struck = bool(faulty.native.faults())
            except TraceError:
                # The fault may have corrupted the memory of the recorder. Then the trace counts as different.
                equal, propagates, struck = False, True, True
            wrong = self.oracle.differences(self.results, results(folder)) if not done.timed_out else []
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        outcome: Outcome = "none"
        if done.timed_out:
            outcome = "hang"
        elif done.code:
            outcome = "crash"
        elif wrong:
            outcome = "sdc"
        elif propagates:
            outcome = "masked"
        place = self.golden.table.place(fault.site)
        return Result(
            index,
            fault,
            outcome,
            not equal,
            propagates,
            struck,
            done.seconds,
            place,
            done.ending,
            wrong,
            ended,
            # A skipped operation or a killed thread is a divergence by itself: nothing has spread yet.
            ended is None or (ended.diverged and self.models[fault.type].action not in CALLS),
            sanitizing=max(0.0, read - started),
            comparing=max(0.0, compared - read),
        )

    def close(self) -> None:
        """Remove the traces of the campaign."""
        shutil.rmtree(self.folder, ignore_errors=True)


class NotDeterministic(Exception):  # noqa: N818
    """The golden run is not pseudo-deterministic: comparisons with it are not sound."""

    def __init__(self, found: Reversibility) -> None:
        super().__init__(found.verdict.message)
        self.found = found


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def load(file: Path, header: Header) -> dict[int, Result]:
    """The results of an earlier part of the same campaign; none if the file does not exist.

    The file is repaired: an interruption may have cut a line. A campaign with more runs extends it.
    """
    raw = file.read_bytes() if file.exists() else b""
    lines = raw.splitlines()
    runs = header.runs
    found: dict[int, Result] = {}
    if lines and not (len(lines) == 1 and raw[-1:] != b"\n" and raw[:9] == b'{"program'):
        try:
            earlier = msgspec.json.decode(lines[0], type=Header)
        except msgspec.DecodeError as error:
            raise UsageError(
                f"{file} is not a results file: {error}", hint="choose another file for the results"
            ) from None
        runs = max(runs, earlier.runs)
        if msgspec.structs.replace(earlier, runs=header.runs) != header:
            raise UsageError(
                f"{file} belongs to another campaign (program, arguments, input, faults, oracle or seed differ)",
                hint="choose another file for the results, or remove this one",
            )
        for line in lines[1:]:
            try:
                result = msgspec.json.decode(line, type=Result)
            except msgspec.DecodeError:
                continue  # the campaign was interrupted while it wrote this line: the run is repeated
            found[result.index] = result
    whole = [msgspec.structs.replace(header, runs=runs), *found.values()]
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in whole)
    if content != raw:
        new = file.with_name(f"{file.name}.new")
        new.write_bytes(content)
        new.replace(file)
    return {i: result for i, result in found.items() if i < header.runs}


def perform(campaign: Campaign, file: Path, tell: Callable[[int, Result], None] = lambda *_: None) -> Iterator[Result]:
    """Perform the remaining runs of a campaign. Each result is saved at once."""
    done = load(file, campaign.header)
    yield from done.values()
    rest = [index for index in range(campaign.header.runs) if index not in done]
    with file.open("ab") as out:
        for count, result in enumerate(_injected(campaign, rest), len(done)):
            out.write(msgspec.json.encode(result) + b"\n")
            out.flush()
            tell(count, result)
            yield result


def _injected(campaign: Campaign, indices: Sequence[int]) -> Iterator[Result]:
    """The results of runs, in the order in which they end."""
    if campaign.jobs == 1:
        yield from map(campaign.inject, indices)
        return
    with ThreadPoolExecutor(campaign.jobs) as pool:
        running = [pool.submit(campaign.inject, index) for index in indices]
        try:
            for one in as_completed(running):
                yield one.result()
        finally:
            for one in running:
                one.cancel()


def summarize(header: Header, results: Sequence[Result], needs: Sequence[str] = ()) -> Summary:
    """The results by type of fault: the numbers of Figure 17. `needs`: what replay repeats."""
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
    hidden = sum(not r.propagates for r in results)
    low, high = wilson(hidden, len(results))
    rate = hidden / len(results) if results else 0.0
    ends = [r.replay.diverged for r in results if r.replay is not None]
    return Summary(
        header,
        shares,
        missed,
        direct,
        len(failures),
        len(results) == header.runs,
        rate,
        low,
        high,
        list(needs),
        ends.count(True),
        ends.count(False),
        sum(r.propagates and not r.certain for r in results),
    )
