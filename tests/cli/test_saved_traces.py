"""Saved traces: one file per model, property and parameters; they replay from any folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plait.cli.main import main
from plait.cli.output import default_trace_path
from tests.support.imports import forget


def saved() -> set[str]:
    return {file.name for file in Path(".plait").iterdir()} - {".gitignore"}


@pytest.mark.slow
def test_other_parameters_are_another_file(counter: Path) -> None:
    for most, limit in (("1", "3"), ("2", "3"), ("1", "4"), ("1", "3")):
        assert main(["check", "counter.py", "-p", f"most={most}", "-p", f"limit={limit}", "-q"]) == 1
    assert main(["check", "counter.py", "-p", "limit=3", "-p", "most=1", "-q"]) == 1
    names = {"counter-small-limit=3-most=1", "counter-small-limit=3-most=2", "counter-small-limit=4-most=1"}
    assert saved() == {f"{name}.itf.json" for name in names}
    for name in saved():
        assert main(["replay", f".plait/{name}", "-q"]) == 0


def test_names_that_do_not_fit_get_a_digest() -> None:
    long = [default_trace_path("m", "p", {"text": "x" * 300 + end}) for end in "ab"]
    odd = [default_trace_path("m", "p", {"text": text}) for text in ("a/b", "a b", "a-b")]
    assert len({*long, *odd}) == 5
    assert all(len(path.name) < 120 and path.parent == Path(".plait") for path in (*long, *odd))


def test_the_folder_ignores_itself(counter: Path) -> None:
    assert main(["check", "counter.py", "-p", "most=1", "-q"]) == 1
    assert Path(".plait/.gitignore").read_text() == "*\n"
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q"], check=True)
        status = subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
        assert ".plait" not in status


@pytest.mark.parametrize("where", ["inside", "elsewhere"])
def test_a_trace_replays_from_any_folder(
    counter: Path, monkeypatch: pytest.MonkeyPatch, where: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert main(["check", "counter.py", "-p", "most=1", "-q"]) == 1
    file = (counter.parent / ".plait" / "counter-small-most=1.itf.json").resolve()
    folder = counter.parent / "sub" if where == "inside" else tmp_path_factory.mktemp("other")
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    # Another model of the same name in the current folder is not the model of the trace.
    (folder / "counter.py").write_text(counter.read_text().replace("def tick", "def tack"))
    forget(counter.resolve())
    assert main(["replay", str(file), "-q"]) == 0


def test_a_module_replays_from_any_folder(
    counter: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    package = counter.parent / "wares"
    package.mkdir()
    (package / "__init__.py").touch()
    counter.rename(package / "counting.py")
    assert main(["check", "wares.counting:counter", "-p", "most=1", "-q"]) == 1
    file = (counter.parent / ".plait" / "counter-small-most=1.itf.json").resolve()
    monkeypatch.chdir(tmp_path_factory.mktemp("other"))
    for name in [name for name in sys.modules if name.startswith("wares")]:
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(counter.parent)])
    assert main(["replay", str(file), "-q"]) == 0


def test_the_project_can_move(counter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = counter.parent / "project"
    project.mkdir()
    counter.rename(project / "counter.py")
    monkeypatch.chdir(project)
    assert main(["check", "counter.py", "-p", "most=1", "-q"]) == 1
    monkeypatch.chdir(counter.parent)
    project.rename(counter.parent / "moved")
    assert main(["replay", "moved/.plait/counter-small-most=1.itf.json", "-q"]) == 0
