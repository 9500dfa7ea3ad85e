"""Stateright: cargo builds the crate models/stateright, which has a model of each protocol."""

from __future__ import annotations

import json
import os
import re
import shutil
from functools import cached_property
from pathlib import Path

from plait.bench.errors import FailedError, MissingError
from plait.bench.peers.checker import MODELS, PROTOCOLS, Case, Checker, Counts, Run
from plait.bench.peers.process import build

CRATE = MODELS / "stateright"


def cache() -> Path:
    """The folder that keeps downloads and builds for the next run."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plait"


class Stateright(Checker):
    """Breadth-first search with the given number of threads."""

    name = "Stateright"

    def has(self, protocol: str) -> bool:
        return protocol in PROTOCOLS

    def version(self) -> str:
        if shutil.which("cargo") is None:
            raise MissingError("cargo is not installed", "install the Rust toolchain: https://rustup.rs")
        lock = (CRATE / "Cargo.lock").read_text(encoding="utf-8")
        found = re.search(r'name = "stateright"\nversion = "(.*)"', lock)
        return f"Stateright {found[1]}" if found else "Stateright"

    @property
    def program(self) -> Path:
        """The program that cargo builds."""
        return cache() / "stateright" / "release" / "plait-peers"

    @cached_property
    def _built(self) -> Path:
        manifest, target = str(CRATE / "Cargo.toml"), str(cache() / "stateright")
        build(
            ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest, "--target-dir", target]
        )
        return self.program

    def prepare(self, case: Case, workers: int, folder: Path) -> Run:
        return Run([str(self._built), str(workers), case.protocol, *map(str, case.sizes)])

    def read(self, output: str, code: int) -> Counts:
        try:
            found = json.loads(output)
        except ValueError:
            raise FailedError(f"unexpected output: {output.strip()[-200:]}") from None
        return Counts(found["states"], found["transitions"], found["seconds"])
