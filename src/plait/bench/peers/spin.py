"""Spin: generates the verifier pan from a model in Promela, compiles it, runs it and reads its report.

Macros give a model its sizes. They also unroll loops over processes into options of a `do`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from plait.bench.errors import FailedError, MissingError
from plait.bench.peers.checker import MODELS, Case, Checker, Counts, Run
from plait.bench.peers.process import build

FLAGS = ("-DNOREDUCE", "-DSAFETY", "-DMEMLIM=16000")
"""Flags of the C compiler: every state, no partial-order reduction, no search for cycles."""
DEPTH = 10_000
"""The depth of pan's stack. Its report says if that is too small."""


def _options(name: str, items: list[str]) -> dict[str, str]:
    return {f"{name}(step)": " ".join(f":: step({item})" for item in items)}


def _over(count: int) -> dict[str, str]:
    numbers = [str(n) for n in range(count)]
    return {"N": str(count), **_options("EACH", numbers), "ALL(holds)": " && ".join(f"holds({n})" for n in numbers)}


def _paxos(proposers: int, acceptors: int, learners: int) -> dict[str, str]:
    ps, accs = [[str(n) for n in range(count)] for count in (proposers, acceptors)]
    return {
        "P": str(proposers),
        "A": str(acceptors),
        "L": str(learners),
        "MAJORITY": str(acceptors // 2 + 1),
        **_options("EACH_PROPOSER", ps),
        **_options("EACH_ACCEPTOR", accs),
        **_options("EACH_VOTE", [f"{p}, {a}" for p in ps for a in accs]),
    }


def _macros(case: Case) -> Mapping[str, str]:
    match case.protocol, case.sizes:
        case "paxos", (proposers, acceptors, learners):
            return _paxos(proposers, acceptors, learners)
        case "lamport_mutex", (processes, limit):
            return _over(processes) | {"LIMIT": str(limit)}
        case "two_phase_commit", (managers,):
            return _over(managers)
    raise ValueError(f"there is no Promela model of {case}")


def promela(case: Case) -> str:
    """The model with its sizes.

    >>> promela(Case("two_phase_commit", (2,), 34)).splitlines()[:2]
    ['#define N 2', '#define EACH(step) :: step(0) :: step(1)']
    """
    body = (MODELS / f"{case.protocol}.pml").read_text(encoding="ascii")
    return "".join(f"#define {name} {value}\n" for name, value in _macros(case).items()) + "\n" + body


class Spin(Checker):
    """Depth-first search with one worker. Spin stores whole states, not fingerprints."""

    name = "Spin"

    def __init__(self, *, optimization: str = "-O3") -> None:
        self._flags = (optimization, *FLAGS)

    def has(self, protocol: str) -> bool:
        return (MODELS / f"{protocol}.pml").exists()

    def version(self) -> str:
        for tool in ("spin", "gcc"):
            if shutil.which(tool) is None:
                raise MissingError(f"{tool} is not installed", f"install it: apt-get install {tool}")
        said = subprocess.run(["spin", "-V"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"Version (\S+)", said)
        return f"Spin {found[1]}" if found else "Spin"

    def prepare(self, case: Case, workers: int, folder: Path) -> Run:
        return self.verifier(promela(case), case.states, folder)

    def verifier(self, model: str, states: int, folder: Path) -> Run:
        """Generate and compile pan. Its hash table gets two to four slots per state, the fastest size tried."""
        work = Path(tempfile.mkdtemp(dir=folder))
        (work / "model.pml").write_text(model, encoding="ascii")
        build(["spin", "-a", "model.pml"], cwd=work)
        pan = work / "pan.c"  # The report rounds to 8 digits; make it print whole numbers.
        pan.write_text(pan.read_text(encoding="utf-8").replace("%9.8g", "%9.0f"), encoding="utf-8")
        build(["gcc", *self._flags, "-w", "-o", "pan", "pan.c"], cwd=work)
        return Run(["./pan", f"-m{DEPTH}", f"-w{max(16, (2 * states).bit_length())}"], work)

    def read(self, output: str, code: int) -> Counts:
        errors = int(number(r"errors: (\d+)", output))
        if errors == 0 and ("Search not completed" in output or "max search depth too small" in output):
            raise FailedError("pan did not finish its search")
        states = int(number(r"^\s*(\d+) states, stored", output))
        # pan counts the initial state as a transition.
        transitions = int(number(r"^\s*(\d+) transitions \(= stored\+matched\)", output)) - 1
        return Counts(states, transitions, number(r"elapsed time (\S+) seconds", output), errors > 0)


def number(pattern: str, report: str) -> float:
    """Read a number from pan's report."""
    found = re.search(pattern, report, re.MULTILINE)
    if found is None:
        raise FailedError(f"pan's report has no line {pattern!r}: {report.strip()[-200:]}")
    return float(found[1])
