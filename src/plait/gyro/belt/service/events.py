"""Log lines of a server on stderr: text for people, or one JSON object per line for machines.

A JSON line has the keys time, level, server, event, message and fields. `event` is a fixed name, and `fields` has the
numbers of the message. Secrets never appear in a line: the secret of the cluster, and passwords in connection strings.
"""

from __future__ import annotations

import datetime
import logging
import re
import sys
import urllib.parse
from collections.abc import Sequence
from typing import Any, Literal, TextIO

import msgspec

from plait.kernel.extras import needs

LogFormat = Literal["text", "json"]
logger = logging.getLogger("plait.gyro")
_PASSWORDS = (
    (re.compile(r"(?i)(\bpassword\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)"), r"\1***"),
    (re.compile(r"(\w://[^:/@\s]*:)[^/@\s]+@"), r"\1***@"),
)
_SHORTEST = 4
"""Shorter values are not looked for, because they occur in ordinary words."""


def event(name: str, /, **fields: Any) -> dict[str, Any]:
    """The `extra` of a log call: the name of the event, and its fields."""
    return {"event": name, "fields": fields}


class Lines(logging.Formatter):
    """Formats records as text or as JSON."""

    def __init__(self, form: LogFormat, *, server: int | None = None, secrets: Sequence[str] = ()) -> None:
        super().__init__("%(message)s")
        self._form = form
        self._server = server
        self._secrets = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """One line, or the lines of a text with a traceback."""
        if self._form == "text":
            return self._redacted(super().format(record))
        line = {
            "time": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "server": self._server,
            "event": getattr(record, "event", "message"),
            "message": self._redacted(record.getMessage()),
            "fields": {name: self._plain(value) for name, value in getattr(record, "fields", {}).items()},
        }
        if record.exc_info:
            line["traceback"] = self._redacted(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()

    def _plain(self, value: Any) -> Any:
        return value if isinstance(value, (bool, int, float)) or value is None else self._redacted(str(value))

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        for pattern, instead in _PASSWORDS:
            text = pattern.sub(instead, text)
        return text


def configure(
    form: LogFormat, *, server: int | None = None, secrets: Sequence[str] = (), stream: TextIO | None = None
) -> logging.Handler:
    """Send the log lines of this process to stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(form, server=server, secrets=secrets))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    return handler


def passwords(dsns: Sequence[str]) -> list[str]:
    """The passwords in connection strings of PostgreSQL and MariaDB."""
    given = [dsn for dsn in dsns if dsn]
    if not given:
        return []
    with needs("serve"):
        import psycopg
    found = []
    for dsn in given:
        if dsn.startswith(("mariadb://", "mysql://")):
            written = urllib.parse.urlsplit(dsn).password or ""
            found += [each for each in {written, urllib.parse.unquote(written)} if each]
            continue
        try:
            password = psycopg.conninfo.conninfo_to_dict(dsn).get("password")
        except psycopg.Error:
            continue
        if password:
            found.append(str(password))
    return found
