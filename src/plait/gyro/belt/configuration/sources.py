"""Print the hashes of the source of an application: `python -m plait.gyro.belt.configuration.sources`.

A server runs this in a process of its own, because it has another version of the same modules.
"""

from __future__ import annotations

import sys
from types import ModuleType

import msgspec

from plait.gyro.belt.application import load
from plait.gyro.belt.version import sources
from plait.kernel.errors import PlaitError


def main() -> None:
    """Read the path, the operations and the schema of a web application as JSON, and write the hashes as JSON."""
    path, operations, web = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[str, list[str], str])
    output, sys.stdout = sys.stdout, sys.stderr  # the application may print
    try:
        found = sources(_load(path, web), operations)
    except PlaitError as error:
        found = {"error": error.message, "hint": error.hint or ""}
    output.buffer.write(msgspec.json.encode(found))
    output.flush()


def _load(path: str, web: str) -> ModuleType:
    if not web:
        return load(path)
    from plait.gyro.web.server import imported

    return imported(path, "sqlite", web)[1]


if __name__ == "__main__":
    main()
