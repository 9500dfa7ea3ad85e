"""Programs are built once for all tests of this folder, which are skipped where there is no clang."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plait.epa.instrumentation.build import build
from plait.epa.instrumentation.toolchain import find_all
from plait.epa.recording import Recording
from plait.epa.run import Run, run

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
    folder = tmp_path_factory.mktemp("programs")
    known: dict[str, Path] = {}

    def make(source: str) -> Path:
        if source not in known:
            if "\n" in source:
                file = folder / f"program{len(known)}.{'cpp' if '#include <thread>' in source else 'c'}"
                file.write_text(source, encoding="utf-8")
            else:
                file = EXAMPLES / source
            known[source] = folder / f"{len(known)}.epa"
            build([file], known[source], version=toolchain)
        return known[source]

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
