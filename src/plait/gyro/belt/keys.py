"""The keys of operations in their stored form, so that all servers map values that are equal in the DBMS to one server."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any, cast

from plait.gyro.belt.databases.database import Database
from plait.gyro.belt.databases.values import Domain, Stored, UnstorableError
from plait.gyro.belt.routing import RequestError, Route
from plait.kernel.errors import UsageError


class Keys:
    """The keys of all routes, the domains of their columns, and the stored forms that were asked for."""

    def __init__(self, routes: Mapping[str, Route], database: Database) -> None:
        self._domains: dict[tuple[str, str], dict[Domain, str]] = {}
        """For each operation and key: the domains of its columns, and one column of each."""
        self._certain: dict[tuple[str, str], list[Callable[[Any], bool]]] = {}
        keyed = [r for r in routes.values() if r.keys]
        if not keyed:
            return
        values = database.values()
        known = values.domains()
        for route in keyed:
            for key in route.keys:
                found = self._domains[route.name, key] = _domains(route, key, known)
                self._certain[route.name, key] = [values.certain(domain) for domain in found]

        @functools.lru_cache(maxsize=65536)
        def asked(domain: Domain, _type: Hashable, value: Any) -> Stored | UnstorableError:
            """`_type` is for the cache: 11, 11.0 and True are equal in Python."""
            try:
                return values.stored(domain, value)
            except UnstorableError as error:
                return error.with_traceback(None)

        self._asked = asked

    def certain(self, route: Route, arguments: Mapping[str, Any]) -> bool:
        """Whether the keys certainly have their stored form. This is the usual case, and asks nothing."""
        for key in route.keys:
            if (value := arguments[key]) is not None:
                for test in self._certain[route.name, key]:
                    if not test(value):
                        return False
        return True

    def stored(self, route: Route, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments to execute with, and the forms of the keys to route by. It may ask the DBMS."""
        changed, forms = dict(arguments), dict[str, Any]()
        for key in route.keys:
            forms[key] = value = arguments[key]
            first: tuple[Stored, str] | None = None
            for domain, column in self._domains[route.name, key].items() if value is not None else ():
                found = self._look(route, key, value, domain, column)
                if first is not None and found.form != first[0].form:
                    raise _refused(
                        route, key, value, f"{first[1]} stores {first[0].form!r}, but {column} stores {found.form!r}"
                    )
                first = first or (found, column)
                changed[key], forms[key] = first[0]
        return changed, forms

    def _look(self, route: Route, key: str, value: Any, domain: Domain, column: str) -> Stored:
        try:
            hash(value)
        except TypeError:
            raise _refused(route, key, value, f"expected one value for {column}") from None
        found = self._asked(domain, cast(Hashable, type(value)), value)
        if isinstance(found, UnstorableError):
            where = f" ({column})" if found.form is not None else ""
            raise _refused(route, key, value, f"{found}{where}")
        return found


def _refused(route: Route, key: str, value: Any, reason: str) -> RequestError:
    shown = repr(value)
    return RequestError(
        400,
        f"{route.name}: {key}={shown if len(shown) < 100 else shown[:99] + '…'}: {reason}",
        f"{key} is the key of the operation: send a value that the database stores unchanged",
    )


def _domains(route: Route, key: str, known: Mapping[str, Domain]) -> dict[Domain, str]:
    """The domains of the columns of a key. The DBMS must have the columns of the analysis."""
    found: dict[Domain, str] = {}
    if not route.columns.get(key):
        raise UsageError(
            f"{route.name}: the classification does not say which columns {key} is compared with",
            hint="create the classification with this version of plait gyro analyze",
        )
    for column, declared in route.columns[key].items():
        domain = known.get(column)
        if domain is None:
            raise UsageError(
                f"{route.name} is routed by {key}, but the database has no column {column}",
                hint="use the schema of the analysis",
            )
        if domain.kind != route.kinds.get(key):
            raise UsageError(
                f"{route.name} is routed by {key}, but {column} is {domain.type or 'without a type'} in the database, and "
                f"{declared} in the analysis: different values may be equal there",
                hint=_advice(column, declared, domain),
            )
        found.setdefault(domain, column)
    return found


def _advice(column: str, declared: str, domain: Domain) -> str:
    """What to do about a column that has another type than in the analysis."""
    kind = f"as {domain.type}" if domain.type else "without a type"
    analyze = f"declare {column} {kind} in the schema, and analyze it again"
    if domain.kind != "other":
        return f"{analyze}; or make the column {declared} in the database"
    return (
        f"a column of this type cannot be a key: {analyze}, then {column} is no key; or make it {declared} in the database, "
        "and store values that are equal in one spelling, such as lower case"
    )
