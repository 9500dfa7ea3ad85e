"""Values of parameters, as columns store them. The modules `values` of `sqlite` and `postgresql` ask the DBMS.

Two values may differ for Python and be one value for the DBMS: 11 and 11.0, two spellings of a UUID, one instant in two time
zones. They must be mapped to one server. So a server routes by the stored form, and executes the operation with an equal
value. A value that the column would change is refused: 11.3 for an INTEGER, 'bob ' for a VARCHAR(3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from plait.gyro.sql.terms import Kind

EXPECTED = {
    "number": "a number",
    "float": "a number",
    "text": "a string",
    "char": "a string",
    "boolean": "a boolean",
    "uuid": "a UUID",
    "date": "a date like 2019-12-31",
    "time": "a time like 23:59:59, without an offset",
    "timestamp": "a time like 2019-12-31T23:59:59, without an offset",
    "timestamptz": "a time like 2019-12-31T23:59:59+00:00, with its offset",
    "bytes": "bytes: annotate the parameter with bytes, and send base64",
}
"""What a parameter of each kind must be."""


class Domain(NamedTuple):
    """The values of a column: its kind, and its type as the DBMS writes it."""

    kind: Kind
    type: str


class Stored(NamedTuple):
    """A value that the operation executes with, and its form: equal for all values that the DBMS regards as equal."""

    value: Any
    form: Any


class UnstorableError(Exception):
    """The column cannot store a value unchanged. `form` is what it would store; None if it stores nothing."""

    def __init__(self, reason: str, form: Any = None) -> None:
        super().__init__(reason)
        self.form = form


class Values(Protocol):
    """The columns of a DBMS, and what they store."""

    def domains(self) -> dict[str, Domain]:
        """The domain of each column, by `table.column` in lower case. The kind is `other` if it cannot be a key."""

    def certain(self, domain: Domain) -> Callable[[Any], bool]:
        """A quick test: the stored form of this value is the value itself, without asking the DBMS."""

    def stored(self, domain: Domain, value: Any) -> Stored:
        """Ask the DBMS. Raises UnstorableError or DatabaseGoneError."""


def unexpected(domain: Domain) -> UnstorableError:
    """The error for a value of the wrong type."""
    return UnstorableError(f"expected {EXPECTED.get(domain.kind, 'a string')}")


def changed(domain: Domain, form: Any) -> UnstorableError:
    """The error for a value that the column would change."""
    return UnstorableError(f"the column has the type {domain.type}, and would store {form!r}", form)
