"""Requests and responses of WSGI applications (PEP 3333)."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from plait.gyro.web.requests import WebRequest, WebResponse


def environ_of(request: WebRequest) -> dict[str, Any]:
    """The WSGI environment of a request."""
    host, _, port = request.header("host").partition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path.encode().decode("latin-1"),
        "QUERY_STRING": request.query,
        "SERVER_NAME": host or "localhost",
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": request.header("x-forwarded-for").rpartition(",")[2].strip() or "127.0.0.1",
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": request.header("x-forwarded-proto") or "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in request.headers:
        key = name.upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environ[key] = value
        elif key != "CONTENT_LENGTH":
            known = environ.get(f"HTTP_{key}")
            environ[f"HTTP_{key}"] = value if known is None else f"{known}{'; ' if key == 'COOKIE' else ','}{value}"
    return environ


def request_of(environ: Mapping[str, Any], body: bytes) -> WebRequest:
    """The request of a WSGI environment."""
    headers = [
        (name.removeprefix("HTTP_").replace("_", "-").lower(), str(value))
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name == "CONTENT_TYPE" and value)
    ]
    path = str(environ.get("PATH_INFO", "")).encode("latin-1", "replace").decode("utf-8", "replace")
    return WebRequest(environ.get("REQUEST_METHOD", "GET"), path, environ.get("QUERY_STRING", ""), headers, body)


def body_of(environ: dict[str, Any]) -> bytes:
    """Read the body of a WSGI environment, and put it back."""
    stream = environ.get("wsgi.input")
    length = environ.get("CONTENT_LENGTH") or 0
    if stream is None:
        return b""
    body: bytes = stream.read() if environ.get("wsgi.input_terminated") else stream.read(int(length))
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    return body


def run(application: Callable[..., Iterable[bytes]], request: WebRequest) -> WebResponse:
    """Run a WSGI application."""
    begun: list[tuple[str, list[tuple[str, str]]]] = []
    parts: list[bytes] = []

    def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Callable[[bytes], None]:
        begun.append((status, headers))
        return parts.append

    environ = environ_of(request)
    chunks = application(environ, start)
    try:
        parts += chunks
    finally:
        if callable(close := getattr(chunks, "close", None)):
            close()
    status, headers = begun[-1]
    return WebResponse(int(status.split(" ")[0]), [(n, v) for n, v in headers], b"".join(parts))
