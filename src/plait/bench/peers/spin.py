"""Spin: a model in Promela, the verifier that it generates (pan), compiled, and its report.

The models need their sizes in front, and loops over processes unrolled to options of a `do`: macros do that.
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
"""For the C compiler: every state, no partial-order reduction, no cycles."""
DEPTH = 10_000
"""Of pan's stack; it says when that is too little."""


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
    """Depth-first; it stores whole states, not fingerprints, and has one worker."""

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
        """Generate and compile pan; its hash table gets two to four slots a state, the fastest of those tried."""
        work = Path(tempfile.mkdtemp(dir=folder))
        (work / "model.pml").write_text(model, encoding="ascii")
        build(["spin", "-a", "model.pml"], cwd=work)
        pan = work / "pan.c"  # its report rounds to 8 digits: let it print whole numbers
        pan.write_text(pan.read_text(encoding="utf-8").replace("%9.8g", "%9.0f"), encoding="utf-8")
        build(["gcc", *self._flags, "-w", "-o", "pan", "pan.c"], cwd=work)
        return Run(["./pan", f"-m{DEPTH}", f"-w{max(16, (2 * states).bit_length())}"], work)

    def read(self, output: str, code: int) -> Counts:
        errors = int(number(r"errors: (\d+)", output))
        if errors == 0 and ("Search not completed" in output or "max search depth too small" in output):
            raise FailedError("pan did not search everything")
        states = int(number(r"^\s*(\d+) states, stored", output))
        # pan counts the initial state as one more.
        transitions = int(number(r"^\s*(\d+) transitions \(= stored\+matched\)", output)) - 1
        return Counts(states, transitions, number(r"elapsed time (\S+) seconds", output), errors > 0)


def number(pattern: str, report: str) -> float:
    """A number of pan's report."""
    found = re.search(pattern, report, re.MULTILINE)
    if found is None:
        raise FailedError(f"pan's report has no line {pattern!r}: {report.strip()[-200:]}")
    return float(found[1])
