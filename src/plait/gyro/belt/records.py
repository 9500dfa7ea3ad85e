"""What travels and what is kept: state updates with their place in the order, and the token that carries them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The state update of a global operation, where it stands in the order of all of them, and its reply."""

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
    """Row images, in the form of the DBMS."""


class Token(msgspec.Struct, frozen=True, array_like=True):
    """The right to execute global operations, and updates that some server may not have applied yet."""

    epoch: int
    """How often a token was issued; of two tokens, the one of the lower epoch is a ghost."""
    turn: int
    """How often the token was passed in this epoch."""
    last: int
    """The seq of the last update in the log."""
    entries: list[Entry] = []
    hurry: int = 0
    """Somebody waits for it: this many servers pass it on at once if they have nothing to do."""


class Call(msgspec.Struct, frozen=True):
    """An operation: a transaction with concrete parameters, ready to be executed on a connection."""

    request: str
    operation: str
    arguments: dict[str, Any]
    run: Callable[[Any], bytes]
    """Executes it on a connection; the reply as JSON."""

    def check_same(self, operation: str, arguments: bytes) -> None:
        """A name stands for one request: whoever uses it for another one is told so, and does not get that one's reply."""
        if (operation, arguments) != (self.operation, msgspec.json.encode(self.arguments)):
            raise OperationError(
                "RequestError",
                f"{self.request} is the name of another request, of {operation}: each needs its own",
            )


class Outcome(msgspec.Struct, frozen=True):
    """A reply, and where the operation stands in the order: after update `seq`, after `position` local writers."""

    reply: bytes
    seq: int
    position: int
    wrote: bool = False
    repeated: bool = False
    """The request was executed before; this is the reply it got then."""


class OperationError(Exception):
    """The application's function raised: the transaction is rolled back, and the client is told."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message


class DatabaseGoneError(Exception):
    """The DBMS does not answer, or cannot write. Nothing was committed, unless the log says so."""


def failed(error: Exception) -> OperationError:
    """What a client is told of an exception of the application."""
    return OperationError(type(error).__name__, str(error))
