"""Connections of a client with threads: one for each thread and server."""

from __future__ import annotations

import itertools
import socket
import ssl
import threading
import urllib.parse
from collections import deque
from collections.abc import Sequence

from plait.gyro.belt.http import TlsContext
from plait.gyro.belt.wire.frames import NUMBERS, PREAMBLE, Replies, request

Response = tuple[int, bytes]
"""Status and body."""
_CHUNK = 1 << 16
_MOST, _LARGEST = 64, 32_768
"""So many requests, and bytes of requests, may be on their way. Buffers of the kernel hold these, even while the server
takes none because this client does not read its replies."""


class NoFramesError(OSError):
    """The server, or a proxy before it, speaks only HTTP."""


class Link:
    """One server, with one connection per thread."""

    def __init__(self, url: str, *, timeout: float = 5.0, tls: TlsContext | None = None) -> None:
        parts = urllib.parse.urlsplit(url)
        self.url = url.rstrip("/")
        self._tls = (tls or ssl.create_default_context) if parts.scheme == "https" else None
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or (443 if self._tls else 80)
        self._timeout = timeout
        self._mine = threading.local()
        self._made: list[Line] = []

    def call(self, operation: str, body: bytes) -> Response:
        """Send a call. OSError: there is no answer, and the server may or may not have got it."""
        return self.calls([(operation, body)])[0]

    def calls(self, requests: Sequence[tuple[str, bytes]]) -> list[Response]:
        """Send several calls without waiting. OSError: some have no answer."""
        line: Line | None = getattr(self._mine, "line", None)
        fresh = line is None
        while True:
            if line is None:
                line = self._connect()
            try:
                return line.exchange(requests)
            except (OSError, ValueError) as error:
                self._drop(line)
                line = None
                if isinstance(error, ValueError):
                    raise NoFramesError(f"{self.url}: {error}") from None
                if fresh or isinstance(error, TimeoutError):
                    raise OSError(f"{self.url}: {error}") from None
                fresh = True  # the server closed a kept connection: try a new one

    def _connect(self) -> Line:
        try:
            plain = socket.create_connection((self._host, self._port), self._timeout)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made = self._tls().wrap_socket(plain, server_hostname=self._host) if self._tls is not None else plain
        except OSError as error:
            raise OSError(f"{self.url}: {error}") from None
        line = self._mine.line = Line(made)
        self._made.append(line)
        return line

    def _drop(self, line: Line) -> None:
        line.socket.close()
        self._mine.line = None
        if line in self._made:
            self._made.remove(line)

    def close(self) -> None:
        """Close the connections of all threads."""
        for line in self._made:
            line.socket.close()
        self._made.clear()


class Line:
    """One connection."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._numbers = itertools.count()
        self._replies = Replies()
        self._greeting = PREAMBLE

    def exchange(self, requests: Sequence[tuple[str, bytes]]) -> list[Response]:
        """Send requests, and wait for all replies."""
        found: list[Response | None] = [None] * len(requests)
        places: dict[int, tuple[int, int]] = {}
        """The place in `requests` and the size of each request without a reply."""
        left = deque(enumerate(requests))
        size = 0
        while left or places:
            out = [self._greeting]
            while left and (not places or (len(places) < _MOST and size + len(left[0][1][1]) < _LARGEST)):
                place, (operation, body) = left.popleft()
                number = next(self._numbers) % NUMBERS
                out.append(request(number, operation.encode(), body))
                places[number] = place, len(out[-1])
                size += len(out[-1])
            self._greeting = b""
            if data := b"".join(out):
                self.socket.sendall(data)
            data = self.socket.recv(_CHUNK)
            if not data:
                raise ConnectionResetError("the server closed the connection")
            for number, status, body in self._replies.feed(data):
                if number not in places:
                    raise ConnectionResetError(f"an unexpected reply: {status} {body[:200]!r}")
                place, taken = places.pop(number)
                size -= taken
                found[place] = status, body
        return found  # type: ignore[return-value]
