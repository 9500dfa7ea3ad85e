"""The connection of a client with asyncio to one server. All calls share it: none waits for the reply of another."""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.parse
from typing import Any, cast

from plait.gyro.belt.http import TlsContext
from plait.gyro.belt.wire.frames import NUMBERS, PREAMBLE, Replies, request
from plait.gyro.belt.wire.link import NoFramesError, Response

_TICK = 1.0
"""How often old requests are looked for, in seconds."""


class Stream:
    """One server. It connects when it is needed, and again when the connection was lost."""

    def __init__(self, url: str, *, timeout: float, tls: TlsContext | None = None) -> None:
        parts = urllib.parse.urlsplit(url)
        self.url = url.rstrip("/")
        self._tls = (tls or ssl.create_default_context) if parts.scheme == "https" else None
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or (443 if self._tls else 80)
        self._timeout = timeout
        self._pipe: Pipe | None = None
        self._connecting = asyncio.Lock()

    async def call(self, operation: str, body: bytes) -> Response:
        """Send a call. OSError: there is no answer, and the server may or may not have got it."""
        pipe = self._pipe
        if pipe is None or pipe.closed:
            pipe = await self._connect()
        return await pipe.send(operation, body)

    async def _connect(self) -> Pipe:
        async with self._connecting:
            if self._pipe is not None and not self._pipe.closed:
                return self._pipe  # another call has connected
            tls: dict[str, Any] = {"ssl": self._tls()} if self._tls is not None else {}
            loop = asyncio.get_running_loop()
            made = loop.create_connection(lambda: Pipe(self.url, self._timeout), self._host, self._port, **tls)
            try:
                _, pipe = await asyncio.wait_for(made, self._timeout)
            except OSError as error:
                raise OSError(f"{self.url}: {error}") from None
            self._pipe = pipe
            return pipe

    def close(self) -> None:
        """Close the connection."""
        if self._pipe is not None:
            self._pipe.close()


class Pipe(asyncio.Protocol):
    """One connection."""

    def __init__(self, url: str, timeout: float) -> None:
        self.closed = False
        self._url = url
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._replies = Replies()
        self._waiting: dict[int, tuple[asyncio.Future[Response], float]] = {}
        """Requests without a reply, and when they were sent, in this order."""
        self._last = 0
        self._out: list[bytes] = []
        self._transport: asyncio.Transport
        self._ticking = self._loop.call_later(_TICK, self._tick)

    def send(self, operation: str, body: bytes) -> asyncio.Future[Response]:
        """Send a request, together with others that come at the same time."""
        future: asyncio.Future[Response] = self._loop.create_future()
        self._last = (self._last + 1) % NUMBERS
        self._waiting[self._last] = future, time.monotonic()
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(request(self._last, operation.encode(), body))
        return future

    def _flush(self) -> None:
        out, self._out = self._out, []
        if not self.closed:
            self._transport.write(b"".join(out))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(PREAMBLE)

    def data_received(self, data: bytes) -> None:
        """Take replies."""
        try:
            for number, status, body in self._replies.feed(data):
                future, _ = self._waiting.pop(number, (None, 0.0))
                if future is not None and not future.done():
                    future.set_result((status, body))
        except ValueError as error:
            self._fail(NoFramesError(f"{self._url}: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """All requests without a reply fail."""
        self._fail(OSError(f"{self._url}: {exc or 'the server closed the connection'}"))

    def _fail(self, error: OSError) -> None:
        self.closed = True
        self._ticking.cancel()
        waiting, self._waiting = self._waiting, {}
        for future, _ in waiting.values():
            if not future.done():
                future.set_exception(error)
        self._transport.close()

    def _tick(self) -> None:
        """Close the connection if a request gets no reply."""
        self._ticking = self._loop.call_later(_TICK, self._tick)
        for _, since in self._waiting.values():
            if time.monotonic() - since > self._timeout:
                self._fail(OSError(f"{self._url}: no answer within {self._timeout:g} s"))
            return  # the others are younger

    def close(self) -> None:
        """Close the connection."""
        self._fail(OSError(f"{self._url}: the client closed the connection"))
