"""What a server process is told: one file for the whole cluster, and the number of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from plait.gyro.belt.routing import Route
from plait.kernel.errors import UsageError


class Settings(msgspec.Struct, frozen=True):
    """A cluster."""

    application: str
    routes: dict[str, Route]
    schema: str
    """DDL, and the rows that every server begins with."""
    urls: list[str]
    folder: str
    db: Literal["sqlite", "postgresql"] = "sqlite"
    dsns: list[str] = []
    """Where the DBMS of each server is, if the servers do not open it by themselves: DSNs of PostgreSQL."""
    log: str = "embedded"
    """`embedded`, or `etcd:URL`."""
    secret: str = ""
    host: str = "127.0.0.1"
    idle: float = 0.25
    lost: float = 3.0
    limit: int = 1_048_576
    """Bytes of a request at most."""
    wait: float = 30.0
    """Seconds that a global operation waits for the token at most."""
    threads: int = 8
    keep: float = 3600.0
    """Seconds that replies are kept for requests that come again."""
    delays: list[list[float]] = []
    """Seconds that a message between two servers takes, in addition, to simulate sites that are far apart."""

    @property
    def servers(self) -> int:
        return len(self.urls)

    def save(self) -> Path:
        """Write the file; it has the secret, so only its owner may read it."""
        file = Path(self.folder) / "settings.json"
        file.touch(mode=0o600)
        file.chmod(0o600)
        file.write_bytes(msgspec.json.encode(self))
        return file


def load_settings(file: Path) -> Settings:
    """Read the file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="start the servers with plait gyro serve") from None
