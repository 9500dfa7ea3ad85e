"""`plait bench bmc --peer cbmc`: Plait and CBMC on the same C programs.

A program states its verdict in a comment (`// verdict: true`): whether all assertions hold in all runs. Plait looks at all
runs. CBMC repeats each loop up to the bound that the comment `// unwind: 4` gives, with unwinding assertions. So its
answer `true` is about all runs, too. If only unwinding assertions fail, its answer is `bounded`: no assertion fails
within the bound. A `true` or a `false` that contradicts the verdict is an error.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plait.bench.errors import FailedError, MissingError, StoppedError
from plait.bench.options import Options
from plait.bench.peers.checker import MODELS
from plait.bench.peers.own import Plait as OwnVersion
from plait.bench.peers.process import Measured, run
from plait.bench.report.cells import times
from plait.bench.table import Cell, Column, Plot, Row, Table
from plait.kernel.errors import UsageError

FOLDER = MODELS / "c"
UNWIND = 4
"""The bound of loops for CBMC, if a program states none."""
FASTER = 5.0
"""The target for programs with 5 or more threads and locks."""
DECIDED = ("true", "false")


class Program(NamedTuple):
    """A C program with its known verdict."""

    name: str
    text: str
    verdict: str | None
    """`true` if all assertions hold, `false` if one fails; None if the program does not state it."""
    unwind: int
    locked: bool = False
    """Whether it has 5 or more threads and locks."""


class Size(NamedTuple):
    """A program of `models/c`, its number of threads (or of rounds), and the bound of its loops."""

    file: str
    threads: int
    unwind: int
    quick: bool = False


def _sized(file: str, *threads: int, waits: int = 0) -> list[Size]:
    """Several sizes of a program. CBMC repeats a loop over all threads once more than there are threads."""
    return [Size(file, n, max(n + 1, waits), quick=n == threads[0]) for n in threads]


SIZES = [
    *_sized("locks", 3, 5, 7),
    *_sized("half_locked", 3, 5, 7),
    *_sized("two_locks", 2, 5),
    *_sized("philosophers", 3, 5),
    *_sized("readers", 2, 5),
    *_sized("buffer", 2, 5),
    *_sized("queue", 3, 6),
    *_sized("ticket_lock", 3, 5, waits=4),
    *_sized("peterson", 2, waits=4),
    *_sized("peterson_late", 2, waits=4),
    *_sized("dekker", 2, waits=4),
    *_sized("bakery", 2, 3, waits=4),
    *_sized("triangular", 3, 10),
    *_sized("triangular_reached", 3, 10),
    *_sized("fibonacci", 3, 5),
]


class Answer(NamedTuple):
    """The answer of a checker, and its costs."""

    said: str
    """`true`, `false`, `bounded`, `unknown` or `timeout`."""
    seconds: float
    cpu_seconds: float | None = None
    memory_bytes: int | None = None


class RefusedError(FailedError):
    """A checker does not support a program; the message is its own."""


class Peer(ABC):
    """A checker of C programs."""

    name: str

    @abstractmethod
    def version(self) -> str:
        """Its name and version. Raises `MissingError` if it is not installed."""

    @abstractmethod
    def check(self, program: Program, file: Path, timeout: float) -> tuple[str, Measured]:
        """The answer about a program. Raises `FailedError` if there is none, `StoppedError` after the timeout."""


class Plait(Peer):
    """Plait itself: `plait bmc` with its defaults, in its own process."""

    name = "Plait"

    def version(self) -> str:
        return OwnVersion().version()

    def check(self, program: Program, file: Path, timeout: float) -> tuple[str, Measured]:
        command = [sys.executable, "-m", "plait.cli.main", "bmc", str(file), "--json", "--quiet"]
        measured = run(command, cwd=file.parent, timeout=timeout)
        try:
            # The object is one line. The other lines are notes on stderr.
            found = json.loads(next(line for line in measured.output.splitlines() if line.startswith("{")))
        except (ValueError, StopIteration):
            raise FailedError(f"unexpected output of plait bmc: {measured.output.strip()[-200:]}") from None
        if "error" in found:
            error = RefusedError if found["error"]["kind"] in ("usage", "model") else FailedError
            raise error(found["error"]["message"])
        # Plait also looks for deadlocks and so on; CBMC checks assertions only.
        asserted = [each["status"] for each in found["properties"] if each["name"] == "assertions"]
        answers = {"holds": "true", "violated": "false"}
        return answers.get(asserted[0] if asserted else found["verdict"], "unknown"), measured


class Cbmc(Peer):
    """CBMC, with the sequential consistency that Plait has, and assertions as the only property."""

    name = "CBMC"
    options = ("--no-standard-checks", "--unwinding-assertions", "--json-ui")

    def version(self) -> str:
        if shutil.which("cbmc") is None:
            raise MissingError(
                "cbmc is not on PATH", "install it: apt-get install cbmc (Debian 13), or from cprover.org"
            )
        said = subprocess.run(["cbmc", "--version"], capture_output=True, text=True, check=False).stdout
        return f"CBMC {said.split()[0]}" if said.strip() else "CBMC"

    def check(self, program: Program, file: Path, timeout: float) -> tuple[str, Measured]:
        command = ["cbmc", *self.options, "--unwind", str(program.unwind)]
        measured = run([*command, "-I", str(FOLDER / "include"), str(file)], timeout=timeout)
        if "PARSING ERROR" in measured.output or "CONVERSION ERROR" in measured.output:
            # The program uses more of the system's pthread.h than our header declares.
            measured = run([*command, str(file)], timeout=timeout)
        return answer_of(measured.output), measured


def answer_of(output: str) -> str:
    """The answer in the output of `cbmc --json-ui`.

    >>> answer_of('[{"result": [{"property": "main.assertion.1", "status": "FAILURE"}]}, {"cProverStatus": "failure"}]')
    'false'
    >>> answer_of('[{"result": [{"property": "p.unwind.0", "status": "FAILURE"}]}, {"cProverStatus": "failure"}]')
    'bounded'
    """
    try:
        parts = json.loads(output)
    except ValueError:
        parts = []
    results = [each for part in parts for each in part.get("result", [])]
    status = next((part["cProverStatus"] for part in parts if "cProverStatus" in part), None)
    if status == "success":
        return "true"
    failed = [each["property"] for each in results if each["status"] == "FAILURE"]
    if status != "failure" or not failed:
        texts = [part["messageText"] for part in parts if part.get("messageType") == "ERROR"]
        error = RefusedError if texts else FailedError
        raise error(f"cbmc: {' / '.join(texts) or output.strip()[-200:] or 'no output'}")
    return "bounded" if all(re.search(r"\.unwind\.\d+$", name) for name in failed) else "false"


def shipped(*, quick: bool) -> list[Program]:
    """The programs that ship with Plait, in several sizes."""
    return [_shipped(size) for size in SIZES if size.quick or not quick]


def _shipped(size: Size) -> Program:
    text = (FOLDER / f"{size.file}.c").read_text(encoding="ascii")
    name = size.file.replace("_", " ")
    if "THREADS" in text:
        text, name = f"#define THREADS {size.threads}\n{text}", f"{name} {size.threads}"
    locked = size.threads >= 5 and "pthread_create(&threads[" in text and "pthread_mutex_lock" in text
    return Program(name, text, _comment("verdict", text), size.unwind, locked)


def in_folder(folder: Path) -> list[Program]:
    """The C programs of a folder."""
    files = sorted(folder.glob("*.c")) if folder.is_dir() else []
    if not files:
        raise UsageError(f"--files: {folder} has no C programs", hint="give a folder with files that end in .c")
    found = []
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        unwind = _comment("unwind", text)
        found.append(Program(file.stem, text, _comment("verdict", text), int(unwind) if unwind else UNWIND))
    return found


def _comment(name: str, text: str) -> str | None:
    found = re.search(rf"(?://|/\*)\s*{name}:\s*(true|false|\d+)", text)
    return None if found is None else found[1]


COLUMNS = [
    Column("answer"),
    Column("time"),
    Column("faster", "Plait's speed-up"),
    Column("cpu_time", "CPU time"),
    Column("memory", "peak memory"),
]


def measure(options: Options) -> Table:
    """Run Plait and CBMC on every program."""
    programs = shipped(quick=options.quick) if options.files is None else in_folder(options.files)
    return compare(options, programs, [Plait(), Cbmc()])


def compare(options: Options, programs: Sequence[Program], peers: Sequence[Peer]) -> Table:
    """Run these checkers on these programs. They take turns, so that a slow minute affects all of them."""
    table = Table(
        "bmc", "Plait and CBMC on the same C programs", COLUMNS, "checker", plot=Plot("time", "seconds", "memory")
    )
    with table.measuring(), tempfile.TemporaryDirectory(prefix="plait-cbmc-") as folder:
        versions = [peer.version() for peer in peers]
        table.conditions = (
            f"{', '.join(versions)}; wall time, each run stopped after {options.timeout:g} s; Plait: all runs; CBMC: loops "
            "up to a bound with unwinding assertions, locks of one byte (its formulas are smaller than with the system's)"
        )
        for number, program in enumerate(programs, 1):
            file = Path(folder) / f"{program.name.replace(' ', '_')}.c"
            file.write_text(program.text, encoding="utf-8")
            ours: Row | None = None
            for peer in peers:
                options.tell(f"{number}/{len(programs)}  {program.name}: {peer.name}")
                row = _add(table, program, peer, file, options.timeout, ours)
                ours = ours or row
    if table.rows:
        table.summary += _summary(table.rows, [peer.name for peer in peers])
    return table


def _add(table: Table, program: Program, peer: Peer, file: Path, timeout: float, ours: Row | None) -> Row:
    try:
        said, measured = peer.check(program, file, timeout)
        answer = Answer(said, measured.seconds, measured.cpu_seconds, measured.memory_bytes)
    except StoppedError:
        answer = Answer("timeout", timeout)
    except RefusedError as error:
        return table.add(program.name, peer.name, answer=Cell("refused"), note=str(error))
    except FailedError as error:
        return table.add(program.name, peer.name, answer=Cell("failed"), failed=str(error))
    expected = program.verdict
    if expected is None and ours is not None and ours.value("answer") in DECIDED:
        expected = ours.value("answer")  # nothing is known: the answers must at least agree
    stopped = answer.said == "timeout"
    faster = None if ours is None else _ratio(answer, ours)
    aim = program.locked and faster is not None and answer.said in (*DECIDED, "timeout")
    return table.add(
        program.name,
        peer.name,
        answer=Cell(answer.said, expected=expected if answer.said in DECIDED else None),
        time=Cell(answer.seconds, "s", stopped),
        faster=faster,
        cpu_time=None if answer.cpu_seconds is None else Cell(answer.cpu_seconds, "s"),
        memory=None if answer.memory_bytes is None else Cell(answer.memory_bytes, "B"),
        limit="timeout" if stopped else None,
        target=f"≥ {FASTER:g}×" if aim else "",
        met=not aim or (faster is not None and isinstance(faster.value, float) and faster.value >= FASTER),
    )


def _ratio(answer: Answer, ours: Row) -> Cell | None:
    """How many times as long the peer takes. After its timeout, this is a lower bound."""
    mine = ours.value("time")
    if not mine or ours.value("answer") not in DECIDED:
        return None
    return Cell(answer.seconds / mine, "x", answer.said == "timeout")


def _summary(rows: list[Row], names: Sequence[str]) -> list[str]:
    differing = [f"{row.setting}, {row.variant}" for row in rows if row.differs]
    lines = [f"WRONG ANSWERS: {'; '.join(differing)}."] if differing else []
    for name in names:
        mine = [row for row in rows if row.variant == name]
        decided = sum(row.value("answer") in DECIDED for row in mine)
        others = [f"{row.setting} ({row.value('answer')})" for row in mine if row.value("answer") not in DECIDED]
        more = f"; not decided: {', '.join(others)}" if others else ""
        lines.append(f"{name} decides {decided} of {len(mine)} programs{more}.")
    ratios = [row for row in rows if row.value("faster") is not None]
    both = [row.value("faster") for row in ratios if row.value("answer") in DECIDED]
    if both:
        mean = math.exp(sum(map(math.log, both)) / len(both))
        lines.append(
            f"On the {len(both)} programs that both decide, {names[-1]} takes {times(mean)} times as long as Plait "
            f"(geometric mean; from {times(min(both))} to {times(max(both))})."
        )
    aimed = [row for row in ratios if row.target is not None]
    if aimed:
        least = min(aimed, key=lambda row: float(row.value("faster")))
        lines.append(
            f"Programs with 5 or more threads and locks: {names[-1]} takes at least {times(least.value('faster'))} "
            f"times as long as Plait ({least.setting})."
        )
    return lines
