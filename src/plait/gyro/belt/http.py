"""Keep-alive HTTP connections to servers, for clients and other servers."""

from __future__ import annotations

import http.client
import threading
import urllib.parse


class Peer:
    """One server, with one connection per thread."""

    def __init__(self, url: str, *, timeout: float = 5.0) -> None:
        parts = urllib.parse.urlsplit(url)
        self.url = url.rstrip("/")
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
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
                connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
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


def ask(url: str, path: str, *, timeout: float = 3.0) -> tuple[int, bytes]:
    """Send one GET request on a new connection."""
    peer = Peer(url, timeout=timeout)
    try:
        return peer.request("GET", path)
    finally:
        peer.close()
