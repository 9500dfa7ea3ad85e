"""A server process: it connects HTTP with the DBMS, the log and the other servers.

POST /call/OPERATION    {"request": ID, "parameters": {…}}    200: the reply; 307: another server executes this
operation
GET  /cluster           servers and routes, for clients
GET  /status, /metrics  token, queue, throughput, lag
GET  /health, /ready    for probes: 200 or 503, with the reasons
POST /belt/…            between servers, with the secret
GET  /belt/backup       a backup, with the secret
"""

from __future__ import annotations

import asyncio
import functools
import gc
import hashlib
import hmac
import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from plait.gyro.belt import faults
from plait.gyro.belt.application import Application, load
from plait.gyro.belt.configuration import operators
from plait.gyro.belt.configuration.changes import ActivatedError, Changes, check_program
from plait.gyro.belt.configuration.joining import join
from plait.gyro.belt.configuration.request import first_configuration, followed, shown
from plait.gyro.belt.configuration.startup import agree, mend, stored
from plait.gyro.belt.databases.changeable import Changeable
from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.outbox import Outbox
from plait.gyro.belt.http import TlsContext
from plait.gyro.belt.identity import announce, confirm
from plait.gyro.belt.logs.address import addresses
from plait.gyro.belt.logs.embedded import EmbeddedLog
from plait.gyro.belt.logs.log import Log, LogGoneError, ReplacedError
from plait.gyro.belt.metrics import Metrics
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import DatabaseGoneError, Token
from plait.gyro.belt.replication.backup import frames
from plait.gyro.belt.replication.rebuild import check_replication
from plait.gyro.belt.replication.shipper import Shipper
from plait.gyro.belt.routing import RequestError
from plait.gyro.belt.service.certificates import Certificates
from plait.gyro.belt.service.events import configure, event, passwords
from plait.gyro.belt.service.health import Health
from plait.gyro.belt.service.lifetime import tie_to_supervisor
from plait.gyro.belt.service.private import UMASK, private_file, private_folder
from plait.gyro.belt.service.renewal import inherited, listen, renew
from plait.gyro.belt.service.watch import exit_with, watch
from plait.gyro.belt.settings import Settings, load_settings
from plait.gyro.belt.transport import SECRET, HttpTransport
from plait.gyro.belt.version import Content, Version
from plait.gyro.belt.wire.calls import Answer, Calls
from plait.gyro.belt.wire.door import door
from plait.kernel.errors import Argument, PlaitError
from plait.kernel.extras import needs

