"""Files and folders that only their owner can read: databases, log, settings, secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UMASK = 0o077
_BESIDE = ("", "-wal", "-shm", "-journal")
"""SQLite keeps these files beside a database. New ones get the permissions of the database."""


@contextmanager
def private_umask() -> Iterator[None]:
    """Files that this process creates are for their owner only."""
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)


def private_folder(folder: Path) -> Path:
    """Make a folder for its owner only. An existing one becomes private."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def private_file(file: Path) -> Path:
    """Make the file of a database for its owner only, and the files beside it."""
    file.touch(mode=0o600)
    for ending in _BESIDE:
        if (each := file.with_name(file.name + ending)).exists():
            each.chmod(0o600)
    return file
