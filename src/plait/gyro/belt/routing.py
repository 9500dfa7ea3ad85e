"""Which server executes an operation, and whether it needs the token (Saissi 2019, sections 2.3.2 and 2.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from plait.kernel.operations import Classification, Operation

Kind = Literal["read", "local", "global"]


class Route(msgspec.Struct, frozen=True):
    """How the operations of a transaction are routed."""

    name: str
    parameters: list[str]
    classed: Literal["local", "global", "local/global"]
    keys: list[str] = []
    read_only: bool = False
    kinds: dict[str, str] = {}

    @classmethod
    def of(cls, operation: Operation) -> Route:
        """What routing needs of a classified transaction."""
        o = operation
        return cls(o.name, o.parameters, o.classed, o.keys, o.read_only and not o.refused, o.kinds)


class RequestError(Exception):
    """A request that cannot be served, with the status that HTTP has for it."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


def routes(classification: Classification) -> dict[str, Route]:
    """The routes of all transactions."""
    return {o.name: Route.of(o) for o in classification.operations}


def home(value: Any, servers: int) -> int:
    """The server that a key is mapped to: values that SQL may find equal are mapped to one server.

    >>> home(7, 3), home(7.0, 3), home(True, 3), home(None, 3)
    (1, 1, 1, 0)
    >>> home("ada", 3) == home("ada", 3)
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
    """The server and the kind of an operation; without a key, it is executed `here`.

    >>> bid = Route("bid", ["user", "item"], "local/global", ["user", "item"])
    >>> place(bid, {"user": 4, "item": 7}, 3, 0), place(bid, {"user": 4, "item": 8}, 3, 0)
    ((1, 'local'), (1, 'global'))
    """
    homes = [home(key_value(route, k, arguments[k]), servers) for k in route.keys]
    server = homes[0] if homes else here
    if route.classed == "global" or (route.classed == "local/global" and len(set(homes)) > 1):
        return server, "global"
    return server, "read" if route.read_only else "local"


def key_value(route: Route, name: str, value: Any) -> Any:
    """The value of a key: of the kind of the columns that it is compared with, or two equal ones might be apart."""
    kind = route.kinds.get(name)
    if value is None and not route.read_only:
        raise RequestError(
            400,
            f"{route.name}: {name} is null, and operations that write are routed by it",
            "give a value: where a key is NULL, the database may make one that belongs to another server",
        )
    if value is None or kind is None:
        return value
    number = isinstance(value, int | float)
    if (kind == "text") == number:
        raise RequestError(
            400,
            f"{route.name}: {name}={value!r} does not fit: expected {'a string' if kind == 'text' else 'a number'}",
            "operations are routed by this parameter",
        )
    return value


def check_names(route: Route, given: Mapping[str, Any], optional: Sequence[str] = ()) -> None:
    """Refuse parameters that are missing or not known."""
    missing = [p for p in route.parameters if p not in given and p not in optional]
    if missing:
        raise RequestError(400, f"{route.name}: {', '.join(missing)} is missing", _signature(route))
    unknown = [p for p in given if p not in route.parameters]
    if unknown:
        raise RequestError(400, f"{route.name} has no parameter {', '.join(unknown)}", _signature(route))


def _signature(route: Route) -> str:
    return f"its parameters are: {', '.join(route.parameters) or 'none'}"
