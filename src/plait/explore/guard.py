"""Lets only the page of the explorer in.

- The Host header must name this server. So a page of another site cannot reach it by a name that it lets point to 127.0.0.1
  (DNS rebinding).
- The Origin header, if there is one, must be this server's. So a page of another site cannot send requests (cross-site
  requests).
- Requests for data must have the secret that only the address of the page contains. So other users of the machine, and
  programs that try all ports, get nothing.
- Each answer has a content security policy: the page loads nothing from, and sends nothing to, another host.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from plait.explore.worker import error_body

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """An ASGI application around another one, which refuses requests that do not come from the page."""

    def __init__(self, app: App, *, secret: str, host: str, port: int) -> None:
        self.app, self.secret, self.port = app, secret.encode(), port
        self.hosts = {f"{name}:{port}" for name in (*_LOOPBACK, host, f"[{host}]")}
        self.anywhere = _is_unspecified(host)
        """The server has all addresses of the machine: any of them is a valid Host, but no name."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", [])}
                extra = [(n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in given]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, guarded)
            return
        status, text, hint = refusal
        body = msgspec.json.encode(error_body(text, hint))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await guarded({"type": "http.response.start", "status": status, "headers": headers})
        await guarded({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """The status, the error and the hint for a request that does not come from the page."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = [value.decode("latin-1").lower() for value in headers.get(b"host", [])]
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return 403, "the Host header does not name this server", "open the address that plait explore printed"
        for origin in headers.get(b"origin", []):
            if origin.decode("latin-1").lower() != f"http://{hosts[0]}":
                return 403, "the request comes from another site", "open the address that plait explore printed"
        if any(value not in (b"same-origin", b"none") for value in headers.get(b"sec-fetch-site", [])):
            fetched = scope["path"].startswith("/api/") or headers.get(b"sec-fetch-mode", [b""]) != [b"navigate"]
            if fetched:
                return 403, "the request comes from another site", "open the address that plait explore printed"
        if scope["path"].startswith("/api/"):
            secrets = headers.get(b"x-plait-secret", [])
            if len(secrets) != 1 or not hmac.compare_digest(secrets[0], self.secret):
                return 401, "the secret is missing or wrong", "open the address that plait explore printed"
        return None

    def _is_own(self, host: str) -> bool:
        if host in self.hosts:
            return True
        name, _, port = host.rpartition(":")
        if not self.anywhere or port != str(self.port):
            return False
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


def _is_unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
