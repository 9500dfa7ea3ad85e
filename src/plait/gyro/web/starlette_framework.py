"""Applications of Starlette and FastAPI. Endpoints may be plain or asynchronous; the database is used synchronously."""

from __future__ import annotations

import asyncio
import base64
import contextvars
import json
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from plait.gyro.web.requests import Match, WebRequest, WebResponse
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

logger = logging.getLogger("plait.gyro")


class StarletteFramework:
    """An application of Starlette. It runs in an event loop of its own, which also runs its start-up code."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state: dict[str, Any] = {}
        """What the start-up code has given to the requests."""
        self._lock = threading.Lock()

    def match(self, request: WebRequest) -> Match | None:
        """The endpoint of a request."""
        scope = _scope(request)
        found = _route(self.application.router.routes, scope)
        if found is None:
            return None
        rule, variables = found
        return Match(rule, dict(variables), self._session(request))

    def _session(self, request: WebRequest) -> dict[str, Any]:
        """The session, if it is in a signed cookie (SessionMiddleware)."""
        for layer in self.application.user_middleware:
            if layer.cls.__name__ == "SessionMiddleware":
                import itsdangerous

                options = layer.kwargs
                signer = itsdangerous.TimestampSigner(str(options.get("secret_key", "")))
                cookie = request.cookies.get(options.get("session_cookie", "session"), "")
                try:
                    content = signer.unsign(cookie, max_age=options.get("max_age", 14 * 24 * 60 * 60))
                    session = json.loads(base64.b64decode(content))
                except (itsdangerous.BadSignature, ValueError):
                    return {}
                return session if isinstance(session, dict) else {}
        return {}

    def start(self) -> None:
        """Run the start-up code of the application, outside of requests."""
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="application", daemon=True).start()
                starting = _start(self.application, self._state)
                contextvars.Context().run(asyncio.run_coroutine_threadsafe, starting, loop).result()
                self._loop = loop

    def respond(self, request: WebRequest) -> WebResponse:
        """Run the application."""
        self.start()
        exchange = _exchange(self.application, request, dict(self._state))
        return asyncio.run_coroutine_threadsafe(exchange, self._loop).result()  # type: ignore[arg-type]

    def rules(self) -> list[str]:
        """The rules of all URLs."""
        return [rule for rule, _ in _all(self.application.router.routes)]


def _all(routes: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for route in routes:
        if isinstance(inner := getattr(route, "routes", None), list) and inner:
            yield from _all(inner, prefix + getattr(route, "path", ""))
        elif hasattr(route, "path"):
            yield prefix + route.path, route


def _route(routes: Any, scope: dict[str, Any], prefix: str = "") -> tuple[str, Mapping[str, Any]] | None:
    with needs("serve"):
        from starlette.routing import Match as Matches

    for route in routes:
        matched, child = route.matches(scope)
        if matched is not Matches.FULL:
            continue
        if isinstance(inner := getattr(route, "routes", None), list) and inner:
            found = _route(inner, {**scope, **child}, prefix + getattr(route, "path", ""))
            if found is not None:
                return found
            continue
        return prefix + getattr(route, "path", "(mounted)"), child.get("path_params", {})
    return None


def _scope(request: WebRequest) -> dict[str, Any]:
    host, _, port = request.header("host").partition(":")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.header("x-forwarded-proto") or "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "root_path": "",
        "query_string": request.query.encode("latin-1"),
        "headers": [(n.encode("latin-1"), v.encode("latin-1")) for n, v in request.headers],
        "client": (request.header("x-forwarded-for").rpartition(",")[2].strip() or "127.0.0.1", 0),
        "server": (host or "localhost", int(port) if port.isdigit() else 80),
        "path_params": {},
        "state": {},
    }


async def _start(application: Any, state: dict[str, Any]) -> None:
    """Run the start-up code of the application."""
    ready = asyncio.Event()
    failed: list[str] = []
    asked = False

    async def receive() -> Any:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "lifespan.startup"}
        return await asyncio.Event().wait()  # it is never shut down: its process ends

    async def send(message: Any) -> None:
        if message["type"] == "lifespan.startup.failed":
            failed.append(message.get("message", ""))
        ready.set()

    async def run() -> None:
        try:
            await application({"type": "lifespan", "asgi": {"version": "3.0"}, "state": state}, receive, send)
        except Exception:
            if not failed:
                raise
        finally:
            ready.set()

    _KEPT.append(asyncio.ensure_future(run()))
    await ready.wait()
    if failed:
        raise UsageError(
            f"the start-up code of the application fails: {failed[0].strip().splitlines()[-1] if failed[0] else ''}",
            hint="correct it; it uses a scratch database with the tables and rows of the first start",
        )


_KEPT: list[Any] = []
"""The tasks of applications that have started."""


async def _exchange(application: Any, request: WebRequest, state: dict[str, Any]) -> WebResponse:
    begun: dict[str, Any] = {}
    parts: list[bytes] = []
    asked = False

    async def receive() -> Any:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()  # the client does not disconnect
        asked = True
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            begun.update(message)
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    try:
        await application({**_scope(request), "state": state}, receive, send)
    except Exception:
        if not begun:
            raise
        logger.exception(
            "%s %s raised", request.method, request.path
        )  # Starlette answers with status 500 and raises again
    headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in begun["headers"]]
    return WebResponse(begun["status"], headers, b"".join(parts))


def install(around: Any) -> None:
    """Let `around` record the requests of all applications of Starlette in this process."""
    starlette = sys.modules["starlette.applications"]
    call = starlette.Starlette.__call__

    async def recorded(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await call(self, scope, receive, send)
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        left = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return left.pop() if left else await receive()

        headers = [(n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in scope["headers"]]
        query = scope.get("query_string", b"").decode("latin-1")
        request = WebRequest(scope["method"], scope["path"], query, headers, body)
        with around(StarletteFramework(self), request):
            await call(self, scope, again, send)

    starlette.Starlette.__call__ = recorded
