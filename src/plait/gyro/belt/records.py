"""Records of the protocol: calls, outcomes, state updates with their position, and the token that carries them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The state update of a global operation, its position in the order of all updates, and its reply."""

    seq: int
    epoch: int
    turn: int
    holder: int
    """The server that executed it."""
    request: str
    operation: str
    arguments: bytes
    """JSON."""
    reply: bytes
    """JSON."""
    update: bytes
    """Row images, in the format of the DBMS."""
    chain: str = ""
    """A hash of this update and all updates before it (see `link`)."""


def link(before: str, entry: Entry) -> str:
    """The hash of a history: of the history before an update, and of the update. The empty history has an empty hash."""
    content = msgspec.msgpack.encode((before, msgspec.structs.replace(entry, chain="")))
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def chained(before: str, entries: Sequence[Entry]) -> list[Entry]:
    """Updates that follow a history, with their hashes."""
    found = []
    for entry in entries:
        before = link(before, entry)
        found.append(msgspec.structs.replace(entry, chain=before))
    return found


class ForkedError(Exception):
    """Updates do not follow the history that they are added to: the states of servers, or a server and the log, differ."""

    def __init__(self, seq: int) -> None:
        super().__init__(
            f"update {seq} does not follow the history here: the server and the log have different histories"
        )


def follow(before: str, entry: Entry) -> str:
    """The hash of a history and the update that is added to it. ForkedError: the update was made for another one."""
    if entry.chain != link(before, entry):
        raise ForkedError(entry.seq)
    return entry.chain


class Token(msgspec.Struct, frozen=True, array_like=True):
    """The right to execute global operations. It carries updates that some servers may not have applied yet."""

    epoch: int
    """The number of tokens issued so far. Of two tokens, the one with the lower epoch is invalid."""
    turn: int
    """How many times the token was passed in this epoch."""
    last: int
    """The seq of the last update in the log."""
    entries: list[Entry] = []
    hurry: int = 0
    """If an operation waits for the token: this many servers pass it on at once if they have no work."""


class Call(msgspec.Struct, frozen=True):
    """An operation: a transaction with concrete parameters, ready to execute."""

    request: str
    operation: str
    arguments: dict[str, Any]
    run: Callable[[Any], bytes]
    """Executes the operation on a connection; returns the reply as JSON."""

    def check_same(self, operation: str, arguments: bytes) -> None:
        """Raise an error if the name of this request was already used for a different request."""
        if (operation, arguments) != (self.operation, msgspec.json.encode(self.arguments)):
            raise OperationError(
                "RequestError",
                f"{self.request} is already the name of another request ({operation}): use a unique name",
            )


class Outcome(msgspec.Struct, frozen=True):
    """A reply, and the position of the operation: after update `seq`, and after `position` local writers."""

    reply: bytes
    seq: int
    position: int
    wrote: bool = False
    repeated: bool = False
    """The request was executed before, and this is the reply of that execution."""


class OperationError(Exception):
    """The function of the application raised. The transaction is rolled back, and the client gets the error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message


class OversizeError(OperationError):
    """The parameters, the reply and the changed rows of an operation are too large for the log. Nothing has changed."""

    def __init__(self, message: str) -> None:
        super().__init__("OversizeError", message)


class DatabaseGoneError(Exception):
    """The DBMS does not answer, or cannot write. Nothing was committed, unless the log contains it."""


def failed(error: Exception) -> OperationError:
    """The error that a client gets for an exception of the application."""
    return OperationError(type(error).__name__, str(error))
