"""A request of a web application, its endpoint, and its parameters: the values by which it can be routed.

A parameter is a variable of the URL rule, or a value of the query string, of a form, of a JSON body, of the session, of
a cookie or of a header. Values are compared and routed in a *canonical* form, because a query string has text where the
statement has a number. Values that are equal in SQL have the same canonical form.
"""

from __future__ import annotations

import email.parser
import re
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Protocol

import msgspec

Value = str | int | float | bool
_NUMBER = re.compile(r"-?\d{1,18}")
_UUID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DULL = {
    *("accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-length", "content-type"),
    *("cookie", "host", "idempotency-key", "origin", "referer", "te", "transfer-encoding", "upgrade", "user-agent"),
}
"""Headers that are no parameters."""
_DEPTH = 4


class WebRequest(msgspec.Struct, frozen=True):
    """An HTTP request."""

    method: str
    path: str
    query: str = ""
    headers: list[tuple[str, str]] = []
    """Names are in lower case."""
    body: bytes = b""

    def header(self, name: str) -> str:
        """The value of a header; empty if there is none."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def cookies(self) -> dict[str, str]:
        parts = [p.partition("=") for p in self.header("cookie").split(";")]
        return {name.strip(): value.strip().strip('"') for name, _, value in parts if name.strip()}


class WebResponse(msgspec.Struct, frozen=True):
    """The response of the application. It is the reply of an operation."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Match(msgspec.Struct, frozen=True):
    """The endpoint of a request: the rule of its URL, the variables of the rule, and the session."""

    rule: str
    variables: dict[str, Any] = {}
    session: dict[str, Any] = {}


class Framework(Protocol):
    """A web application, independent of its framework."""

    def match(self, request: WebRequest) -> Match | None:
        """The endpoint of a request; None if the application has none for it."""

    def respond(self, request: WebRequest) -> WebResponse:
        """Run the application."""

    def rules(self) -> list[str]:
        """The rules of all URLs."""

    def start(self) -> None:
        """Run the start-up code of the application, outside of requests."""


def endpoint(request: WebRequest, match: Match | None) -> str:
    """The name of an endpoint: method and URL rule. HEAD is GET without a body."""
    method = "GET" if request.method == "HEAD" else request.method
    return f"{method} {match.rule}" if match is not None else f"{method} (no rule)"


def parameters(request: WebRequest, match: Match | None) -> dict[str, Value]:
    """The parameters of a request, by name.

    >>> body = b'{"item": 7, "to": {"city": "Darmstadt"}}'
    >>> request = WebRequest("POST", "/carts/3", "page=2", [("content-type", "application/json")], body)
    >>> parameters(request, Match("/carts/<int:cart>", {"cart": 3}))
    {'cart': 3, 'query_page': '2', 'json_item': 7, 'json_to_city': 'Darmstadt'}
    """
    found: dict[str, Value] = {}
    sources: list[tuple[str, Iterator[tuple[str, Any]]]] = []
    if match is not None:
        sources += [("", iter(match.variables.items())), ("session", _nested(match.session))]
    kind = request.header("content-type").partition(";")[0].strip().lower()
    sources.append(("query", _single(request.query)))
    if kind == "application/x-www-form-urlencoded":
        sources.append(("form", _single(request.body.decode("utf-8", "replace"))))
    elif kind == "multipart/form-data":
        sources.append(("form", _multipart(request)))
    elif kind == "application/json" or kind.endswith("+json"):
        sources.append(("json", _json(request.body)))
    sources.append(("cookie", iter(request.cookies.items())))
    sources.append(("header", ((n, v) for n, v in request.headers if n not in _DULL)))
    scheme, _, token = request.header("authorization").partition(" ")
    if token:
        sources.append((scheme.lower(), iter([("token", token)])))
    for prefix, pairs in sources:
        for key, value in pairs:
            if isinstance(value, uuid.UUID):
                value = str(value)
            if isinstance(value, str | int | float):
                name = re.sub(r"\W", "_", f"{prefix}_{key}" if prefix else str(key))
                found.setdefault(name, value)
    return found


def _single(text: str) -> Iterator[tuple[str, str]]:
    """The names of a query that occur once."""
    try:
        pairs = urllib.parse.parse_qs(text, keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        return
    yield from ((name, values[0]) for name, values in pairs.items() if len(values) == 1)


def _json(body: bytes) -> Iterator[tuple[str, Any]]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    yield from _nested(document)


def _nested(value: Any, prefix: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """The plain values in nested mappings."""
    if isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            yield from _nested(inner, f"{prefix}_{key}" if prefix else str(key), depth - 1)
    elif prefix:
        yield prefix, value


def _multipart(request: WebRequest) -> Iterator[tuple[str, str]]:
    """The fields of a multipart form, without its files."""
    head = f"Content-Type: {request.header('content-type')}\r\n\r\n".encode("latin-1", "replace")
    message = email.parser.BytesParser().parsebytes(head + request.body)
    found: dict[str, list[str]] = {}
    for part in message.walk():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str) and part.get_filename() is None:
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                found.setdefault(name, []).append(content.decode("utf-8", "replace"))
    yield from ((name, values[0]) for name, values in found.items() if len(values) == 1)


def canonical(value: Any, kind: str) -> Value | None:
    """The canonical form of a value of a column of this kind; None if it has none, so that it is equal to nothing.

    >>> canonical("7", "number"), canonical(7.0, "number"), canonical(7, "text"), canonical("7a", "number")
    (7, 7, '7', None)
    >>> canonical("A3B8C6D4-0000-4000-8000-000000000000", "text")
    'a3b8c6d4000040008000000000000000'
    """
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, uuid.UUID):
        value = value.hex
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if kind in ("number", "float"):
        if isinstance(value, str):
            return int(value) if _NUMBER.fullmatch(value) else None
        if isinstance(value, float):
            return int(value) if value.is_integer() else None
        return value if isinstance(value, int) else None
    if isinstance(value, int | str) and kind in ("text", "uuid"):
        text = str(value)
        return text.replace("-", "").lower() if _UUID.fullmatch(text) else text
    return None


def same(bound: Any, given: Any) -> bool:
    """Whether the value of a placeholder is that of a parameter."""
    kind = "number" if isinstance(bound, int | float | Decimal) else "text"
    value = canonical(bound, kind)
    return value is not None and value == canonical(given, kind)
