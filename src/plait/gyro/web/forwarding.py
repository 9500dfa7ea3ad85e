"""Forwards requests to the server that executes them. The client, perhaps a browser, sees only the server that it asked."""

from __future__ import annotations

import http.client
import threading
import urllib.parse
from collections.abc import Mapping, Sequence

from plait.gyro.belt.http import Peer, TlsContext
from plait.gyro.web.requests import WebRequest, WebResponse

_HOP = {
    *("connection", "content-length", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
    *("transfer-encoding", "upgrade", "expect"),
}
"""Headers that concern one connection only (RFC 9110, section 7.6.1)."""
_ADDED = {"date", "server"}
"""Headers that every server adds itself."""


class Forwarder:
    """Keep-alive connections to the other servers, one per server and thread."""

    def __init__(self, urls: Sequence[str], *, timeout: float, tls: TlsContext | None = None) -> None:
        self._peers = [Peer(url, timeout=timeout, tls=tls) for url in urls]
        self._mine = threading.local()

    def send(self, server: int, request: WebRequest, added: Mapping[str, str]) -> WebResponse:
        """Send a request to a server. OSError: it may or may not have been executed.

        It is sent again on a new connection if the server has closed the kept one. This is safe, because the request
        has a name, and a server executes a name once.
        """
        known = self._mine.__dict__.setdefault("connections", {})
        for fresh in (False, True):
            connection = known.get(server)
            if connection is None or fresh:
                connection = known[server] = self._peers[server].connection()
                fresh = True
            try:
                return self._exchange(connection, request, added)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                connection.close()
                known.pop(server)
                if fresh:
                    raise OSError(str(error)) from None
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                known.pop(server)
                raise OSError(f"{type(error).__name__}: {error}") from None
        raise OSError("no connection")

    def _exchange(
        self, connection: http.client.HTTPConnection, request: WebRequest, added: Mapping[str, str]
    ) -> WebResponse:
        url = urllib.parse.quote(request.path, safe="/:@!$&'()*+,;=~") + (f"?{request.query}" if request.query else "")
        connection.putrequest(request.method, url, skip_host=True, skip_accept_encoding=True)
        replaced = {name.lower() for name in added}
        for name, value in [*((n, v) for n, v in request.headers if n not in _HOP | replaced), *added.items()]:
            connection.putheader(name, value)
        connection.putheader("content-length", str(len(request.body)))
        connection.endheaders(request.body)
        answer = connection.getresponse()
        headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in _HOP | _ADDED]
        return WebResponse(answer.status, headers, answer.read())
