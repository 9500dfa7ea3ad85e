"""Routing: which server executes an operation, and whether it needs the token (Saissi 2019, sections 2.3.2 and 2.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from plait.kernel.classification import Classification, Operation

Kind = Literal["read", "local", "global"]


class Route(msgspec.Struct, frozen=True):
    """How to route the operations of a transaction."""

    name: str
    parameters: list[str]
    classed: Literal["local", "global", "local/global"]
    keys: list[str] = []
    read_only: bool = False
    kinds: dict[str, str] = {}

    @classmethod
    def of(cls, operation: Operation) -> Route:
        """The route of a classified transaction."""
        o = operation
        return cls(o.name, o.parameters, o.classed, o.keys, o.read_only and not o.refused, o.kinds)


class RequestError(Exception):
    """A request that cannot be served, with its HTTP status."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


def routes(classification: Classification) -> dict[str, Route]:
    """The routes of all transactions."""
    return {o.name: Route.of(o) for o in classification.operations}


def server_of(value: Any, servers: int) -> int:
    """The server that a key is mapped to. Values that are equal in SQL are mapped to the same server.

    >>> server_of(7, 3), server_of(7.0, 3), server_of(True, 3), server_of(None, 3)
    (1, 1, 1, 0)
    >>> server_of("ada", 3) == server_of("ada", 3)
    True
    """
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return int(value) % servers
    digest = hashlib.blake2b(str(value).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % servers


def place(route: Route, arguments: Mapping[str, Any], servers: int, here: int) -> tuple[int, Kind]:
    """The server and the kind of an operation. An operation without a key executes at server `here`.

    >>> bid = Route("bid", ["user", "item"], "local/global", ["user", "item"])
    >>> place(bid, {"user": 4, "item": 7}, 3, 0), place(bid, {"user": 4, "item": 8}, 3, 0)
    ((1, 'local'), (1, 'global'))
    """
    mapped = [server_of(key_value(route, k, arguments[k]), servers) for k in route.keys]
    server = mapped[0] if mapped else here
    if route.classed == "global" or (route.classed == "local/global" and len(set(mapped)) > 1):
        return server, "global"
    return server, "read" if route.read_only else "local"


def key_value(route: Route, name: str, value: Any) -> Any:
    """Check that a key has the kind of its columns. Otherwise equal keys could be mapped to different servers."""
    kind = route.kinds.get(name)
    if value is None and not route.read_only:
        raise RequestError(
            400,
            f"{route.name}: {name} is null, but it is the key of an operation that writes",
            "give a value: for a NULL key, the database may generate a value that belongs to another server",
        )
    if value is None or kind is None:
        return value
    number = isinstance(value, int | float)
    if (kind == "text") == number:
        raise RequestError(
            400,
            f"{route.name}: {name}={value!r}: expected {'a string' if kind == 'text' else 'a number'}",
            "this parameter is the key of the operation",
        )
    return value


def check_names(route: Route, given: Mapping[str, Any], optional: Sequence[str] = ()) -> None:
    """Raise an error if parameters are missing or unknown."""
    missing = [p for p in route.parameters if p not in given and p not in optional]
    if missing:
        raise RequestError(400, f"{route.name}: missing parameters: {', '.join(missing)}", _signature(route))
    unknown = [p for p in given if p not in route.parameters]
    if unknown:
        raise RequestError(400, f"{route.name}: unknown parameters: {', '.join(unknown)}", _signature(route))


def _signature(route: Route) -> str:
    return f"parameters: {', '.join(route.parameters) or 'none'}"
