"""Passes the token between servers over HTTP, with the secret of the cluster and optional simulated delays."""

from __future__ import annotations

import threading
import time
from typing import Protocol

import msgspec

from plait.gyro.belt.http import Peer, TlsContext
from plait.gyro.belt.records import Token
from plait.gyro.belt.settings import Settings

SECRET = "X-Plait-Gyro-Secret"


class Transport(Protocol):
    """Messages between servers."""

    def send(self, server: int, token: Token) -> bool:
        """Pass the token to a server; False if it may not have arrived."""

    def hint(self) -> None:
        """Notify all other servers that an operation waits for the token."""


class HttpTransport:
    """Sends messages to the other servers of a cluster."""

    def __init__(self, server: int, settings: Settings, *, tls: TlsContext | None = None) -> None:
        self._server = server
        self._settings = settings
        self._peers = {n: Peer(settings.url(n), timeout=2.0, tls=tls) for n in settings.numbers}
        self._headers = {SECRET: settings.secret, "Content-Type": "application/msgpack"}
        self._wanted = threading.Event()
        threading.Thread(target=self._hints, name="hints", daemon=True).start()

    def delay(self, server: int) -> float:
        """The simulated one-way delay to a server, in seconds."""
        delays = self._settings.delays
        return delays[self._server][server] if max(self._server, server) < len(delays) else 0.0

    def send(self, server: int, token: Token) -> bool:
        """Pass the token to a server; False if it may not have arrived."""
        if (delay := self.delay(server)) > 0:
            time.sleep(delay)
        try:
            status, _ = self._peers[server].request("POST", "/belt/token", msgspec.msgpack.encode(token), self._headers)
        except OSError:
            return False
        return status == 200

    def hint(self) -> None:
        """Notify the other servers, in the background, that an operation waits for the token."""
        self._wanted.set()

    def _hints(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            for server, peer in self._peers.items():
                if server != self._server:
                    try:
                        peer.request("POST", "/belt/wanted", b"", self._headers)
                    except OSError:
                        continue
            time.sleep(0.001)
