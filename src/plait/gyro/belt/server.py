"""A server process: it connects HTTP with the DBMS, the log and the other servers.

POST /call/OPERATION    {"request": ID, "parameters": {…}}    200: the reply; 307: another server executes this
operation GET  /cluster           servers and routes, for clients GET  /status, /metrics  token, queue, throughput, lag
POST /belt/…            between servers, with the secret
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from plait.gyro.belt import faults
from plait.gyro.belt.application import Application, load
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.identity import confirm
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import Log, LogGoneError
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import DatabaseGoneError, OperationError, Outcome, OversizeError, Token
from plait.gyro.belt.routing import RequestError, place
from plait.gyro.belt.settings import Settings, load_settings
from plait.gyro.belt.transport import SECRET, HttpTransport
from plait.kernel.errors import PlaitError, UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route as Path_
    from starlette.types import Receive, Scope, Send

logger = logging.getLogger("plait.gyro")
_CALL = "/call/"
_NAME = 200
"""Maximal length of the name of a request."""


class CallBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a call."""

    parameters: dict[str, Any] = {}
    request: str = ""
    """The name of the request. A request with the same name is not executed again."""


class Server:
    """The HTTP interface of a node."""

    def __init__(self, number: int, settings: Settings, application: Application, node: Node) -> None:
        self.number = number
        self.settings = settings
        self.application = application
        self.node = node
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="operation")
        self._decoder = msgspec.json.Decoder(CallBody)
        self._tokens = msgspec.msgpack.Decoder(Token)

        self._others = Starlette(
            routes=[
                Path_("/cluster", self.cluster),
                Path_("/status", self.status),
                Path_("/metrics", self.metrics),
                Path_("/belt/token", self.token, methods=["POST"]),
                Path_("/belt/wanted", self.wanted, methods=["POST"]),
            ],
            exception_handlers={404: self.not_found, 405: self.not_found},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application. Calls bypass the router for speed."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith(_CALL):
            response = await self.call(Request(scope, receive), scope["path"].removeprefix(_CALL))
            await response(scope, receive, send)
        else:
            await self._others(scope, receive, send)

    # -- clients -----------------------------------------------------------------------------------------------------

    async def call(self, request: Request, operation: str) -> Response:
        """Execute an operation, or redirect to the server that executes it."""
        begin = time.perf_counter()
        kind = ""
        try:
            body = await self._body(request, self.settings.limit)
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
            call = self.application.call(given.request or uuid.uuid4().hex, operation, given.parameters)
            route = self.application.routes[call.operation]
            server, kind = place(route, call.arguments, self.settings.servers, self.number)
            if server != self.number:
                self.node.metrics.redirected += 1
                location = f"{self.settings.urls[server]}/call/{call.operation}"
                return _json({"map": server, "url": location}, 307, {"Location": location})
            if self.node.broken is not None:
                raise DatabaseGoneError(self.node.broken)
            if kind == "global":
                outcome = await self._wait(self.node.submit(call))
            else:
                work = self.node.database.read if kind == "read" else self.node.database.write
                outcome = await asyncio.get_running_loop().run_in_executor(self._threads, work, call)
                self.node.metrics.done("local", False)
            self.node.metrics.took("global" if kind == "global" else "local", time.perf_counter() - begin)
            return self._reply(outcome)
        except RequestError as error:
            self.node.metrics.refused += 1
            return _json({"error": error.message, "hint": error.hint}, error.status)
        except OversizeError as error:
            return _json({"error": error.message, "hint": "split the operation: several smaller requests"}, 413)
        except OperationError as error:
            if kind != "global":
                self.node.metrics.done("local", True)
            if error.kind != "ReplyError":
                return _json({"error": str(error), "raised": error.kind, "message": error.message}, 422)
            return _json({"error": error.message, "hint": "return numbers, strings, lists or dicts"}, 500)
        except DatabaseGoneError as error:
            self.node.metrics.failures += 1
            return _json(
                {"error": f"server {self.number} cannot execute the operation now: {error}", "hint": "try again"}, 503
            )
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            logger.exception("server %d: %s", self.number, operation)
            return _json(
                {"error": f"internal error: {type(error).__name__}", "hint": "see the output of the server"}, 500
            )

    async def _wait(self, future: Any) -> Outcome:
        """Wait until a global operation was executed."""
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), self.settings.wait)
        except TimeoutError:
            if self.node.withdraw(future):
                raise DatabaseGoneError(f"the token did not arrive within {self.settings.wait:g} s") from None
            raise DatabaseGoneError("the operation is executing, and the log does not answer") from None

    def _reply(self, outcome: Outcome) -> Response:
        place = b'{"server":%d,"seq":%d,"position":%d,"wrote":%s,"repeated":%s,"reply":%b}' % (
            self.number,
            outcome.seq,
            outcome.position,
            b"true" if outcome.wrote else b"false",
            b"true" if outcome.repeated else b"false",
            outcome.reply,
        )
        return Response(place, media_type="application/json")

    async def _body(self, request: Request, limit: int) -> bytes:
        length = request.headers.get("content-length", "0")
        body = bytearray()
        if not length.isdigit() or int(length) > limit:
            raise RequestError(413, f"the request has {length} bytes", f"send at most {limit} bytes")
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise RequestError(413, f"the request has more than {limit} bytes", f"send at most {limit} bytes")
        return bytes(body)

    async def cluster(self, _request: Request) -> Response:
        """The servers and routes, for clients."""
        return _json({"urls": self.settings.urls, "routes": self.application.routes})

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Answer a request with an unknown path or method."""
        status = getattr(error, "status_code", 404)
        hint = "use POST /call/OPERATION, or GET /cluster, /status or /metrics"
        return _json({"error": f"{request.method} {request.url.path} does not exist", "hint": hint}, status)

    # -- operators ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state of this server, as plain data."""
        node = self.node
        return {
            "server": self.number,
            "holds_token": node.holding,
            "epoch": node.epoch,
            "turn": node.turn,
            "queue": node.waiting,
            "applied": node.applied,
            "known": node.last,
            "lag": max(node.last - node.applied, 0),
            "throughput": round(node.metrics.throughput, 2),
            "operations": node.metrics.operations,
            "visits": node.metrics.visits,
            "uptime": round(time.time() - node.metrics.started, 1),
            "broken": node.broken,
        }

    async def status(self, _request: Request) -> Response:
        """The state of this server, as JSON."""
        return _json(self.state())

    async def metrics(self, _request: Request) -> Response:
        """The counters of this server, for Prometheus."""
        node = self.node
        gauges = {
            "queue_length": float(node.waiting),
            "holds_token": float(node.holding),
            "token_epoch": float(node.epoch),
            "applied_seq": float(node.applied),
            "lag_updates": float(max(node.last - node.applied, 0)),
        }
        return Response(node.metrics.text(self.number, gauges), media_type="text/plain; version=0.0.4")

    # -- servers -----------------------------------------------------------------------------------------------------

    def _trusted(self, request: Request) -> bool:
        given = request.headers.get(SECRET, "")
        return hmac.compare_digest(given.encode(), self.settings.secret.encode()) and bool(self.settings.secret)

    async def token(self, request: Request) -> Response:
        """Receive the token."""
        if not self._trusted(request):
            return _json(
                {
                    "error": "this path is for requests between servers",
                    "hint": f"send the secret in the header {SECRET}",
                },
                403,
            )
        try:
            token = self._tokens.decode(await self._body(request, 1 << 30))
        except (msgspec.DecodeError, RequestError) as error:
            return _json({"error": f"the body is not a token: {error}"}, 400)
        if self.node.broken is not None:
            return _json({"error": self.node.broken}, 503)
        self.node.receive(token)
        return Response(status_code=200)

    async def wanted(self, request: Request) -> Response:
        """Another server waits for the token."""
        if not self._trusted(request):
            return _json(
                {
                    "error": "this path is for requests between servers",
                    "hint": f"send the secret in the header {SECRET}",
                },
                403,
            )
        self.node.hurry()
        return Response(status_code=200)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def open_log(settings: Settings) -> Log:
    """Open the log of the settings."""
    if settings.log == "embedded":
        return EmbeddedLog(Path(settings.folder) / "log.db")
    from plait.gyro.belt.logs.etcd import EtcdLog

    return EtcdLog(settings.log.removeprefix("etcd:"), hashlib.sha256(settings.secret.encode()).hexdigest()[:16])


