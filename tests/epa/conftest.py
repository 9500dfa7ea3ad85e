"""Programs are built once for all tests of this folder and all workers. The tests are skipped where there is no clang."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.toolchain import find_all
from plait.epa.recording import Recording
from plait.epa.run import Run, run
from tests.support.once import made_once

EXAMPLES = Path(__file__).parents[2] / "examples" / "epa"
Build = Callable[[str], Path]
Record = Callable[..., Recording]


@pytest.fixture(scope="session")
def toolchain() -> int:
    """A version of clang that is there."""
    found = find_all()
    if not found:
        pytest.skip("clang with its libLLVM is not installed: apt-get install clang-14")
    return found[0].version


@pytest.fixture(scope="session")
def built(toolchain: int, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The program of an example, or of a source text."""

    def compile_in(folder: Path, source: str) -> None:
        if "\n" in source:
            file = folder / f"program.{'cpp' if '#include <thread>' in source else 'c'}"
            file.write_text(source, encoding="utf-8")
        else:
            file = EXAMPLES / source
        build([file], folder / "program.epa", version=toolchain)

    def make(source: str) -> Path:
        name = f"epa-{hashlib.sha256(source.encode()).hexdigest()[:16]}"
        return made_once(tmp_path_factory, name, lambda folder: compile_in(folder, source)) / "program.epa"

    return make


@pytest.fixture
def record(built: Build, tmp_path: Path) -> Record:
    """Run an example (or a source text) and read its trace."""
    count = iter(range(10_000))

    def make(source: str, *arguments: str, expect: int | None = 0, **options: object) -> Recording:
        folder = tmp_path / f"trace{next(count)}"
        done: Run = run(built(source), arguments, folder, **options)  # type: ignore[arg-type]
        assert expect is None or done.code == expect, (folder / "stderr").read_text()
        return Recording(folder)

    return make
