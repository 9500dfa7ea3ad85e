"""The oracle of a campaign: whether the results of a faulty run are those of the golden run.

The results are the standard output, the standard error, and the content of all files that the program wrote. By
default they must be equal. With a tolerance, numbers in them may differ a little. A checker of the user decides instead
of both.
"""

from __future__ import annotations

import importlib.util
import math
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from plait.epa.run import RUN_FILE, Run
from plait.kernel.errors import UsageError

_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)


class Results(msgspec.Struct, frozen=True):
    """What a run produced."""

    code: int
    """The exit code; negative for a signal."""
    stdout: bytes
    stderr: bytes
    files: dict[str, bytes | None]
    """The content of the written files; None for a removed file. For a checker, also for what only the golden run wrote."""

    def named(self) -> dict[str, bytes | None]:
        """All results by name."""
        return {"stdout": self.stdout, "stderr": self.stderr, **{f"file {name}": at for name, at in self.files.items()}}


def results(folder: Path) -> Results:
    """The results of a run, from the folder of its trace."""

    def content(name: str) -> bytes:
        path = folder / name
        return path.read_bytes() if path.exists() else b""

    run = msgspec.json.decode(content(RUN_FILE), type=Run) if (folder / RUN_FILE).exists() else None
    files = run.files if run else {}
    kept = {name: None if copy is None else content(copy) for name, copy in files.items()}
    return Results(run.code if run else 0, content("stdout"), content("stderr"), kept)


def close(golden: bytes, other: bytes, tolerance: float) -> bool:
    """Whether two texts are equal except for numbers that differ at most by a relative tolerance.

    >>> close(b"sum 1.0000 of 3", b"sum 1.0001 of 3", 1e-3), close(b"sum 1.0", b"sum 1.1", 1e-3)
    (True, False)
    >>> close(b"sum 1.0", b"all 1.0", 1e-3)
    False
    """
    if golden == other:
        return True
    ours, theirs = _NUMBER.findall(golden), _NUMBER.findall(other)
    if len(ours) != len(theirs) or _NUMBER.split(golden) != _NUMBER.split(other):
        return False
    return all(_near(float(one), float(two), tolerance) for one, two in zip(ours, theirs, strict=True))


def _near(golden: float, other: float, tolerance: float) -> bool:
    if math.isnan(golden) or math.isnan(other):
        return math.isnan(golden) and math.isnan(other)
    if math.isinf(golden) or math.isinf(other):
        return golden == other
    return golden == other or abs(golden - other) <= tolerance * abs(golden)


class Oracle:
    """Decides whether the results of a faulty run are correct."""

    def __init__(
        self, *, tolerance: float | None = None, checker: Path | None = None, ignore: Sequence[str] = ()
    ) -> None:
        if tolerance is not None and not 0 <= tolerance < math.inf:
            raise UsageError(f"the tolerance {tolerance} is not a relative error", hint="for example 1e-6")
        self.tolerance, self.ignore = tolerance, frozenset(ignore)
        self.checker = _load(checker) if checker is not None else None
        self.path = checker

    def differences(self, golden: Results, faulty: Results) -> list[str]:
        """The names of wrong results: stdout, stderr, file NAME; or what the checker says. None: they are correct."""
        if self.checker is not None:
            return self._ask(golden, faulty)
        one, other = golden.named(), faulty.named()
        return [
            name
            for name in sorted(one.keys() | other.keys())
            if name.removeprefix("file ") not in self.ignore and not self._same(one.get(name), other.get(name))
        ]

    def _same(self, golden: bytes | None, other: bytes | None) -> bool:
        if self.tolerance is None or golden is None or other is None:
            return golden == other
        return close(golden, other, self.tolerance)

    def _ask(self, golden: Results, faulty: Results) -> list[str]:
        assert self.checker is not None
        missing = dict.fromkeys(golden.files)
        try:
            said = self.checker(golden, msgspec.structs.replace(faulty, files={**missing, **faulty.files}))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise UsageError(
                f"--oracle: check raised {type(error).__name__}: {error} ({where.filename}:{where.lineno})",
                hint="check must accept any output of a faulty run, also none",
            ) from None
        if said is True or said is None:
            return []
        if said is False:
            return ["the checker refuses the results"]
        if isinstance(said, str):
            return [said]
        raise UsageError(
            f"--oracle: check returned {said!r}", hint="return True (correct), False, or a text that says what is wrong"
        )


def _load(file: Path) -> Callable[[Results, Results], object]:
    """The function `check` of a Python file."""
    spec = importlib.util.spec_from_file_location("plait_epa_oracle", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise UsageError(f"--oracle: {file} is not a Python file", hint="give a file with a function check")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(
            f"--oracle: {file} cannot be loaded: {type(error).__name__}: {error}", hint="run it with python to see why"
        ) from None
    found = getattr(module, "check", None)
    if not callable(found):
        raise UsageError(
            f"--oracle: {file} has no function check",
            hint="write def check(golden, faulty): …; both have code, stdout, stderr and files",
        )
    return found  # type: ignore[no-any-return]