def open_database(number: int, settings: Settings, step: Any) -> Database:
    """Open the DBMS of a server."""
    if settings.db == "sqlite":
        from plait.gyro.belt.databases.sqlite import SqliteDatabase

        folder = Path(settings.folder) / f"server-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        return SqliteDatabase(
            folder / "app.db",
            server=number,
            servers=settings.servers,
            schema=settings.schema,
            step=step,
            keep=settings.keep,
        )
    from plait.gyro.belt.databases.postgresql import PostgresqlDatabase

    return PostgresqlDatabase(
        settings.dsns[number],
        server=number,
        servers=settings.servers,
        schema=settings.schema,
        step=step,
        keep=settings.keep,
        parallel=settings.threads,
    )


def agree(number: int, settings: Settings, database: Database, log: Log) -> None:
    """Check that this server has the schema, the classification and the number of servers of its cluster."""
    routes = msgspec.json.encode(sorted(settings.routes.items())).decode()
    for what, mine in (
        ("number of servers", str(settings.servers)),
        ("classification", routes),
        ("schema", database.schema()),
    ):
        first = log.agree(what, mine)
        if first != mine:
            ours, theirs = set(mine.splitlines()), set(first.splitlines())
            detail = "; ".join([f"here: {line[:200]}" for line in sorted(ours - theirs)][:1])
            detail += "; ".join([f"; there: {line[:200]}" for line in sorted(theirs - ours)][:1])
            raise UsageError(
                f"server {number}: the {what} differs from that of the cluster ({detail})",
                hint="use the same application and schema for all servers, or start with an empty folder",
            )


