"""The bytes of the binary protocol. Numbers are big endian.

Both sides begin with `PREAMBLE`: a zero byte, which no HTTP request begins with, a name and the version. Frames follow:

    request   length (4 bytes)   number (4)   length of the name (1)   name of the operation   body
    reply     length (4 bytes)   number (4)   status (2)               body

The length counts the bytes after it. The body is JSON, the same as of `POST /call/OPERATION`, and so is the status. A client
numbers its requests, and may send many without waiting. Replies have the number of their request, and any order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

PREAMBLE = b"\0plait\0\1"
REQUEST = struct.Struct(">IIB")
REPLY = struct.Struct(">IIH")
LENGTH = 4
"""The size of a length."""
NUMBERS = 1 << 32
"""Numbers of requests are smaller than this."""
LONGEST = 255
"""Maximal length of the name of an operation, in bytes."""
MORE = REQUEST.size - LENGTH
"""What the length of a request counts besides the name and the body."""


def request(number: int, operation: bytes, body: bytes) -> bytes:
    """A request.

    >>> request(7, b"add", b"{}")
    b'\\x00\\x00\\x00\\n\\x00\\x00\\x00\\x07\\x03add{}'
    """
    return REQUEST.pack(MORE + len(operation) + len(body), number, len(operation)) + operation + body


class Replies:
    """The replies in a stream of bytes."""

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """The replies that are complete now: number, status, body. ValueError: this is no server of this protocol.

        >>> replies = Replies()
        >>> list(replies.feed(PREAMBLE + bytes.fromhex("00000008 00000007 00c8")))
        []
        >>> list(replies.feed(b"{}" + bytes.fromhex("000000")))
        [(7, 200, b'{}')]
        """
        data = self._rest + data if self._rest else data
        place = 0
        if not self._begun:
            if not PREAMBLE.startswith(data[: len(PREAMBLE)]):
                raise ValueError(f"expected the binary protocol, got {data[:20]!r}")
            if len(data) < len(PREAMBLE):
                self._rest = data
                return
            self._begun, place = True, len(PREAMBLE)
        end = len(data)
        while end - place >= REPLY.size:
            length, number, status = REPLY.unpack_from(data, place)
            stop = place + LENGTH + length
            if stop > end:
                break
            yield number, status, data[place + REPLY.size : stop]
            place = stop
        self._rest = data[place:]
