"""The files that a run opened: their content after the run, and their restoration.

The recorder (`recorder/files.c`) lists the files and copies the old content of files that the program may write.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from plait.kernel.errors import UsageError

LIST = "files"
KEPT = "written"


class Opened(NamedTuple):
    """A file that the program opened, renamed or removed."""

    writes: bool
    site: int
    """The site of the call; 0 if a library opened the file before the first call."""
    old: str | None
    """The name of the copy of its old content, in the folder of the trace. None: there was no such file."""
    path: Path


def opened(folder: Path) -> list[Opened]:
    """The files that a run opened, in the order of the calls."""
    try:
        entries = (folder / LIST).read_bytes().split(b"\0")
    except FileNotFoundError:
        return []
    found = []
    for entry in entries:
        parts = entry.decode(errors="surrogateescape").split(" ", 3)
        if len(parts) == 4:
            mode, site, old, path = parts
            where = Path(_normal(path))
            found.append(Opened(mode == "w", int(site), None if old == "-" else old, where))
    return found


def _normal(path: str) -> str:
    """The path without `.` and empty parts. `..` stays: it may follow a symbolic link."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def written(folder: Path) -> dict[Path, str | None]:
    """The files that a run may have written, with the copies of their old content."""
    found: dict[Path, str | None] = {}
    for file in opened(folder):
        if file.writes:
            found.setdefault(file.path, file.old)
    return found


def keep(folder: Path, base: Path) -> dict[str, str | None]:
    """Copy the written files to the folder of the trace: their names, and the names of the copies (None: removed).

    Names are relative to the working folder of the run, if the file is inside of it.
    """
    found: dict[str, str | None] = {}
    for number, path in enumerate(written(folder)):
        name = str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
        copy = None
        try:
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                continue  # a device or a pipe
            if path.exists():
                (folder / KEPT).mkdir(exist_ok=True)
                copy = f"{KEPT}/{number}"
                shutil.copyfile(path, folder / copy)
        except OSError:
            continue  # after a fault, the name may be any string
        found[name] = copy
    return found


def restore(folder: Path) -> None:
    """Give all files that a run wrote the content that they had before the run."""
    for path, old in written(folder).items():
        try:
            if old is not None:
                shutil.copyfile(folder / old, path)
            elif stat.S_ISREG(path.lstat().st_mode):
                path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            if old is not None:
                raise UsageError(
                    f"{path}: the content from before the run cannot be restored: {error.strerror}",
                    hint=f"its copy is {folder / old}",
                ) from None


def mirror(base: Path, target: Path, names: Iterable[str]) -> None:
    """Make a folder with links to the content of `base`, and with own copies of the files `names`.

    So parallel runs can write these files.
    """
    target.mkdir(parents=True)
    below: dict[str, list[str]] = {}
    for name in names:
        head, _, rest = name.partition("/")
        below.setdefault(head, []).append(rest)
    for entry in base.iterdir():
        if entry.name not in below:
            (target / entry.name).symlink_to(entry)
    for head, rests in below.items():
        here = base / head
        if here.is_dir():
            mirror(here, target / head, [rest for rest in rests if rest])
        elif here.is_file():
            shutil.copy(here, target / head)
