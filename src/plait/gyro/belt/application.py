"""The application: the functions of the classification, which take a connection and parameters."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from plait.gyro.belt.records import Call, OperationError
from plait.gyro.belt.routing import RequestError, Route, check_names
from plait.gyro.source.modules import locate
from plait.kernel.errors import Argument, UsageError
from plait.kernel.imports import import_file


class Application:
    """The operations of an application, by name."""

    def __init__(self, module: ModuleType, routes: Mapping[str, Route]) -> None:
        self.module = module
        self.routes = dict(routes)
        self._operations = {name: Operation(_function(module, name), route) for name, route in routes.items()}

    def call(self, request: str, name: str, given: Mapping[str, Any]) -> Call:
        """Check a request; return it as a Call."""
        operation = self._operations.get(name)
        if operation is None:
            raise RequestError(404, f"no operation {name}", f"operations: {', '.join(sorted(self._operations))}")
        arguments = operation.arguments(given)
        return self._call(request, name, arguments)

    def with_arguments(self, call: Call, arguments: dict[str, Any]) -> Call:
        """The same request with converted arguments."""
        return self._call(call.request, call.operation, arguments)

    def _call(self, request: str, name: str, arguments: dict[str, Any]) -> Call:
        operation = self._operations[name]
        return Call(request, name, arguments, lambda connection: operation.run(connection, arguments))


class Operation:
    """One function of the application."""

    def __init__(self, function: Callable[..., Any], route: Route) -> None:
        self._function = function
        self._route = route
        self._names = set(route.parameters)
        self._signature = inspect.signature(function)
        self._connections = [p for p in self._signature.parameters if p not in route.parameters]
        defaults = {n: p.default for n, p in self._signature.parameters.items() if p.default is not p.empty}
        self._defaults = {n: v for n, v in defaults.items() if n in route.parameters}
        self._types = _types(function, route)
        self._alchemy = _alchemy(function, self._connections)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check the parameters and convert them to the annotated types."""
        if given.keys() == self._names:
            arguments = {n: given[n] for n in self._route.parameters}
        else:
            check_names(self._route, given, tuple(self._defaults))
            arguments = {n: given.get(n, self._defaults.get(n)) for n in self._route.parameters}
        for name, kind in self._types.items():
            try:
                arguments[name] = msgspec.convert(arguments[name], kind)
            except msgspec.ValidationError as error:
                raise RequestError(
                    400,
                    f"{self._route.name}: {name}={arguments[name]!r} has the wrong type: {error}",
                    f"the type of {name} is {kind}",
                ) from None
        return arguments

    def run(self, connection: Any, arguments: Mapping[str, Any]) -> bytes:
        """Call the function; return its reply as JSON."""
        if self._alchemy is None:
            reply = self._function(**dict.fromkeys(self._connections, connection), **arguments)
        else:
            with self._alchemy(connection) as connections:
                reply = self._function(**connections, **arguments)
        try:
            return msgspec.json.encode(reply, enc_hook=_plain)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the reply of {self._route.name} cannot be encoded as JSON: {error}"
            raise OperationError("ReplyError", message) from None


def _alchemy(function: Callable[..., Any], names: list[str]) -> Callable[[Any], AbstractContextManager[Any]] | None:
    """A context manager that gives a function SQLAlchemy connections; None if it takes DB-API connections."""
    if "sqlalchemy" not in sys.modules:  # the application is loaded, and does not use SQLAlchemy
        return None
    from plait.gyro.belt.databases.alchemy import lent, wanted

    kinds = wanted(function, names)
    return functools.partial(lent, kinds=kinds) if set(kinds.values()) - {"dbapi"} else None


def _plain(value: Any) -> Any:
    """Convert rows of SQLAlchemy, which are not tuples."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"an object of type {type(value).__name__}")


def _types(function: Callable[..., Any], route: Route) -> dict[str, Any]:
    """The annotated types of parameters that JSON can represent."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}
    found = {}
    for name, kind in hints.items():
        if name not in route.parameters:
            continue
        try:
            msgspec.convert(None, kind)
        except msgspec.ValidationError:
            found[name] = kind
        except TypeError:
            continue  # JSON has no such type
        else:
            found[name] = kind
    return found


def _function(module: ModuleType, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found) or "." in name:
        raise UsageError(
            f"{module.__name__} has no function {name}",
            hint="serve only functions at the top level of the module",
        )
    if inspect.iscoroutinefunction(found):
        raise UsageError(f"{name} is asynchronous, which servers do not support", hint="make it a plain function")
    return found  # type: ignore[no-any-return]


def load(target: str) -> ModuleType:
    """Import the application: a Python file or package, by path or dotted name."""
    path = locate(target)
    if path.suffix != ".py" and not (path / "__init__.py").is_file():
        raise UsageError(f"{target} has no functions to serve", hint="give a Python module or package")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # an application may import modules next to it
    file = path if path.suffix == ".py" else path / "__init__.py"
    try:
        return import_file(path.stem, file, package=path.is_dir())
    except Exception as error:
        raise UsageError(
            f"{target} cannot be imported: {type(error).__name__}: {error}", hint="correct the code"
        ) from None


def schema_of(target: str, module: ModuleType, given: Path | None, *, dialect: str = "sqlite") -> str:
    """The DDL: a written schema, or else the Tables of SQLAlchemy."""
    if (found := written_schema(target, module, given)) is not None:
        return found
    if given is None and "sqlalchemy" in sys.modules:
        from plait.gyro.belt.databases.alchemy import ddl

        if found := ddl(module, dialect):
            return found
    raise UsageError(
        f"{target}: no schema" if given is None else f"the schema {given} cannot be read",
        hint=("give ", Argument("schema", "FILE"), ", a constant SCHEMA in the module, or schema.sql next to it"),
    )


def written_schema(target: str, module: ModuleType, given: Path | None) -> str | None:
    """The DDL of a given file, of the constant SCHEMA, or of a file next to the application."""
    path = locate(target)
    folder = path if path.is_dir() else path.parent
    if given is None and isinstance(found := getattr(module, "SCHEMA", None), str):
        return found
    for file in (given,) if given is not None else (folder / f"{path.stem}.sql", folder / "schema.sql"):
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return None
