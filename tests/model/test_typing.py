"""What mypy and pyright see of a model: the fields of a role, and the message of a handler and of its guard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plait import Message, ModelError, Process, check
from tests.model.typed_model import system

HERE = Path(__file__).parent
GOOD, BAD = HERE / "typed_model.py", HERE / "mistyped_model.py.txt"  # no module: it cannot be imported


def mypy(file: Path, folder: Path) -> set[int]:
    """The lines with errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder), file.name]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return {int(line) for line in re.findall(rf"^{file.name}:(\d+): error:", done.stdout, re.MULTILINE)}


def pyright(file: Path, folder: Path) -> set[int]:
    """The lines with errors."""
    if shutil.which("node") is None:
        pytest.skip("pyright needs Node, which is not installed")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(file)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_type_checkers_know_models(checker: object, tmp_path: Path) -> None:
    assert callable(checker)
    marked = {n for n, line in enumerate(BAD.read_text(encoding="utf-8").splitlines(), 1) if "# error" in line}
    assert len(marked) == 9
    bad = tmp_path / "mistyped_model.py"
    shutil.copy(BAD, bad)
    assert checker(GOOD, tmp_path) == set()
    assert checker(bad, tmp_path) == marked


def test_the_typed_model_is_a_model() -> None:
    assert check(system(), workers=1).status == "holds"


@pytest.mark.parametrize("name", ["id", "status", "crashed", "inbox", "_hidden"])
def test_a_field_that_a_property_could_not_read_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match=rf"Bad\.{name}: this name is reserved"):
        type("Bad", (Process,), {"__annotations__": {name: int}, name: 0})
    assert type("Fine", (Message,), {"__annotations__": {"status": int}})
