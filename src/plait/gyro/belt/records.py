"""Records of the protocol: calls, outcomes, state updates with their position, and the token that carries them."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

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
    incarnation: int = 0
    """The incarnation of the server that executed it (see `LocalUpdate`)."""
    shipped: int = 0
    """The number of local updates of this server that were in the log before it: it may depend on these, and no others.

    If local updates are not replicated: how many the server had executed, or 0 if its DBMS does not count them."""


class LocalUpdate(msgspec.Struct, frozen=True, array_like=True):
    """The state update of a local operation, its position in the stream of its server, and its reply."""

    position: int
    incarnation: int
    """How often this server was rebuilt before. Updates of an earlier incarnation are refused."""
    server: int
    seq: int
    """The last update of a global operation that the server had applied."""
    number: int
    """The number of the update in the outbox of the server."""
    order: int
    """The position in the replies of the server (see `Outcome`)."""
    request: str
    operation: str
    arguments: bytes
    """JSON."""
    reply: bytes
    """JSON."""
    update: bytes
    """Row images, in the format of the DBMS."""
    chain: str = ""
    """A hash of this update and all updates before it in the stream."""


Recorded = TypeVar("Recorded", Entry, LocalUpdate)


def link(before: str, entry: Entry | LocalUpdate) -> str:
    """The hash of a history: of the history before an update, and of the update. The empty history has an empty hash."""
    plain = msgspec.structs.replace(entry, chain="") if entry.chain else entry
    content = msgspec.msgpack.encode((before, plain))
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def chained(before: str, entries: Sequence[Recorded]) -> list[Recorded]:
    """Updates that follow a history, with their hashes."""
    found = []
    for entry in entries:
        before = link(before, entry)
        found.append(msgspec.structs.replace(entry, chain=before))
    return found


class ForkedError(Exception):
    """Updates do not follow the history that they are added to: the states of servers, or a server and the log, differ."""

    def __init__(self, update: str) -> None:
        super().__init__(f"{update} does not follow the history here: the server and the log have different histories")


def follow(before: str, entry: Entry | LocalUpdate) -> str:
    """The hash of a history and the update that is added to it. ForkedError: the update was made for another one."""
    if entry.chain != link(before, entry):
        raise ForkedError(
            f"update {entry.seq}"
            if isinstance(entry, Entry)
            else f"local update {entry.position} of server {entry.server}"
        )
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
    server: int | None = None
    """The server of that execution, if it is another one: the configuration has changed since."""


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


Result = Outcome | OperationError
"""What becomes of an operation that was executed."""


def only(results: Sequence[Result]) -> Outcome:
    """The outcome of a single operation; raises what it has raised."""
    (result,) = results
    if isinstance(result, OperationError):
        raise result
    return result


class DatabaseGoneError(Exception):
    """The DBMS does not answer, or cannot write. Nothing was committed, unless the log contains it."""


def failed(error: Exception) -> OperationError:
    """The error that a client gets for an exception of the application."""
    return OperationError(type(error).__name__, str(error))


class Waiting:
    """A global operation in the queue, and its result. A Future can do more, and costs more than a statement of SQL."""

    __slots__ = ("_told", "call", "found", "since")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.found: Outcome | Exception | None = None
        """The result; None if there is none yet."""
        self._told: Callable[[], None] | None = None
        self.since = time.perf_counter()

    def settle(self, found: Outcome | Exception) -> None:
        """Set the result."""
        self.found = found
        if (told := self._told) is not None:
            told()

    def tell(self, told: Callable[[], None]) -> None:
        """Call a function when there is a result, in any thread. It may be called twice. It replaces an earlier one."""
        self._told = told
        if self.found is not None:
            told()

    def result(self, timeout: float | None = None) -> Outcome:
        """Wait for the outcome; raises what the operation has raised, or TimeoutError."""
        there = threading.Event()
        self.tell(there.set)
        there.wait(timeout)
        if self.found is None:
            raise TimeoutError
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def twin(
    call: Call, twins: dict[str, int], done: list[tuple[Waiting, Outcome | OperationError]]
) -> Outcome | OperationError | None:
    """The result of the same request, if it was executed earlier in this visit. `twins` has its place in `done`."""
    if (place := twins.get(call.request)) is None:
        return None
    waiting, result = done[place]
    call.check_same(waiting.call.operation, msgspec.json.encode(waiting.call.arguments))
    return result
