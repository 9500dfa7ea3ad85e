"""A client that knows the partitioning: it calls the right server directly, and follows redirects."""

from __future__ import annotations

import time
import urllib.parse
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from plait.gyro.belt.http import Peer, ask
from plait.gyro.belt.routing import RequestError, Route, check_names, place
from plait.kernel.errors import PlaitError, UsageError


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


class Client:
    """Calls operations by name.

    Every request has a unique name. So the client can send it again if a server does not answer: it is executed once.
    """

    def __init__(
        self, url: str | Sequence[str], *, near: int = 0, patience: float = 30.0, timeout: float = 35.0
    ) -> None:
        self._near = near
        self._patience = patience
        self._decoder = msgspec.json.Decoder(Reply)
        found = None
        for known in [url] if isinstance(url, str) else url:
            try:
                status, body = ask(known, "/cluster")
            except OSError:
                continue
            if status == 200:
                found = msgspec.json.decode(body, type=_Cluster)
                break
        if found is None:
            raise UsageError(f"no server answers at {url}", hint="start servers with `plait gyro serve`")
        self.routes = found.routes
        self.peers = [Peer(u, timeout=timeout) for u in found.urls]

    def close(self) -> None:
        """Close the connections."""
        for peer in self.peers:
            peer.close()

    def call(self, operation: str, /, **parameters: Any) -> Any:
        """Call an operation; return its reply."""
        return self.send(operation, parameters).reply

    def send(self, operation: str, parameters: dict[str, Any], *, request: str = "", at: int | None = None) -> Reply:
        """Call an operation; return its reply and position. `at` is the number of the server to ask first."""
        body = msgspec.json.encode({"request": request or uuid.uuid4().hex, "parameters": parameters})
        server = self._server(operation, parameters) if at is None else at
        path = f"/call/{urllib.parse.quote(operation)}"
        deadline = time.monotonic() + self._patience
        pause = 0.02
        while True:
            try:
                status, answer = self.peers[server].request("POST", path, body, {"Content-Type": "application/json"})
            except OSError as error:
                status, answer = 503, msgspec.json.encode({"error": f"server {server} does not answer: {error}"})
            if status == 200:
                return self._decoder.decode(answer)
            content = msgspec.json.decode(answer)
            if status == 307:
                server = int(content["map"])
                continue
            if status == 503 and time.monotonic() + pause < deadline:
                time.sleep(pause)
                pause = min(2 * pause, 0.5)
                continue
            raise CallError(content["error"], hint=content.get("hint"), status=status, raised=content.get("raised", ""))

    def _server(self, operation: str, parameters: dict[str, Any]) -> int:
        route = self.routes.get(operation)
        if route is None:
            return self._near  # the server answers with the list of operations
        try:
            check_names(route, parameters, [p for p in route.parameters if p not in route.keys])
            return place(route, parameters, len(self.peers), self._near)[0]
        except RequestError:
            return self._near  # the server answers with the error


class _Cluster(msgspec.Struct):
    urls: list[str]
    routes: dict[str, Route]
