"""The web server of `plait explore`.

GET  /, /viewer.js, …       the page
GET  /api/model             the model, or why it does not load
POST /api/walk              the last state of a run: what is possible, what is not and why, properties, watches, source
POST /api/search            a search in the background; GET /api/search/ID/events, DELETE /api/search/ID
POST /api/graph             the state graph, collapsed
GET  /api/coverage          coverage on the source
POST /api/export            a run as ITF, pytest test or JSON
GET  /api/events            reload and error, when the model is saved

The server keeps nothing about a client: a request contains the whole run. `plait.explore.guard` lets only the page in.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from plait.explore.explorer import WALK, Explorer, RefusedError, explored
from plait.explore.guard import Guard
from plait.explore.process import Reply
from plait.explore.searches import ALONE
from plait.explore.worker import DONE, error_body
from plait.kernel.errors import PlaitError, UsageError
from plait.kernel.extras import needs

with needs("explore"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

LARGEST = 4 << 20
"""Bytes of a request."""
SLOWEST = 10.0
"""Seconds in which the whole request must arrive."""
MOST_STREAMS = 500
CONNECTIONS = 2_000

Endpoint = Callable[[Request], Awaitable[Response]]


class Pages:
    """The pages of a model that is explored."""

    def __init__(
        self,
        target: str,
        parameters: Mapping[str, str],
        *,
        memory: int | None = None,
        seconds: float = WALK,
        alone: float = ALONE,
    ) -> None:
        self.target, self.parameters = target, parameters
        self.memory, self.seconds, self.alone = memory, seconds, alone
        self.explorer: Explorer
        self._streams = 0

    def app(self) -> Starlette:
        """The application, without the guard."""
        return Starlette(
            routes=[
                Route("/", _plain(self.page)),
                Route("/api/model", _plain(self.model_text)),
                Route("/api/walk", _plain(self.walk), methods=["POST"]),
                Route("/api/export", _plain(self.export), methods=["POST"]),
                Route("/api/graph", _plain(self.graph), methods=["POST"]),
                Route("/api/coverage", _plain(self.coverage)),
                Route("/api/search", _plain(self.search), methods=["POST"]),
                Route("/api/search/{number}/events", _plain(self.search_events)),
                Route("/api/search/{number}", _plain(self.stop_search), methods=["DELETE"]),
                Route("/api/events", _plain(self.events)),
                Route("/{name}", _plain(self.file)),
            ],
            exception_handlers={HTTPException: _not_found},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        async with explored(
            self.target, self.parameters, memory=self.memory, seconds=self.seconds, alone=self.alone
        ) as self.explorer:
            yield

    async def page(self, _request: Request) -> Response:
        """The page."""
        viewer = _viewer()
        return Response(viewer.explorer_page(), media_type="text/html")

    async def file(self, request: Request) -> Response:
        """A script or style sheet of the page."""
        from plait.report.markup import asset

        name, viewer = request.path_params["name"], _viewer()
        if name not in viewer.FILES:
            raise HTTPException(404)
        try:
            return Response(asset(name), media_type=viewer.FILES[name])
        except OSError:
            raise _not_built() from None

    async def model_text(self, _request: Request) -> Response:
        """The model."""
        return _answer(await self.explorer.model())

    async def walk(self, request: Request) -> Response:
        """The last state of a run."""
        return _answer(await self.explorer.ask("walk", await _body(request)))

    async def export(self, request: Request) -> Response:
        """A run in another format."""
        reply = await self.explorer.ask("export", await _body(request))
        if reply.status != DONE:
            return _answer(reply)
        found = msgspec.json.decode(reply.body)
        disposition = f'attachment; filename="{found["name"]}"'
        return Response(found["content"], media_type=found["type"], headers={"content-disposition": disposition})

    async def search(self, request: Request) -> Response:
        """Begin a search in the background."""
        return _json({"id": self.explorer.search(await _body(request)).number})

    async def search_events(self, request: Request) -> Response:
        """The progress and the result of a search."""
        return self._stream(self.explorer.found(request.path_params["number"]).events())

    async def stop_search(self, request: Request) -> Response:
        """End a search."""
        await self.explorer.found(request.path_params["number"]).stop("stopped")
        return _json({})

    async def graph(self, request: Request) -> Response:
        """The state graph, collapsed."""
        return _answer(await self.explorer.graph(await _body(request)))

    async def coverage(self, _request: Request) -> Response:
        """Coverage on the source."""
        return _answer(await self.explorer.coverage())

    async def events(self, _request: Request) -> Response:
        """Events when the model is saved."""
        return self._stream(self.explorer.events())

    def _stream(self, events: AsyncIterator[bytes]) -> Response:
        if self._streams >= MOST_STREAMS:
            raise RefusedError(429, "too many pages listen", "close other pages of this server")
        self._streams += 1

        async def counted() -> AsyncIterator[bytes]:
            try:
                async for one in events:
                    yield one
            finally:
                self._streams -= 1

        return StreamingResponse(counted(), media_type="text/event-stream")


def serve(
    target: str,
    parameters: Mapping[str, str],
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    memory: int | None = None,
    seconds: float = WALK,
    alone: float = ALONE,
) -> None:
    """Serve a model until Ctrl-C. `ready` gets the address of the page when the server accepts connections.

    `memory` bounds the bytes of each process that has the model; without it, half of the machine's memory does. `seconds`
    bounds the time of an answer about a run. A search that no page listens to ends after `alone` seconds.
    """
    listener = _listener(host, port)
    port = listener.getsockname()[1]
    secret = secrets.token_urlsafe(24)
    name = f"[{host}]" if ":" in host else host
    pages = Pages(target, parameters, memory=memory, seconds=seconds, alone=alone)
    app = Guard(pages.app(), secret=secret, host=host, port=port)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    logging.getLogger("uvicorn.error").addFilter(_is_worth_reading)
    shown = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)

    async def run() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            ready(f"http://{shown}:{port}/?secret={secret}")
        while not server.should_exit and not serving.done():
            await asyncio.sleep(0.1)
        await pages.explorer.close()
        await serving

    asyncio.run(run())


def _is_worth_reading(record: logging.LogRecord) -> bool:
    """Whether a message of uvicorn says more than that requests were ended with the server."""
    cancelled = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cancelled and "graceful shutdown" not in record.getMessage()


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A laptop that was closed never says goodbye: what it does not confirm in this time ends its connections.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(ALONE * 1000))
        listener.bind(address)
    except socket.gaierror as error:
        raise UsageError(
            f"{host} is no address of this machine: {error.strerror or error}",
            hint="choose another --host, or leave it out",
        ) from None
    except OSError as error:
        raise UsageError(
            f"{host}:{port} cannot be used: {error.strerror or error}", hint="choose another --port, or leave it out"
        ) from None
    return listener


def _viewer() -> Any:
    """The part of the report that has the page."""
    if importlib.util.find_spec("plait.report.viewer") is None:
        raise _not_built()
    return importlib.import_module("plait.report.viewer")


def _not_built() -> RefusedError:
    return RefusedError(503, "the viewer is not built", "run make setup in the clone of Plait")


def _plain(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose errors are answers."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RefusedError as error:
            return _json(error_body(error.message, error.hint), error.status)
        except PlaitError as error:
            return _json(error_body(error.message, error.hint), 400)
        except ClientDisconnect:
            return Response(status_code=400)

    return answered


async def _body(request: Request) -> Any:
    """The body of a request as JSON."""
    length = request.headers.get("content-length", "0")
    body = bytearray()
    if not length.isdigit() or int(length) > LARGEST:
        raise RefusedError(413, "the request is too large", f"send at most {LARGEST >> 20} MiB")

    async def arrive() -> None:
        async for chunk in request.stream():
            body.extend(chunk)
            if len(body) > LARGEST:
                raise RefusedError(413, "the request is too large", f"send at most {LARGEST >> 20} MiB")

    try:
        await asyncio.wait_for(arrive(), SLOWEST)
    except TimeoutError:
        raise RefusedError(400, f"the request did not arrive within {SLOWEST:g} s", "send it again") from None
    try:
        found = msgspec.json.decode(bytes(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError(400, f"the request is not JSON: {error}", "reload the page") from None
    if not isinstance(found, dict):
        raise RefusedError(400, "the request is not a JSON object", "reload the page")
    return found


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    headers = getattr(error, "headers", None)
    said = error_body(
        f"{request.method} {request.url.path} does not exist", "open the address that plait explore printed"
    )
    return _json(said, status, headers)


def _answer(reply: Reply) -> Response:
    return Response(reply.body, reply.status, media_type="application/json")


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, headers, media_type="application/json")
