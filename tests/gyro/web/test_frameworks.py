"""What applications see of the servers: start-up code outside of requests, the database only in requests, no secrets."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import apsw
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from plait.gyro.belt.databases.dbapi import SAVEPOINT
from plait.gyro.belt.databases.sqlite.connection import SqliteConnection
from plait.gyro.belt.records import OperationError
from plait.gyro.belt.transport import SECRET
from plait.gyro.web import engine
from plait.gyro.web.engine import current, inside
from plait.gyro.web.requests import WebRequest
from plait.gyro.web.server import headers
from plait.gyro.web.starlette_framework import StarletteFramework
from plait.gyro.web.wsgi import environ_of
from plait.kernel.errors import UsageError


class Lent:
    """Stands for the connection of a request."""

    native = False


def test_start_up_code_runs_once_and_outside_of_requests() -> None:
    seen: list[Any] = []

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[dict[str, str]]:
        seen.append(current())
        yield {"greeting": "hello"}

    async def page(request: Request) -> PlainTextResponse:
        seen.append(current())
        return PlainTextResponse(request.state.greeting)

    framework = StarletteFramework(Starlette(routes=[Route("/", page)], lifespan=lifespan))
    lent: Any = Lent()
    with inside(lent):
        assert [framework.respond(WebRequest("GET", "/")).body for _ in range(2)] == [b"hello", b"hello"]
    assert seen == [None, lent, lent]


def test_start_up_code_that_fails_is_an_error() -> None:
    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        raise ValueError("no cache server")
        yield

    with pytest.raises(UsageError, match="start-up code of the application fails: ValueError: no cache server"):
        StarletteFramework(Starlette(lifespan=lifespan)).start()


def test_an_exception_of_an_endpoint_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def page(_request: Request) -> PlainTextResponse:
        raise ValueError("a bug")

    found = StarletteFramework(Starlette(routes=[Route("/", page)])).respond(WebRequest("GET", "/"))
    assert found.status == 500
    assert "GET / raised" in caplog.text
    assert "ValueError: a bug" in caplog.text


def test_the_application_sees_its_client_and_no_secret() -> None:
    raw = [
        (SECRET.encode(), b"secret"),
        (b"Accept", b"*/*"),
        (b"X-Forwarded-For", b"127.0.0.1"),
        (b"X-Forwarded-Proto", b"https"),
    ]
    seen = headers(raw, "192.0.2.7", "http", trusted=False)
    assert sorted(seen) == [
        ("accept", "*/*"),
        ("x-forwarded-for", "127.0.0.1, 192.0.2.7"),
        ("x-forwarded-proto", "http"),
    ]
    environ = environ_of(WebRequest("GET", "/", "", seen))
    assert (environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]) == ("192.0.2.7", "http")
    assert (
        environ_of(WebRequest("GET", "/", "", headers([], "192.0.2.7", "https", trusted=False)))["REMOTE_ADDR"]
        == "192.0.2.7"
    )
    forwarded = [(n.encode(), v.encode()) for n, v in seen]
    assert headers([*forwarded, (SECRET.encode(), b"secret")], "192.0.2.1", "http", trusted=True) == seen


def test_a_thread_of_the_application_has_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its statements would be lost in a scratch database."""
    monkeypatch.setattr(engine, "_STARTED", threading.Event())
    engine.scratch().close()  # the application starts
    engine.started()
    with pytest.raises(OperationError, match="outside of a request"):
        engine.scratch()


def test_a_connection_that_the_application_keeps_does_nothing_in_later_operations() -> None:
    db = apsw.Connection(":memory:")
    db.execute(f"CREATE TABLE t (a INTEGER PRIMARY KEY); BEGIN; SAVEPOINT {SAVEPOINT}")
    kept = SqliteConnection(db, None)
    kept.execute("INSERT INTO t VALUES (1)")
    kept.end()
    db.execute(f"COMMIT; BEGIN; SAVEPOINT {SAVEPOINT}; INSERT INTO t VALUES (2)")  # the next operation
    kept.rollback()
    for use in (lambda: kept.execute("SELECT a FROM t"), lambda: kept.control("SAVEPOINT x"), kept.undo):
        with pytest.raises(sqlite3.ProgrammingError, match="an operation that has ended"):
            use()
    db.execute("COMMIT")
    assert list(db.execute("SELECT a FROM t")) == [(1,), (2,)]
