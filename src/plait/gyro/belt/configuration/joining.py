"""A server that joins a cluster: it builds its database from the log, and waits for the change that makes it a member."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from plait.gyro.belt.configuration.follower import Follower
from plait.gyro.belt.configuration.request import first_configuration, followed
from plait.gyro.belt.databases.changeable import Changeable
from plait.gyro.belt.identity import key
from plait.gyro.belt.logs.log import Log, LogGoneError
from plait.gyro.belt.replication.rebuild import check_rebuild, initial
from plait.gyro.belt.settings import Settings
from plait.kernel.errors import UsageError

logger = logging.getLogger("plait.gyro")
PAUSE = 0.02


def join(number: int, url: str, settings: Settings, log: Log, open_database: Callable[..., Any]) -> Settings:
    """Follow the log until this server is a member; return its settings. It answers /status meanwhile."""
    check_rebuild(number, log)
    if log.agree(f"server {number}", url) != url:
        raise UsageError(
            f"server {number} has another URL than {url}", hint="use the number that plait gyro serve --join has given"
        )
    schema = initial(log)
    database = open_database(number, msgspec.structs.replace(settings, schema=schema), lambda _: None, log.largest)
    if not isinstance(database, Changeable):
        raise UsageError("this DBMS cannot merge rows, so no server can join", hint="use another DBMS")
    before = log.agreed(key(number, log.fence().incarnations.get(number, 0)))
    if database.identity() is not None or (database.torn and before is not None):  # it has joined before
        database.close()
        return settings
    answering = None
    parent = os.getppid()
    try:
        follower = Follower(number, database, log, first_configuration(settings, log))
        if number not in follower.state.configuration.numbers:
            answering = _Answering(number, url, settings, follower, log)
        while number not in follower.state.configuration.numbers:
            try:
                end = log.fence().last
                if not follower.step(end):
                    time.sleep(PAUSE)
                follower.end = end
            except LogGoneError as error:
                logger.warning("server %d: the log does not answer: %s", number, error)
                time.sleep(1.0)
            if os.getppid() != parent:
                os._exit(0)
        follower.identify()
    finally:
        if answering is not None:
            answering.close()
        database.close()
    now = follower.state.configuration
    if settings.configuration < now.number:
        settings = followed(settings, now)
        settings.save()
    return settings


class _Answering:
    """The HTTP interface of a server that is not a member yet."""

    def __init__(self, number: int, url: str, settings: Settings, follower: Follower, log: Log) -> None:
        def state() -> dict[str, Any]:
            lag = max(follower.end - follower.applied, 0)
            return {"server": number, "joining": True, "applied": follower.applied, "lag": lag, "ready": False,
                    "reasons": ["the server joins the cluster"]}  # fmt: skip

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200 if self.path == "/status" else 503, state())

            def do_POST(self) -> None:
                self._answer(503, {"error": f"server {number} joins the cluster", "hint": "try again"})

            def _answer(self, status: int, value: dict[str, Any]) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        port = int(url.rpartition(":")[2])
        try:
            self._server = ThreadingHTTPServer((settings.host, port), Handler)
        except OSError as error:
            raise UsageError(f"cannot listen at {settings.host}:{port}: {error}", hint="choose another port") from None
        self._server.daemon_threads = True
        if settings.tls is not None:
            from plait.gyro.belt.service.certificates import Certificates

            self._server.socket = Certificates(settings.tls).server.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, name="joining", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
