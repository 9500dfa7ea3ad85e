"""Plait among its peers: `plait check` in its own process, every state, no reduction."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from plait.bench.errors import FailedError
from plait.bench.peers.checker import PROTOCOLS, Case, Checker, Counts, Run


class Plait(Checker):
    """Plait itself."""

    name = "Plait"

    def has(self, protocol: str) -> bool:
        return protocol in PROTOCOLS

    def version(self) -> str:
        try:
            return f"Plait {version('plait')}"
        except PackageNotFoundError:
            return "Plait"

    def prepare(self, case: Case, workers: int, folder: Path) -> Run:
        parameters = [word for name, value in case.parameters.items() for word in ("-p", f"{name}={value}")]
        options = ["--workers", str(workers), "--json", "--quiet"]
        return Run([sys.executable, "-m", "plait.cli.main", "check", case.protocol, *parameters, *options])

    def read(self, output: str, code: int) -> Counts:
        try:
            found = json.loads(output)
        except ValueError:
            raise FailedError(f"unexpected output of plait check: {output.strip()[-200:]}") from None
        if found["bound"] is not None:
            raise FailedError(f"plait check was stopped: {found['bound']}")
        return Counts(found["states"], found["transitions"], found["seconds"], found["verdict"] != "holds")
