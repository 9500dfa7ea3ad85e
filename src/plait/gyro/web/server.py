"""A server process of a web application. It answers every request itself: it executes or forwards it.

The paths of `plait.gyro.belt.server` for operators and servers stay reserved (`/status`, `/metrics`, `/health`,
`/ready`, `/cluster`, `/belt/…`). All others belong to the application.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import msgspec

from plait.gyro.belt.http import TlsContext
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Call, DatabaseGoneError, OperationError, Outcome, OversizeError
from plait.gyro.belt.routing import Kind, RequestError
from plait.gyro.belt.server import Server, logger
from plait.gyro.belt.settings import DIALECTS, Settings
from plait.gyro.belt.transport import SECRET
from plait.gyro.web.application import WebApplication
from plait.gyro.web.contract import UnrecordedError, contract
from plait.gyro.web.engine import install, started
from plait.gyro.web.forwarding import Forwarder
from plait.gyro.web.frameworks import load_application
from plait.gyro.web.requests import Framework, WebRequest, WebResponse
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

RESERVED = ("/status", "/metrics", "/health", "/ready", "/cluster", "/belt")
KEY = "idempotency-key"
CONFIGURATION = "plait-configuration"
"""The header with the configuration of the server that forwards a request."""
FOR, PROTO = "x-forwarded-for", "x-forwarded-proto"
_NAME = 200
_HINT = "record it: add a test that makes this request, then run plait gyro record again"


class WebServer(Server):
    """The HTTP interface of a node that runs a web application."""

    frames = 0
    application: WebApplication  # type: ignore[assignment]

    def __init__(
        self,
        number: int,
        settings: Settings,
        application: WebApplication,
        node: Node,
        *,
        version: int = 1,
        tls: TlsContext | None = None,
    ) -> None:
        super().__init__(number, settings, application, node, version=version)  # type: ignore[arg-type]
        self._forwarder = Forwarder(settings.urls, timeout=settings.wait + 5, tls=tls)
        self._forwards = ThreadPoolExecutor(settings.threads, thread_name_prefix="forward")
        self._replies = msgspec.json.Decoder(WebResponse)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] == "http" and not reserved(scope["path"]):
            request = Request(scope, receive)
            client = (scope["client"] or ("",))[0]
            if not self.trusted(request) and (refused := self.calls.hasty(client)) is not None:
                response = self._response(refused)
            else:
                response = await self.web(request)
            await response(scope, receive, send)
        else:
            await self._others(scope, receive, send)

    async def web(self, request: Request) -> Response:
        """Answer a request of the application."""
        begin = time.perf_counter()
        kind: Kind | None = None
        called = f"{request.method} {request.url.path}"
        try:
            asked = WebRequest(
                request.method,
                request.url.path if not request.scope.get("path") else request.scope["path"],
                request.scope["query_string"].decode("latin-1"),
                headers(
                    request.scope["headers"],
                    request.client.host if request.client is not None else "",
                    request.scope["scheme"],
                    trusted=self.trusted(request),
                ),
                await self._body(request, self.settings.limit),
            )
            mine = self.settings
            call, rank, kind = self.application.operation(
                self._name(asked), asked, mine.servers, mine.rank(self.number)
            )
            called = call.operation
            if mine.numbers[rank] != self.number:  # a server that was removed forwards all requests
                return await self._forward(rank, call, request, asked)
            if self.node.broken is not None:
                raise DatabaseGoneError(self.node.broken)
            if (refused := self.calls.full(kind)) is not None:
                return self._response(refused)
            outcome = await self.calls.perform(call, kind)
            self.node.metrics.requests[kind].observe(time.perf_counter() - begin)
            return self._answer(outcome)
        except RequestError as error:
            self.node.metrics.refused += 1
            return _problem(error.status, error.message, error.hint)
        except OversizeError as error:
            return _problem(413, error.message, "split the operation: several smaller requests")
        except UnrecordedError as error:
            self.node.metrics.refused += 1
            logger.warning("server %d: %s", self.number, error.message)
            return _problem(409, error.message, _HINT)
        except OperationError as error:
            return _problem(422 if error.kind == "RequestError" else 500, str(error), f"the request was {called}")
        except DatabaseGoneError as error:
            self.node.metrics.failures += 1
            return _problem(503, f"server {self.number} cannot execute the request now: {error}", "try again")
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            logger.exception("server %d: %s", self.number, called)
            return _problem(500, f"internal error: {type(error).__name__}", "see the output of the server")

    def _name(self, request: WebRequest) -> str:
        """The name of a request. A request with the same name is not executed again."""
        name = request.header(KEY)
        if len(name) > _NAME:
            raise RequestError(400, f"{KEY} has {len(name)} characters", f"use at most {_NAME} characters")
        return name or uuid.uuid4().hex

    async def _forward(self, server: int, call: Call, request: Request, asked: WebRequest) -> Response:
        """Send a request to the server that executes it; return its answer."""
        if self.trusted(request):
            if request.headers.get(CONFIGURATION) != str(self.settings.configuration):
                raise DatabaseGoneError("the configuration of the cluster changes")
            raise RequestError(500, f"two servers disagree about the server of {call.operation}", "restart all servers")
        self.node.metrics.redirected += 1
        added = {SECRET: self.settings.secret, KEY: call.request, CONFIGURATION: str(self.settings.configuration)}
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(self._forwards, self._forwarder.send, server, asked, added)
        except OSError as error:
            number = self.settings.numbers[server]
            raise DatabaseGoneError(f"server {number} does not answer: {error}") from None
        return _response(answer, [])

    def _answer(self, outcome: Outcome) -> Response:
        """The response of the application, with the position of the operation."""
        place = [
            ("plait-server", str(self.number if outcome.server is None else outcome.server)),
            ("plait-seq", str(outcome.seq)),
            ("plait-position", str(outcome.position)),
            ("plait-wrote", "1" if outcome.wrote or outcome.repeated else "0"),  # only writers have their reply stored
        ]
        return _response(self._replies.decode(outcome.reply), place)


def reserved(path: str) -> bool:
    """Whether a path belongs to the server, not to the application."""
    return any(path == r or path.startswith(f"{r}/") for r in RESERVED)


def headers(raw: Iterable[tuple[bytes, bytes]], client: str, scheme: str, *, trusted: bool) -> list[tuple[str, str]]:
    """The headers that the application sees: without the secret of servers, with the address and the scheme of the client.

    Only another server (`trusted`) is believed what it says about the client. The address is the last one in
    `X-Forwarded-For`: `environ_of` takes it from there.
    """
    found = [(n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in raw]
    found = [(name, value) for name, value in found if name not in (SECRET.lower(), CONFIGURATION)]
    if trusted:
        return found
    before = [value for name, value in found if name == FOR]
    kept = [(name, value) for name, value in found if name not in (FOR, PROTO)]
    return [*kept, (FOR, ", ".join([*before, client])), (PROTO, scheme)]


def _response(answer: WebResponse, added: list[tuple[str, str]]) -> Response:
    response = Response(answer.body, answer.status)
    kept = [(n, v) for n, v in answer.headers if n.lower() != "content-length" or not answer.body]
    if answer.body:
        kept.append(("content-length", str(len(answer.body))))
    response.raw_headers = [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in [*kept, *added]]
    return response


def _problem(status: int, error: str, hint: str) -> Response:
    wait = {"retry-after": "1"} if status == 503 else None
    return Response(msgspec.json.encode({"error": error, "hint": hint}), status, wait, "application/json")


def load(number: int, settings: Settings) -> WebApplication:
    """Import the application of the settings, with engines that connect to the operation."""
    rules = contract(settings.recording, dialect=DIALECTS[settings.db])
    schema = settings.schema if settings.schema.startswith(rules.schema) else rules.schema  # a change has brought it
    rank = settings.rank(number)
    framework, module = imported(settings.application, settings.db, schema, server=rank, servers=settings.servers)
    return WebApplication(framework, module, rules, settings.routes)


def imported(
    application: str, db: str, schema: str, *, server: int = 0, servers: int = 1
) -> tuple[Framework, ModuleType]:
    """Import an application, with engines that connect to the operation."""
    install(db, schema, server=server, servers=servers)
    framework, module = load_application(application)
    framework.start()
    started()
    if taken := [rule for rule in framework.rules() if reserved(rule)]:
        raise UsageError(
            f"{application} has the URL {taken[0]}, which the servers use themselves",
            hint=f"rename it; reserved: {', '.join(RESERVED)}",
        )
    return framework, module
