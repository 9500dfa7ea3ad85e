"""What a client knows of a cluster: its servers and routes, and what the answer of a server means."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from plait.gyro.belt.http import TlsContext, ask
from plait.gyro.belt.routing import RequestError, Route, check_names, place
from plait.gyro.belt.wire.frames import LONGEST
from plait.kernel.errors import PlaitError, UsageError

_PAUSE = 0.02
_LONGEST_PAUSE = 0.5
_AGAIN = 5.0
"""The servers and routes are fetched again after a redirect, but not more often than this, in seconds."""
_DOUBT = 0.05
"""If a call waits for longer than this, in seconds, its server may have been removed from the cluster."""


class CallError(PlaitError):
    """A server refused a call, or the operation raised an exception."""

    def __init__(self, message: str, *, hint: str | None = None, status: int = 0, raised: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.raised = raised
        """The name of the exception that the function raised."""


class Reply(msgspec.Struct, frozen=True):
    """A reply, and the position of its operation in the serial order."""

    reply: Any
    server: int
    seq: int
    position: int
    wrote: bool = False
    repeated: bool = False


class Cluster(msgspec.Struct):
    """The servers and routes, as `GET /cluster` tells them."""

    urls: list[str]
    routes: dict[str, Route]
    frames: int = 0
    """The version of the binary protocol that the servers speak; 0: only HTTP."""
    configuration: int = 0
    """The number of the configuration of the cluster. Servers and routes may change with it."""

    def server(self, operation: str, parameters: dict[str, Any], near: int) -> int:
        """The server to ask first. It is only a hint: this server may redirect the call."""
        route = self.routes.get(operation)
        near %= len(self.urls)
        if route is None:
            return near  # the server answers with the list of operations
        try:
            check_names(route, parameters, [p for p in route.parameters if p not in route.keys])
            return place(route, parameters, len(self.urls), near)[0]
        except RequestError:
            return near  # the server answers with the error


def fetch(urls: str | Sequence[str], *, tls: TlsContext | None = None, above: int = -1) -> Cluster:
    """Ask the servers in turn, until one knows a configuration with a higher number than `above`. If none does, the
    first answer counts."""
    first, reason = None, ""
    for known in [urls] if isinstance(urls, str) else urls:
        try:
            status, body = ask(known, "/cluster", tls=tls, timeout=5.0)
            found = msgspec.json.decode(body, type=Cluster) if status == 200 else None
        except (OSError, msgspec.DecodeError) as error:
            reason = f": {error}"
            continue
        if found is not None and found.configuration > above:
            return found
        first = first or found
    if first is None:
        raise UsageError(f"no server answers at {urls}{reason}", hint="start servers with `plait gyro serve`")
    return first


_REPLIES = msgspec.json.Decoder(Reply)
_CONTENTS = msgspec.json.Decoder(dict[str, Any])
_BUSY = (429, 502, 503, 504)
"""Proxies answer with 502 and 504 for a server that does not. The call has a name, so it can be sent again."""


class Sending:
    """A call on its way: where to send it next, and when. It has one name, so it is executed once."""

    def __init__(self, operation: str, parameters: dict[str, Any], request: str, server: int, patience: float) -> None:
        if len(operation.encode()) > LONGEST:
            raise CallError(f"no operation {operation[:40]}…", hint="use the name of an operation", status=404)
        self.operation, self.parameters = operation, parameters
        self.body = msgspec.json.encode({"request": request or uuid.uuid4().hex, "parameters": parameters})
        self.server = server
        self.wait = 0.0
        """Seconds to wait before it is sent again."""
        self.moved = ""
        """The URL of the server that it was redirected to; empty if the last answer was no redirect."""
        self.configuration = 0
        """The newest configuration that an answer has named."""
        self._deadline = time.monotonic() + patience
        self._pause = _PAUSE

    def answered(self, status: int, answer: bytes) -> Reply | None:
        """The reply; None: it must be sent again. Raises CallError if it was refused, or the operation raised."""
        try:
            if status == 200:
                return _REPLIES.decode(answer)
            content = _CONTENTS.decode(answer)
        except msgspec.DecodeError:  # something else answers, a proxy for example
            text = " ".join(answer[:200].decode(errors="replace").split())
            content = {
                "error": f"server {self.server} does not answer; what answers at its URL says, with status {status}: {text}",
                "hint": "give the URL of a server of `plait gyro serve`",
            }
        self.wait, self.moved = 0.0, ""
        if status == 307 and "map" in content and "url" in content:
            self.server = int(content["map"])
            self.moved = str(content["url"]).partition("/call/")[0]
            self.configuration = max(self.configuration, int(content.get("configuration", 0)))
            return None
        now = time.monotonic()
        if status in _BUSY and now + self._pause < self._deadline:
            self.wait = max(self._pause, min(float(content.get("retry_after", 0)), self._deadline - now))
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            return None
        raise CallError(
            str(content.get("error", content)),
            hint=content.get("hint"),
            status=status,
            raised=content.get("raised", ""),
        )

    def unanswered(self, error: OSError) -> Reply | None:
        """There was no answer: as `answered` with 503."""
        text = {"error": f"server {self.server} does not answer: {error}"}
        return self.answered(503, msgspec.json.encode(text))


class Freshness:
    """When to fetch the servers and routes again."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def stale(self, cluster: Cluster, sending: Sending) -> bool:
        """Whether a redirect, or a server that does not answer, may be the sign of a change."""
        since = time.monotonic() - self._last
        if sending.moved:
            unknown = sending.server >= len(cluster.urls) or cluster.urls[sending.server] != sending.moved
            due = unknown or sending.configuration > cluster.configuration or since > _AGAIN
        else:
            due = sending.wait > _DOUBT and since > _LONGEST_PAUSE
        if due:
            self._last = time.monotonic()
        return due


def renewed(cluster: Cluster, sending: Sending, near: int, *, tls: TlsContext | None) -> Cluster:
    """The servers and routes of now. If they have changed, the call goes to its new server."""
    try:
        found = fetch([sending.moved] * bool(sending.moved) + cluster.urls, tls=tls, above=cluster.configuration)
    except UsageError:
        return cluster  # another server tells, the next time
    if found.configuration < cluster.configuration:
        return cluster
    if found.configuration > cluster.configuration and not sending.moved:
        sending.server = found.server(sending.operation, sending.parameters, near)
    return found