with needs("serve"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route as Path_
    from starlette.types import Receive, Scope, Send

logger = logging.getLogger("plait.gyro")
_CALL = "/call/"
REMOVED = 4
"""The exit code of a server that was removed from its cluster."""
LINGER = 10.0
"""So long, in seconds, a server that was removed tells clients the other servers."""


class Server:
    """The HTTP interface of a node."""

    frames = 1
    """The version of the binary protocol, which clients may use instead of HTTP; 0: none."""

    def __init__(
        self, number: int, settings: Settings, application: Application, node: Node, *, version: int = 1
    ) -> None:
        self.number = number
        self.version = version
        self.settings = settings
        self.application = application
        self.node = node
        self.tls: TlsContext | None = None
        """For connections to other servers."""
        self.calls = Calls(number, settings, application, node)
        self._health = Health(node, lag=settings.lag)
        self._tokens = msgspec.msgpack.Decoder(Token)

        self._others = Starlette(
            routes=[
                Path_("/cluster", self.cluster),
                Path_("/status", self.status),
                Path_("/metrics", self.metrics),
                Path_("/health", self.health),
                Path_("/ready", self.ready),
                Path_("/belt/token", self.token, methods=["POST"]),
                Path_("/belt/wanted", self.wanted, methods=["POST"]),
                Path_("/belt/backup", self.backup),
                *operators.routes(self),
            ],
            exception_handlers={404: self.not_found, 405: self.not_found},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application. Calls bypass the router for speed."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith(_CALL):
            if (refused := self.calls.hasty((scope["client"] or ("",))[0])) is not None:
                response = self._response(refused)
            else:
                response = await self.call(Request(scope, receive), scope["path"].removeprefix(_CALL))
            await response(scope, receive, send)
        else:
            await self._others(scope, receive, send)

    # -- clients -----------------------------------------------------------------------------------------------------

    async def call(self, request: Request, operation: str) -> Response:
        """Execute an operation, or redirect to the server that executes it."""
        try:
            body = await self._body(request, self.settings.limit)
        except RequestError as error:
            return self._response(self.calls.problem(error))
        except ClientDisconnect:
            return Response(status_code=400)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def reply(answer: Answer) -> None:
            if not future.done():  # it is cancelled if the server ends
                future.set_result(answer)

        self.calls.answer(operation, body, reply)
        return self._response(await future)

    def _response(self, answer: Answer) -> Response:
        headers = {"Location": answer.location} if answer.location else {}
        if answer.pause:
            headers["Retry-After"] = str(math.ceil(answer.pause))
        return Response(answer.body, answer.status, headers, "application/json")

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
        mine = self.settings
        found = {"urls": mine.urls, "members": mine.numbers, "configuration": mine.configuration}
        return _json({**found, "routes": self.application.routes, "frames": self.frames})

    async def not_found(self, request: Request, error: Exception) -> Response:
        """Answer a request with an unknown path or method."""
        status = getattr(error, "status_code", 404)
        hint = "use POST /call/OPERATION, or GET /cluster, /status, /metrics, /health or /ready"
        return _json({"error": f"{request.method} {request.url.path} does not exist", "hint": hint}, status)

    # -- operators ---------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state of this server, as plain data."""
        node = self.node
        return {
            "server": self.number,
            "version": self.version,
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
            **(shown(node.changes.state) if node.changes is not None else {}),
        }

    async def status(self, _request: Request) -> Response:
        """The state of this server, as JSON."""
        return _json(self.state())

    async def health(self, _request: Request) -> Response:
        """Whether this process is alive and its DBMS answers."""
        found = await self._health.health()
        return _json(found, 200 if found["healthy"] else 503)

    async def ready(self, _request: Request) -> Response:
        """Whether this server can execute operations."""
        found = await self._health.ready()
        return _json(found, 200 if found["ready"] else 503)

    async def metrics(self, _request: Request) -> Response:
        """The counters of this server, for Prometheus."""
        node = self.node
        ready = await self._health.ready()
        gauges = {
            "ready": ("Whether this server is ready.", float(ready["ready"])),
            "queue_length": ("Global operations that wait for the token.", float(node.waiting)),
            "queue_limit": ("The maximal number of waiting operations.", float(self.settings.queue)),
            "local_operations": (
                "Other operations that execute or wait for a thread.",
                float(self.calls.batches.executing),
            ),
            "holds_token": ("Whether the token is here.", float(node.holding)),
            "token_epoch": ("The epoch of the last token.", float(node.epoch)),
            "applied_seq": ("The last update that is applied here.", float(node.applied)),
            "lag_updates": ("Updates of the log that are not applied here.", float(ready["behind"])),
            "start_time_seconds": ("When this server started, in seconds since 1970.", node.metrics.started),
        }
        return Response(node.metrics.text(self.number, gauges), media_type="text/plain; version=0.0.4")

    # -- servers -----------------------------------------------------------------------------------------------------

    def trusted(self, request: Request) -> bool:
        """Whether a request has the secret of the cluster."""
        given = request.headers.get(SECRET, "")
        return hmac.compare_digest(given.encode(), self.settings.secret.encode()) and bool(self.settings.secret)

    async def token(self, request: Request) -> Response:
        """Receive the token."""
        if not self.trusted(request):
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
        if not self.trusted(request):
            return _json(
                {
                    "error": "this path is for requests between servers",
                    "hint": f"send the secret in the header {SECRET}",
                },
                403,
            )
        self.node.hurry()
        return Response(status_code=200)

    async def backup(self, request: Request) -> Response:
        """Send a backup of the cluster."""
        if not self.trusted(request):
            return _json({"error": "a backup needs the secret", "hint": f"send it in the header {SECRET}"}, 403)
        mine = self.settings
        if mine.replicate == "none":
            return _json(
                {
                    "error": "local updates are not replicated, so there is no backup",
                    "hint": "stop the servers, and copy their folder",
                },
                409,
            )
        used = mine.servers if self.node.changes is None else self.node.changes.state.configuration.used + 1
        return StreamingResponse(frames(self.node.log, used, mine.db, mine.replicate))


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def open_log(settings: Settings) -> Log:
    """Open the log of the settings."""
    if settings.log == "embedded":
        return EmbeddedLog(private_file(Path(settings.folder) / "log.db"))
    from plait.gyro.belt.logs.etcd import EtcdLog

    where, fence = addresses(settings.log, settings.fence)
    name = hashlib.sha256(settings.secret.encode()).hexdigest()[:16]
    if fence is None:
        return EtcdLog(where, name)
    from plait.gyro.belt.logs.nats import NatsLog

    return NatsLog(where, fence, name)


def open_database(number: int, settings: Settings, step: Any, shipping: int = 0) -> Outbox:
    """Open the DBMS of a server. `shipping` is the maximal size of a local update; 0 if they are not replicated."""
    if settings.db == "sqlite":
        from plait.gyro.belt.databases.sqlite.database import SqliteDatabase

        folder = private_folder(Path(settings.folder) / f"server-{number}")
        return SqliteDatabase(
            private_file(folder / "app.db"),
            server=number,
            servers=settings.servers,
            rank=settings.rank(number),
            schema=settings.schema,
            step=step,
            keep=settings.keep,
            shipping=shipping,
        )
    kind: Callable[..., Outbox]
    if settings.db == "mariadb":
        from plait.gyro.belt.databases.mariadb.database import MariadbDatabase

        kind = functools.partial(MariadbDatabase, rank=settings.rank(number))
    else:
        from plait.gyro.belt.databases.postgresql.database import PostgresqlDatabase

        kind = functools.partial(PostgresqlDatabase, rank=settings.rank(number))
    return kind(
        settings.dsns[number],
        server=number,
        servers=settings.servers,
        schema=settings.schema,
        step=step,
        keep=settings.keep,
        parallel=settings.threads,
        shipping=shipping,
    )


Open = Callable[..., Database]
"""Opens the DBMS of a server. Arguments: its number, the settings, the function to call at each step, and, if local
updates are replicated, their maximal size."""


def main(arguments: list[str], *, open_database: Open = open_database) -> int:
    """Run `python -m plait.gyro.belt.server SETTINGS NUMBER`. Use `open_database` for another DBMS."""
    tie_to_supervisor()
    os.umask(UMASK)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    number = int(arguments[1])
    configure("text", server=number)
    try:
        settings = load_settings(Path(arguments[0]))
        configure(settings.log_format, server=number, secrets=[settings.secret, *passwords(settings.dsns)])
        metrics = Metrics()
        step = metrics.timed(faults.steps(number))
        certificates = Certificates(settings.tls) if settings.tls is not None else None
        tls = certificates.client if certificates is not None else None
        log = open_log(settings)
        replicate = settings.replicate != "none"
        if len(arguments) > 2:
            settings = join(number, arguments[2], settings, log, open_database)
        largest = [log.largest] if replicate else []
        database = open_database(number, settings, step, *largest)
        if isinstance(database, Changeable) and database.torn:
            database.close()
            settings = mend(number, settings, log, open_database)
            database = open_database(number, settings, step, *largest)
        now = stored(database)
        if now is not None and now.number > settings.configuration:
            settings = followed(settings, now)
            settings.save()
            database.close()
            database = open_database(number, settings, step, *largest)
        transport = HttpTransport(number, settings, tls=tls)
        node = Node(
            number, settings.servers, database, log, transport, idle=settings.idle, lost=settings.lost, step=step,
            metrics=metrics, members=settings.numbers,
        )  # fmt: skip
        if replicate and isinstance(database, Changeable):
            first = first_configuration(settings, log)
            node.changes = Changes(node, database, first, step=step, check=check_program)
        if (
            now.number if now is not None else 0
        ) < settings.configuration:  # it did not answer when the change was activated
            log.reissue(log.fence().epoch)
            node.incarnation = confirm(number, database, log)
            node.recover()
        interface: Callable[..., Server] = Server
        application: Any
        if settings.recording:
            from plait.gyro.web.server import WebServer
            from plait.gyro.web.server import load as load_web

            interface = functools.partial(WebServer, tls=tls)
            application = load_web(number, settings)
        else:
            application = Application(load(settings.application), settings.routes)
        member = number in settings.numbers
        if member:
            version = agree(number, settings, application.module, database, log, now)
            check_replication(number, replicate, settings.schema, database, log)
            node.incarnation = confirm(number, database, log, older=number in settings.older)
            start = announce(number, database, log)
            if replicate and isinstance(database, Outbox):
                node.shipper = Shipper(
                    number, node.incarnation, database, log, acknowledged=settings.replicate == "acknowledged",
                    wait=settings.wait, step=step, stop=node.end,
                )  # fmt: skip
        elif not inherited():
            logger.error("error: server %d was removed from the cluster", number, extra=event("removed"))
            return REMOVED
        else:
            version = Version(0, Content())
            node.end(f"server {number} was removed: it is not a member of configuration {settings.configuration}")
        answering = interface(number, settings, application, node, version=version.number)
        answering.tls = tls
        if member:
            node.start()
    except ActivatedError:
        log.close()
        database.close()
        renew(None)
    except PlaitError as error:
        message, hint = error.spelled(_option)
        logger.error("error: %s\nhint: %s", message, hint, extra=event("start_refused", error=message, hint=hint))
        return 2
    except ReplacedError as error:
        logger.error("error: %s\nhint: remove this database: the rebuilt one has everything that the log has", error)
        return 2
    except (DatabaseGoneError, LogGoneError) as error:
        logger.error("error: server %d: %s", number, error, extra=event("start_failed", error=error))
        return 3
    url = settings.url(number) if member else ""
    config = uvicorn.Config(
        answering,
        log_config=None,
        access_log=False,
        http=door(answering.calls) if answering.frames else "httptools",
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=settings.proxies,
        timeout_graceful_shutdown=2,
        ssl_certfile=settings.tls.certificate if settings.tls is not None else None,
        ssl_keyfile=settings.tls.key if settings.tls is not None else None,
    )
    if certificates is not None:
        config.load()
        config.ssl = certificates.server
        certificates.watch()
        signal.signal(signal.SIGHUP, lambda *_: certificates.stir())
    server = uvicorn.Server(config)

    def ended() -> None:
        server.should_exit = True

    if member:
        watching = functools.partial(watch, os.getppid(), node, version, start, ended)
        threading.Thread(target=watching, name="watch", daemon=True).start()
    else:
        threading.Timer(LINGER, ended).start()
    try:
        listening = listen(settings.host, int(url.rpartition(":")[2] or 0))
    except OSError as error:
        logger.error("error: server %d cannot listen at %s: %s", number, url, error, extra=event("start_failed"))
        return 3
    if settings.log_format == "json":  # as text, the supervisor says this
        facts = event("started", url=url, epoch=node.epoch, applied=node.applied, pid=os.getpid())
        logger.info("server %d has started", number, extra=facts)
    for name in (signal.SIGTERM, signal.SIGINT):  # uvicorn ends gracefully, then raises the signal again
        signal.signal(name, lambda *_: None)
    collect_less()
    server.run(sockets=[listening.dup()])
    node.stop()
    log.close()
    database.close()
    if node.activated is not None:
        renew(listening)
    listening.close()
    if settings.log_format == "json":
        logger.info("server %d has stopped", number, extra=event("stopped", visits=metrics.visits))
    if not member:
        logger.info("server %d was removed and ends", number, extra=event("removed"))
        return REMOVED
    return 0 if server.started else 3


def _option(argument: Argument) -> str:
    """An argument as an option of `plait gyro serve`, whose output this is."""
    name = f"--{argument.name.replace('_', '-')}"
    return f"{name} {argument.value}" if argument.given else name


def collect_less() -> None:
    """Let the garbage collector ignore what exists now, which is not garbage, and look less often for more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
