"""Answers the calls of clients, whatever protocol they come by: HTTP (`server.py`) or frames (`door.py`).

An answer is a status of HTTP and a body in JSON. Both protocols send these two unchanged, so limits, names of requests,
redirects and errors are the same.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from plait.gyro.belt.application import Application
from plait.gyro.belt.keys import Keys
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Call, DatabaseGoneError, OperationError, Outcome, OversizeError, Waiting
from plait.gyro.belt.routing import Kind, RequestError, place
from plait.gyro.belt.service.events import event
from plait.gyro.belt.service.limits import Limits
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.wire.batches import Batches, Done, Local

logger = logging.getLogger("plait.gyro")
_NAME = 200
"""Maximal length of the name of a request."""
_LOOK = 0.01
"""Seconds between two looks whether a change of the configuration has ended."""


class Answer(NamedTuple):
    """What a client gets: a status of HTTP, and JSON."""

    status: int
    body: bytes
    location: str = ""
    """Where to send the call instead, for a redirect."""
    pause: float = 0.0
    """When to try again, in seconds."""


Reply = Callable[[Answer], None]


class CallBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a call."""

    parameters: dict[str, Any] = {}
    request: str = ""
    """The name of the request. A request with the same name is not executed again."""


class Waiter:
    """Waits until a global operation was executed."""

    __slots__ = ("_done", "waiting")

    def __init__(self, waiting: Waiting, done: Done) -> None:
        self.waiting = waiting
        self._done: Done | None = done

    def settle(self, result: Outcome | Exception) -> None:
        """Tell the result, unless this has happened before."""
        done, self._done = self._done, None
        if done is not None:
            done(result)


