"""The settings of a cluster: one file, which every server process reads."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from plait.gyro.belt.routing import Route
from plait.kernel.errors import UsageError


class Settings(msgspec.Struct, frozen=True):
    """The settings of a cluster."""

    application: str
    routes: dict[str, Route]
    schema: str
    """DDL, and the initial rows of every server."""
    urls: list[str]
    folder: str
    db: Literal["sqlite", "postgresql"] = "sqlite"
    dsns: list[str] = []
    """The DSN of each server's PostgreSQL; empty for SQLite."""
    log: str = "embedded"
    """`embedded`, or `etcd:URL`."""
    secret: str = ""
    host: str = "127.0.0.1"
    idle: float = 0.25
    """How long an unused token stays at a server, in seconds."""
    lost: float = 3.0
    """A server that gets no token for this time, in seconds, asks for a new one."""
    limit: int = 1_048_576
    """Maximal size of a request, in bytes."""
    wait: float = 30.0
    """Maximal time that a global operation waits for the token, in seconds."""
    threads: int = 8
    keep: float = 3600.0
    """How long replies are kept for repeated requests, in seconds."""
    delays: list[list[float]] = []
    """Additional delay of messages between servers, in seconds: `delays[from][to]`. It simulates distant sites."""

    @property
    def servers(self) -> int:
        return len(self.urls)

    def save(self) -> Path:
        """Write the file. It contains the secret, so only its owner may read it."""
        file = Path(self.folder) / "settings.json"
        file.touch(mode=0o600)
        file.chmod(0o600)
        file.write_bytes(msgspec.json.encode(self))
        return file


def load_settings(file: Path) -> Settings:
    """Read the settings from a file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="start the servers with `plait gyro serve`") from None
