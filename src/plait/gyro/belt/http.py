"""Keep-alive HTTP and HTTPS connections to servers, for clients and other servers."""

from __future__ import annotations

import http.client
import ssl
import threading
import urllib.parse
from collections.abc import Callable

TlsContext = Callable[[], ssl.SSLContext]
"""Returns the context for a new connection. Without one, HTTPS uses the authorities of the system."""


class Peer:
    """One server, with one connection per thread."""

    def __init__(self, url: str, *, timeout: float = 5.0, tls: TlsContext | None = None) -> None:
        parts = urllib.parse.urlsplit(url)
        self.url = url.rstrip("/")
        self._tls = (tls or ssl.create_default_context) if parts.scheme == "https" else None
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or (443 if self._tls else 80)
        self._timeout = timeout
        self._mine = threading.local()
        self._made: list[http.client.HTTPConnection] = []

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return status and body. OSError: there is no answer, and the server may or may not have got the request."""
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        for fresh in (False, True):
            if connection is None or fresh:
                connection = self.connection()
                self._mine.connection = connection
                self._made.append(connection)
                fresh = True
            try:
                connection.request(method, path, body, headers or {})
                response = connection.getresponse()
                return response.status, response.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                self._drop(connection)  # the server closed a kept connection: try a new one
                if fresh:
                    raise OSError(str(error)) from None
            except (OSError, http.client.HTTPException) as error:
                self._drop(connection)
                raise OSError(f"{self.url}: {error}") from None
        raise OSError(f"{self.url} does not answer")

    def call(self, operation: str, body: bytes) -> tuple[int, bytes]:
        """Send a call. OSError: as for `request`."""
        path = f"/call/{urllib.parse.quote(operation)}"
        return self.request("POST", path, body, {"Content-Type": "application/json"})

    def connection(self) -> http.client.HTTPConnection:
        """A new connection."""
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls())

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        self._mine.connection = None
        if connection in self._made:
            self._made.remove(connection)

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._made:
            connection.close()
        self._made.clear()


def ask(url: str, path: str, *, timeout: float = 3.0, tls: TlsContext | None = None) -> tuple[int, bytes]:
    """Send one GET request on a new connection."""
    peer = Peer(url, timeout=timeout, tls=tls)
    try:
        return peer.request("GET", path)
    finally:
        peer.close()