class Waiters:
    """The global operations that wait, with one timer for all of them."""

    def __init__(self, node: Node, batches: Batches, wait: float) -> None:
        self._node, self._batches, self._wait = node, batches, wait
        self._since: dict[Waiter, float] = {}
        """When each began to wait, in this order."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiting: Waiting, done: Done) -> None:
        """Wait until an operation was executed; give its outcome, or an exception, to `done`."""
        waiter = Waiter(waiting, done)
        self._since[waiter] = time.monotonic()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._wait, self._tick)
        waiting.tell(functools.partial(self._batches.mailbox.post, functools.partial(self._executed, waiter)))

    def _executed(self, waiter: Waiter) -> None:
        """The operation was executed, or refused."""
        self._since.pop(waiter, None)
        if (found := waiter.waiting.found) is not None:
            waiter.settle(found)

    def _tick(self) -> None:
        """Give up operations that have waited for too long."""
        now = time.monotonic()
        late = list(itertools.takewhile(lambda waiter: now - self._since[waiter] >= self._wait, self._since))
        for waiter in late:
            del self._since[waiter]
            withdrawn = self._node.withdraw(waiter.waiting)
            reason = f"the token did not arrive within {self._wait:g} s"
            waiter.settle(
                DatabaseGoneError(reason if withdrawn else "the operation is executing, and the log does not answer")
            )
        self._timer = None
        for since in self._since.values():
            self._timer = asyncio.get_running_loop().call_later(since + self._wait - now, self._tick)
            break  # the others have more time


class Calls:
    """The calls of a server. Its event loop is the only caller."""

    def __init__(self, number: int, settings: Settings, application: Application, node: Node) -> None:
        self.number = number
        self.settings = settings
        self.application = application
        self.node = node
        self.limits = Limits(client=settings.client_rate, total=settings.rate)
        self.batches = Batches(node, threads=settings.threads, most=settings.together)
        self._keys = Keys(application.routes, node.database)
        self._decoder = msgspec.json.Decoder(CallBody)
        self._waiters = Waiters(node, self.batches, settings.wait)
        self._arrived: list[tuple[Call, Done]] = []
        """Global operations that are not in the queue of the node yet."""
        self._held = 0
        """Other operations that wait for the end of a change of the configuration."""

    # -- limits ------------------------------------------------------------------------------------------------------

    def hasty(self, client: str) -> Answer | None:
        """The answer to a client that sends too many requests; None if its request is admitted."""
        if (pause := self.limits.wait(client)) > 0:
            return self._refuse(429, "too many requests", "send fewer requests per second", pause)
        return None

    def full(self, kind: Kind) -> Answer | None:
        """The answer if too many operations wait already."""
        waiting = self.node.waiting + len(self._arrived) if kind == "global" else self._held + self.batches.executing
        if waiting >= self.settings.queue:
            return self._refuse(503, f"{self.settings.queue} operations already wait", "try again", 1.0)
        return None

    def _refuse(self, status: int, error: str, hint: str, pause: float) -> Answer:
        """Refuse a request because there are too many; `pause` is when to try again, in seconds."""
        self.node.metrics.limited += 1
        return Answer(status, _json({"error": error, "hint": hint, "retry_after": round(pause, 3)}), pause=pause)

    # -- calls -------------------------------------------------------------------------------------------------------

    def answer(self, operation: str, body: bytes, reply: Reply) -> None:
        """Execute an operation, or tell which server executes it."""
        begin = time.perf_counter()
        try:
            call = self._call(operation, body)
            route = self.application.routes[call.operation]
            if self._keys.certain(route, call.arguments):
                self._route(call, call.arguments, begin, reply)
            else:
                asked = functools.partial(self._keys.stored, route, call.arguments)
                self.batches.ask(asked, functools.partial(self._stored, call, begin, reply))
        except Exception as error:
            reply(self._failure(error, operation))

    def _call(self, operation: str, body: bytes) -> Call:
        try:
            given = self._decoder.decode(body) if body else CallBody()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RequestError(
                400, f"the body is not a call: {error}", 'send {"parameters": {…}}, with an optional "request"'
            ) from None
        if len(given.request) > _NAME or "\0" in given.request:
            raise RequestError(
                400,
                f"request={given.request[:40]!r} is not a valid name",
                f"use at most {_NAME} characters, without NUL",
            )
        return self.application.call(given.request or uuid.uuid4().hex, operation, given.parameters)

    def _stored(self, call: Call, begin: float, reply: Reply, found: Any) -> None:
        """Go on with the keys in their stored form."""
        try:
            if isinstance(found, Exception):
                raise found
            arguments, forms = found
            self._route(self.application.with_arguments(call, arguments), forms, begin, reply)
        except Exception as error:
            reply(self._failure(error, call.operation))

    def _route(self, call: Call, forms: Mapping[str, Any], begin: float, reply: Reply) -> None:
        mine = self.settings
        rank, kind = place(self.application.routes[call.operation], forms, mine.servers, mine.rank(self.number))
        if mine.numbers[rank] != self.number:
            self.node.metrics.redirected += 1
            location = f"{mine.urls[rank]}/call/{call.operation}"
            found = {"map": rank, "url": location, "configuration": mine.configuration}
            reply(Answer(307, _json(found), location))
        elif self.node.broken is not None:
            raise DatabaseGoneError(self.node.broken)
        elif (refused := self.full(kind)) is not None:
            reply(refused)
        else:
            self.execute(call, kind, functools.partial(self._executed, call, kind, begin, reply))

    def _executed(self, call: Call, kind: Kind, begin: float, reply: Reply, result: Outcome | Exception) -> None:
        if isinstance(result, Outcome):
            self.node.metrics.requests[kind].observe(time.perf_counter() - begin)
            reply(Answer(200, self._body(result)))
        else:
            reply(self._failure(result, call.operation))

    def _body(self, outcome: Outcome) -> bytes:
        return b'{"server":%d,"seq":%d,"position":%d,"wrote":%s,"repeated":%s,"reply":%b}' % (
            self.number if outcome.server is None else outcome.server,
            outcome.seq,
            outcome.position,
            b"true" if outcome.wrote else b"false",
            b"true" if outcome.repeated else b"false",
            outcome.reply,
        )

    # -- execution ---------------------------------------------------------------------------------------------------

    def execute(self, call: Call, kind: Kind, done: Done) -> None:
        """Execute an operation that belongs here; give its outcome, or its exception, to `done`."""
        if kind == "global":
            if not self._arrived:
                asyncio.get_running_loop().call_soon(self._submit)
            self._arrived.append((call, done))
        else:
            self._held += 1
            self._pass(call, kind, done, time.monotonic() + self.settings.wait)

    def _pass(self, call: Call, kind: Local, done: Done, deadline: float) -> None:
        """Execute a local or read-only operation. During a change of the configuration, it waits."""
        closed = self.node.gate.closed("read" if kind == "read" else "write")
        if closed and self.node.broken is None and time.monotonic() < deadline:
            asyncio.get_running_loop().call_later(_LOOK, self._pass, call, kind, done, deadline)
            return
        self._held -= 1
        self.batches.add(call, kind, functools.partial(self._counted, kind, done))

    def _counted(self, kind: Kind, done: Done, result: Outcome | Exception) -> None:
        if type(result) in (Outcome, OperationError):
            self.node.metrics.done(kind, type(result) is OperationError)
        done(result)

    def _submit(self) -> None:
        """Add the global operations that have arrived to the queue of the node."""
        arrived, self._arrived = self._arrived, []
        for waiting, (_, done) in zip(self.node.submit_all([call for call, _ in arrived]), arrived, strict=True):
            self._waiters.add(waiting, done)

    async def perform(self, call: Call, kind: Kind) -> Outcome:
        """Execute an operation that belongs here."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(result: Outcome | Exception) -> None:
            if future.done():
                return  # the request was cancelled
            if isinstance(result, Outcome):
                future.set_result(result)
            else:
                future.set_exception(result)

        self.execute(call, kind, done)
        return await future

    # -- errors ------------------------------------------------------------------------------------------------------

    def _failure(self, error: Exception, operation: str) -> Answer:
        """The answer for an exception."""
        if isinstance(error, RequestError):
            return self.problem(error)
        if isinstance(error, OversizeError):
            return Answer(413, _json({"error": error.message, "hint": "split the operation: several smaller requests"}))
        if isinstance(error, OperationError):
            if error.kind != "ReplyError":
                return Answer(422, _json({"error": str(error), "raised": error.kind, "message": error.message}))
            return Answer(500, _json({"error": error.message, "hint": "return numbers, strings, lists or dicts"}))
        if isinstance(error, DatabaseGoneError):
            self.node.metrics.failures += 1
            text = f"server {self.number} cannot execute the operation now: {error}"
            return Answer(503, _json({"error": text, "hint": "try again"}))
        logger.error(
            "server %d: %s",
            self.number,
            operation,
            exc_info=error,
            extra=event("internal_error", operation=operation[:_NAME]),
        )
        text = f"internal error: {type(error).__name__}"
        return Answer(500, _json({"error": text, "hint": "see the output of the server"}))

    def problem(self, error: RequestError) -> Answer:
        """The answer to a request that cannot be served."""
        self.node.metrics.refused += 1
        return Answer(error.status, _json({"error": error.message, "hint": error.hint}))


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
