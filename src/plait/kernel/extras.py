"""Optional packages: which feature needs which package, and the error for a missing package.

`plait check` needs none of them. A module that needs one imports it like this:

    with needs("bmc"):
        import z3

If z3 is missing, this raises a `MissingPackageError` with the command that installs it. Otherwise the `with` costs
nothing. pyproject.toml has the same extras; `tests/kernel/test_extras.py` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from plait.kernel.errors import MissingPackageError


class Extra(NamedTuple):
    """A feature, and the packages that it needs: for each, the name to import and the name to install."""

    feature: str
    packages: Mapping[str, str]


_GYRO = {"sqlglot": "sqlglot", "yaml": "pyyaml", "z3": "z3-solver"}
_SERVE = {name: name for name in ("apsw", "httptools", "psycopg", "pymysql", "starlette", "uvicorn")} | {
    "nats": "nats-py"
}

EXTRAS = {
    "bmc": Extra("plait bmc", {"z3": "z3-solver"}),
    "c": Extra("plait bmc for C programs", {"clang": "libclang"}),
    "epa": Extra("plait epa", {"z3": "z3-solver"}),
    "explore": Extra("plait explore", {"starlette": "starlette", "uvicorn": "uvicorn"}),
    "gyro": Extra("plait gyro", _GYRO),
    "notebook": Extra("a widget in a notebook", {"anywidget": "anywidget"}),
    "peers": Extra("the comparison with Galera", {"pymysql": "pymysql"}),
    "rounds": Extra("reading Distal", {"lark": "lark"}),
    "serve": Extra("plait gyro serve", _GYRO | _SERVE),
    "solvers": Extra("another solver than Z3", {"bitwuzla": "bitwuzla", "cvc5": "cvc5"}),
}


def missing(extra: str) -> list[str]:
    """The packages of an extra that are not installed, by the names to install."""
    return [package for module, package in EXTRAS[extra].packages.items() if find_spec(module) is None]


def require(extra: str) -> None:
    """Raise a `MissingPackageError` if a package of an extra is not installed."""
    if packages := missing(extra):
        raise _error(extra, packages)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import packages of an extra inside this context. A missing package gives an error with a hint.

    >>> with needs("bmc"):
    ...     import z3
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = EXTRAS[extra].packages.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        raise _error(extra, missing(extra) or [package]) from None


def _error(extra: str, packages: list[str]) -> MissingPackageError:
    listed = " and ".join(filter(None, [", ".join(packages[:-1]), packages[-1]]))
    return MissingPackageError(
        f"{EXTRAS[extra].feature} needs {listed}, which {'is' if len(packages) == 1 else 'are'} not installed",
        hint=f"pip install 'plait[{extra}]'",
    )
