"""The settings of a cluster: one file, which every server process reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from plait.gyro.belt.routing import Route
from plait.gyro.belt.service.certificates import Tls
from plait.gyro.belt.service.events import LogFormat
from plait.gyro.belt.version import Content
from plait.gyro.sql.schema import Dialect
from plait.kernel.errors import UsageError

Dbms = Literal["sqlite", "postgresql", "mariadb"]
DIALECTS: dict[Dbms, Dialect] = {"sqlite": "sqlite", "postgresql": "postgres", "mariadb": "mysql"}
"""The dialect of the SQL of each DBMS."""


class Settings(msgspec.Struct, frozen=True):
    """The settings of a cluster."""

    application: str
    routes: dict[str, Route]
    """How to route operations: functions, or endpoints of a web application."""
    schema: str
    """DDL, and the initial rows of every server."""
    urls: list[str]
    folder: str
    db: Dbms = "sqlite"
    dsns: list[str] = []
    """The DSN of each server's DBMS; empty for SQLite."""
    recording: str = ""
    """The recording of a web application (`plait.gyro.web`); empty if the operations are functions."""
    log: str = "embedded"
    """`embedded`, or an address of etcd or NATS (see `logs/address.py`)."""
    fence: str = ""
    """With NATS: the address of the etcd that has the epochs."""
    replicate: Literal["none", "background", "acknowledged"] = "none"
    """Whether local updates are shipped to the log, and whether replies wait for this."""
    secret: str = ""
    log_format: LogFormat = "text"
    host: str = "127.0.0.1"
    tls: Tls | None = None
    """None: HTTP without encryption."""
    idle: float = 0.25
    """How long an unused token stays at a server, in seconds."""
    lost: float = 3.0
    """A server that gets no token for this time, in seconds, asks for a new one."""
    lag: int = 1000
    """A server that has more updates to apply is not ready."""
    limit: int = 1_048_576
    """Maximal size of a request, in bytes."""
    client_rate: float = 0.0
    """Maximal number of requests per second of one client address; 0: no limit."""
    rate: float = 0.0
    """Maximal number of requests per second at one server; 0: no limit."""
    queue: int = 1000
    """Maximal number of waiting operations at one server: global ones, and the same number of others."""
    proxies: list[str] = []
    """Addresses of proxies whose X-Forwarded-For header is believed."""
    wait: float = 30.0
    """Maximal time that a global operation waits for the token, in seconds."""
    threads: int = 8
    together: int = 64
    """Maximal number of read-only or local operations that execute in one transaction."""
    keep: float = 3600.0
    """How long replies are kept for repeated requests, in seconds."""
    delays: list[list[float]] = []
    """Additional delay of messages between servers, in seconds: `delays[from][to]`. It simulates distant sites."""

    analyzed: Content = Content()
    """The analysis and the schema, as the servers of a cluster must agree on them."""
    upgrade: bool = False
    """Whether servers may go on with other code than before."""
    older: list[int] = []
    """The servers that may start with an older copy of their database."""

    members: list[int] = []
    """The numbers of the servers of `urls`; empty if they are 0, 1, 2, …"""
    configuration: int = 0
    """The configuration of the cluster that these settings have (see `configuration/`)."""
    first: int = 0
    """The number of servers for which operations were classified, if it is another one than that of `urls`."""

    @property
    def servers(self) -> int:
        return len(self.urls)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the servers, in the order of the mapping of keys."""
        return self.members or list(range(len(self.urls)))

    def url(self, number: int) -> str:
        """The URL of a server."""
        return self.urls[self.numbers.index(number)]

    def rank(self, number: int) -> int:
        """The place of a server in the mapping of keys; 0 if it is not a member."""
        return self.numbers.index(number) if number in self.numbers else 0

    def save(self) -> Path:
        """Write the file. It contains the secret, so only its owner may read it."""
        file = Path(self.folder) / "settings.json"
        made = file.with_name(f"settings-{os.getpid()}.new")
        made.touch(mode=0o600)
        made.write_bytes(msgspec.json.encode(self))
        return made.replace(file)  # servers may read it at this moment


def load_settings(file: Path) -> Settings:
    """Read the settings from a file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="start the servers with `plait gyro serve`") from None
