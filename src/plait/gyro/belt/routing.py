"""Routing: which server executes an operation, and whether it needs the token (Saissi 2019, sections 2.3.2 and 2.4)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
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
    columns: dict[str, dict[str, str]] = {}
    """For each key, the columns that it is compared with, and their types in the analysis."""

    @classmethod
    def of(cls, operation: Operation) -> Route:
        """The route of a classified transaction."""
        o = operation
        return cls(o.name, o.parameters, o.classed, o.keys, o.read_only and not o.refused, o.kinds, o.columns)


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


def server_of(form: Any, servers: int) -> int:
    """The server that a key is mapped to. Equal numbers are mapped to the same server.

    >>> server_of(7, 3), server_of(7.0, 3), server_of(True, 3), server_of(None, 3)
    (1, 1, 1, 0)
    >>> server_of(0.5, 3) == server_of(Decimal("0.50"), 3), server_of(Decimal("1e9000000"), 3)
    (True, 1)
    """
    if form is None:
        return 0
    if isinstance(form, float) and math.isfinite(form):
        form = int(form) if form.is_integer() else Decimal(form)
    if isinstance(form, int):
        return int(form) % servers
    if isinstance(form, Decimal) and form.is_finite():
        sign, digits, exponent = form.as_tuple()
        text = "".join(map(str, digits)).rstrip("0") or "0"
        exponent += len(digits) - len(text)  # type: ignore[operator]
        if exponent >= 0 or text == "0":
            remainder = 0
            for digit in text:
                remainder = (remainder * 10 + int(digit)) % servers
            return (1 - 2 * sign) * remainder * pow(10, max(exponent, 0), servers) % servers
        form = f"{'-' * sign}{text}e{exponent}"
    content = form if isinstance(form, bytes) else str(form).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big") % servers


def place(route: Route, keys: Mapping[str, Any], servers: int, here: int) -> tuple[int, Kind]:
    """The server and the kind of an operation, by the stored forms of its keys. Without a key, it executes at `here`.

    >>> bid = Route("bid", ["user", "item"], "local/global", ["user", "item"])
    >>> place(bid, {"user": 4, "item": 7}, 3, 0), place(bid, {"user": 4, "item": 8}, 3, 0)
    ((1, 'local'), (1, 'global'))
    """
    for name in route.keys:
        if keys[name] is None and not route.read_only:
            raise RequestError(
                400,
                f"{route.name}: {name} is null, but it is the key of an operation that writes",
                "give a value: for a NULL key, the database may generate a value that belongs to another server",
            )
    mapped = [server_of(keys[name], servers) for name in route.keys]
    server = mapped[0] if mapped else here
    if route.classed == "global" or (route.classed == "local/global" and len(set(mapped)) > 1):
        return server, "global"
    return server, "read" if route.read_only else "local"


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