def _watch(parent: int, node: Node) -> None:
    """Exit when the parent process ends, or when the node has stopped; the supervisor then restarts the server."""
    while os.getppid() == parent:
        if node.broken is not None:
            os._exit(3)
        time.sleep(0.5)
    os._exit(0)


Open = Callable[[int, Settings, Any], Database]
"""Opens the DBMS of a server. Arguments: its number, the settings, and the function to call at each step."""


def main(arguments: list[str], *, open_database: Open = open_database) -> int:
    """Run `python -m plait.gyro.belt.server SETTINGS NUMBER`. Use `open_database` for another DBMS."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    number = int(arguments[1])
    try:
        settings = load_settings(Path(arguments[0]))
        step = faults.steps(number)
        application = Application(load(settings.application), settings.routes)
        log = open_log(settings)
        database = open_database(number, settings, step)
        agree(number, settings, database, log)
        confirm(number, database, log)
        transport = HttpTransport(number, settings)
        node = Node(
            number, settings.servers, database, log, transport, idle=settings.idle, lost=settings.lost, step=step
        )  # fmt: skip
        node.start()
    except PlaitError as error:
        logger.error("error: %s\nhint: %s", error.message, error.hint)
        return 2
    except (DatabaseGoneError, LogGoneError) as error:
        logger.error("error: server %d: %s", number, error)
        return 3
    threading.Thread(target=_watch, args=(os.getppid(), node), name="watch", daemon=True).start()
    port = int(settings.urls[number].rpartition(":")[2])
    config = uvicorn.Config(
        Server(number, settings, application, node),
        host=settings.host,
        port=port,
        log_config=None,
        access_log=False,
        http="httptools",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    server.run()
    node.stop()
    log.close()
    database.close()
    return 0 if server.started else 3


def exit_with(code: int) -> NoReturn:
    """Exit at once, without waiting for threads."""
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
