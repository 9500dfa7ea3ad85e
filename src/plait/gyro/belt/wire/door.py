"""The side of the server: connections that begin with the preamble of `frames.py` carry frames, all others HTTP.

Both come in at one port, so they have the same TLS, and a client needs one address.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, cast

from plait.gyro.belt.routing import RequestError
from plait.gyro.belt.wire.calls import Answer, Calls
from plait.gyro.belt.wire.frames import LENGTH, LONGEST, MORE, PREAMBLE, REPLY, REQUEST
from plait.kernel.extras import needs

with needs("serve"):
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Wire(asyncio.Protocol):
    """A connection that carries frames. `connections` are those that the server waits for when it ends."""

    def __init__(self, calls: Calls, connections: set[Any]) -> None:
        self._calls = calls
        self._connections = connections
        self._limit = calls.settings.limit
        self._rest = b""
        self._begun = False
        self._skipped = 0
        """Bytes of a request that is too large, which are still to come."""
        self._waiting = 0
        """Requests without a reply."""
        self._out: list[bytes] = []
        self._ending = False
        self._transport: asyncio.Transport
        self._client = ""

    # -- the connection ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)  # uvloop has classes of its own
        self._client = str((transport.get_extra_info("peername") or ("",))[0])
        self._connections.add(self)
        self._write(PREAMBLE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection. Operations that execute go on, and their replies are dropped."""
        self._ending = True
        self._connections.discard(self)

    def shutdown(self) -> None:
        """The server ends: take no more requests, and close the connection after the last reply."""
        self._ending = True
        if self._transport.is_closing():
            return
        self._transport.pause_reading()
        if not self._waiting:
            self._flush()
            self._transport.close()

    def pause_writing(self) -> None:
        """The client does not read its replies: take no more of its requests."""
        if not self._ending:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The client has read its replies."""
        if not self._ending:
            self._transport.resume_reading()

    # -- requests ----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take requests."""
        if self._skipped:
            self._skipped, data = max(self._skipped - len(data), 0), data[self._skipped :]
        if self._rest:
            data = self._rest + data
        place = 0
        if not self._begun:
            if len(data) < len(PREAMBLE) and PREAMBLE.startswith(data):
                self._rest = data
                return
            if not data.startswith(PREAMBLE):
                self._refuse(0, 400, "this protocol, or its version, is not known", f"begin with {PREAMBLE!r}")
                self.shutdown()
                return
            self._begun, place = True, len(PREAMBLE)
        end = len(data)
        while end - place >= REQUEST.size and not self._ending:
            length, number, name = REQUEST.unpack_from(data, place)
            stop = place + LENGTH + length
            if length < MORE + name:
                self._refuse(number, 400, "the length of the request is wrong", "see plait.gyro.belt.wire.frames")
                self.shutdown()
                return
            if length > MORE + name + self._limit:
                size = length - MORE - name
                self._refuse(number, 413, f"the request has {size} bytes", f"send at most {self._limit} bytes")
                self._skipped = max(stop - end, 0)
            elif stop > end:
                break
            else:
                begin = place + REQUEST.size
                self._call(number, data[begin : begin + name], data[begin + name : stop])
            place = stop
        self._rest = data[place:]

    def _call(self, number: int, operation: bytes, body: bytes) -> None:
        self._waiting += 1
        if (refused := self._calls.hasty(self._client)) is not None:
            self._reply(number, refused)
            return
        try:
            name = operation.decode()
        except UnicodeDecodeError:
            self._waiting -= 1
            self._refuse(number, 400, "the name of the operation is not UTF-8", f"use at most {LONGEST} bytes of UTF-8")
            return
        self._calls.answer(name, body, functools.partial(self._reply, number))

    # -- replies -----------------------------------------------------------------------------------------------------

    def _refuse(self, number: int, status: int, error: str, hint: str) -> None:
        self._waiting += 1
        self._reply(number, self._calls.problem(RequestError(status, error, hint)))

    def _reply(self, number: int, answer: Answer) -> None:
        self._waiting -= 1
        self._write(REPLY.pack(len(answer.body) + REPLY.size - LENGTH, number, answer.status) + answer.body)

    def _write(self, data: bytes) -> None:
        """Send bytes, together with others that are ready at the same time."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out and not self._transport.is_closing():
            self._transport.write(b"".join(out))
            if self._ending and not self._waiting:
                self._transport.close()


class Door(HttpToolsProtocol):
    """A connection that may carry either protocol. Its first byte tells which."""

    calls: Calls
    _known = False

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._known or data[:1] != PREAMBLE[:1]:
            self._known = True
            super().data_received(data)
            return
        wire = Wire(self.calls, self.connections)
        self.connections.discard(self)
        self.transport.set_protocol(wire)
        wire.connection_made(self.transport)
        wire.data_received(data)


def door(calls: Calls) -> type[Door]:
    """The class of the connections of a server, for uvicorn."""
    return type("Door", (Door,), {"calls": calls})
