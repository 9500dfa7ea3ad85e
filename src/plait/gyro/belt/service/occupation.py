"""One supervisor for each server of a folder: a second one would start the server again, and overwrite the settings."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from plait.kernel.errors import UsageError


@contextmanager
def occupied(folder: Path, servers: Sequence[int], *, alone: bool = False) -> Iterator[None]:
    """Lock servers of a folder; `alone`: no other supervisor may use the folder. The locks end with this process."""
    with ExitStack() as stack:
        for name, exclusive in [("folder.lock", alone), *((f"server-{n}.lock", True) for n in servers)]:
            file = stack.enter_context((folder / name).open("a"))
            try:
                fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"--folder: another plait gyro serve uses {folder}",
                    hint="stop it first, or give a server that joins a --folder of its own",
                ) from None
        yield
