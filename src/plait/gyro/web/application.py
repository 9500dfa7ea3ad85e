"""A web application as operations: a request is one operation of its endpoint, and the response is its reply."""

from __future__ import annotations

import functools
import hashlib
import logging
import sqlite3
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import msgspec

from plait.gyro.belt.databases.dbapi import Connection
from plait.gyro.belt.records import Call
from plait.gyro.belt.routing import Kind, Route, place
from plait.gyro.web.contract import Check, Contract
from plait.gyro.web.engine import inside
from plait.gyro.web.requests import Framework, WebRequest, WebResponse, canonical, endpoint, parameters

logger = logging.getLogger("plait.gyro")


class WebApplication:
    """The endpoints of a web application, with their routes and the statements that they may execute."""

    def __init__(
        self, framework: Framework, module: ModuleType, contract: Contract, routes: Mapping[str, Route]
    ) -> None:
        self.framework = framework
        self.module = module
        self.contract = contract
        self.routes = dict(routes)

    def operation(self, name: str, request: WebRequest, servers: int, here: int) -> tuple[Call, int, Kind]:
        """A request as an operation: the server that executes it, and how.

        An endpoint without a route executes no SQL. If a request lacks a key, or the value cannot be a value of its
        columns, the application may still answer (with an error, say). But it executes no statement with this key,
        and a local operation writes nothing.
        """
        match = self.framework.match(request)
        called = endpoint(request, match)
        route = self.routes.get(called) or Route(called, [], "local", [], read_only=True)
        given = parameters(request, match)
        keys = {key: canonical(given.get(key), route.kinds.get(key, "text")) for key in route.keys}
        if None in keys.values():
            given = {n: v for n, v in given.items() if keys.get(n, v) is not None}
            kept = [k for k in route.keys if keys[k] is not None][:1]
            server = place(msgspec.structs.replace(route, keys=kept), keys, servers, here)[0]
            kind: Kind = "read" if route.classed == "local" else "global"
        else:
            server, kind = place(route, keys, servers, here)
        arguments = {
            "method": request.method,
            "url": f"{request.path}?{request.query}" if request.query else request.path,
            "body": _digest(request.body),
            "caller": _digest(f"{request.header('cookie')}\n{request.header('authorization')}".encode()),
        }
        run = functools.partial(self._run, request=request, called=called, given=given, kinds=route.kinds)
        return Call(name, called, arguments, run), server, kind

    def _run(
        self,
        connection: Connection,
        *,
        request: WebRequest,
        called: str,
        given: Mapping[str, Any],
        kinds: Mapping[str, str],
    ) -> bytes:
        """Run the application in the transaction of the operation; return its response.

        As with a DBMS of its own, what the application has not committed is rolled back. A refused statement rolls back
        everything, even if the application catches the exception.
        """
        check = Check(self.contract, called, given, kinds)
        connection.watch = check
        try:
            with inside(connection):
                try:
                    response = self.framework.respond(request)
                except Exception:
                    if check.refused is None:
                        logger.exception("%s raised", called)
                    response = WebResponse(500, [("content-type", "text/plain")], b"Internal Server Error")
            if check.refused is not None:
                raise check.refused
            if _gone(check.error, connection):
                raise check.error  # type: ignore[misc]
            connection.rollback()
        finally:
            connection.end()  # the application may have kept it
        return msgspec.json.encode(response)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _gone(error: Exception | None, connection: Connection) -> bool:
    """Whether the DBMS failed, and not only a statement."""
    if error is None or isinstance(error, sqlite3.Error):
        return False
    return type(error).__module__.startswith("apsw") or bool(getattr(connection, "closed", False))
