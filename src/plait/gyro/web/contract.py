"""What the endpoints of an application may do: the statements of the recording, and the sources of their values.

The analysis is right for operations that execute only recorded statements, with the recorded sources of values. A
recording may be incomplete or wrong, so a server checks every statement before it executes it. A statement that is not
in the recording rolls the operation back, and the client gets an error. So a wrong recording costs errors, never wrong
results. An operation passes the check if

- the template of every statement is one of its endpoint, and its values fit one recorded statement with this template;
- the value of a placeholder that is a parameter equals this parameter, compared as values of the columns that it is
  compared with, and all placeholders with this parameter have one value;
- the value of a placeholder `:new_TABLE` is an id that the server has generated for this table in this operation, and
  all placeholders with this name in one execution of a statement have one value;
- the value of a placeholder `:uuid_1` is a UUID that `uuid.uuid4` has made in this operation, mapped to this server; all
  placeholders with this name in one execution have one value;
- the value of a placeholder with a constant is this constant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from plait.gyro.belt.records import OperationError
from plait.gyro.sql.schema import Dialect, parse_schema
from plait.gyro.web.requests import Value, canonical, same
from plait.gyro.web.template import Template, template_of
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    import yaml

FREE = "any_"
"""The prefix of placeholders with any value."""
NEW = "new_"
"""The prefix of placeholders with an id that the server generates."""
UUID = "uuid_"
"""The prefix of placeholders with a UUID that the server makes."""


class UnrecordedError(OperationError):
    """A statement that is not in the recording."""

    def __init__(self, message: str) -> None:
        super().__init__("UnrecordedError", message)


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """The recorded statements of an endpoint: for each template, the names of the placeholders in its slots."""

    name: str
    statements: Mapping[str, tuple[tuple[str, ...], ...]] = dataclasses.field(default_factory=dict)
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Contract:
    """The endpoints of an application, and the columns of its tables that the database generates."""

    endpoints: Mapping[str, Endpoint]
    generated: Mapping[str, str]
    schema: str = ""
    """The DDL of the recording."""

    def endpoint(self, name: str) -> Endpoint:
        """An endpoint. One that is not in the recording has no statements."""
        return self.endpoints.get(name) or Endpoint(name)


def contract(recording: str, *, dialect: Dialect = "sqlite", source: str = "the recording") -> Contract:
    """Read a recording, which `plait gyro record` has made, and which `plait.gyro.source.listing` has checked."""
    try:
        document = yaml.safe_load(recording)
    except yaml.YAMLError:
        document = None
    if not isinstance(document, dict) or document.get("recorded") is not True:
        raise UsageError(f"{source} is not a recording", hint="make it with plait gyro record")
    schema = parse_schema(document["schema"], dialect=dialect, source=source)
    endpoints = {}
    for name, body in document["transactions"].items():
        statements: dict[str, tuple[tuple[str, ...], ...]] = {}
        for sql in body["statements"]:
            template = template_of(sql)
            names = tuple(template.names)
            statements[template.text] = (*statements.get(template.text, ()), names)
        endpoints[name] = Endpoint(name, statements, body.get("constants") or {})
    generated = {t.name: t.generated for t in schema.tables.values() if t.generated is not None}
    return Contract(endpoints, generated, document["schema"])


class Check:
    """Checks the statements of one operation."""

    def __init__(
        self, contract: Contract, endpoint: str, given: Mapping[str, Value], kinds: Mapping[str, str] | None = None
    ) -> None:
        self.endpoint = contract.endpoint(endpoint)
        self._generated = contract.generated
        self._given = given
        self._kinds = kinds or {}
        """The kinds of the columns that parameters are compared with."""
        self._bound: dict[str, Any] = {}
        self._ids: dict[str, set[Any]] = {}
        self.uuids: set[str] = set()
        """The UUIDs that the operation has made, in their canonical form."""
        self.refused: UnrecordedError | None = None
        """The first statement that was refused. The application may have caught the exception."""
        self.error: Exception | None = None
        """The last error of the database."""

    def before(self, sql: str, parameters: Any) -> None:
        """Check a statement before it is executed."""
        if self.refused is not None:
            raise self.refused
        template = template_of(sql)
        shown = template.text if len(template.text) < 400 else f"{template.text[:399]}…"
        variants = self.endpoint.statements.get(template.text)
        if variants is None:
            self._refuse(f"{self.endpoint.name}: this statement is not in the recording: {shown}")
            return
        try:
            rows = template.values(parameters)
        except (IndexError, KeyError):
            return  # the database reports the missing value
        for row in rows:
            reasons = []
            for names in variants:
                bound = dict(self._bound)
                reason = self._unfit(names, row, bound)
                if reason is None:
                    self._bound = bound
                    break
                reasons.append(reason)
            else:
                self._refuse(f"{self.endpoint.name}: {reasons[0]} in {shown}")

    def _unfit(self, names: Iterable[str], row: tuple[tuple[Any, ...], ...], bound: dict[str, Any]) -> str | None:
        """Why the values of an execution do not fit a recorded statement; None if they do."""
        new: dict[str, Any] = {}
        for name, values in zip(names, row, strict=True):
            for value in values:
                if name.startswith(FREE):
                    continue
                if name in self.endpoint.constants:
                    if type(value) is not type(self.endpoint.constants[name]) or value != self.endpoint.constants[name]:
                        return f"the value {value!r} is not the recorded constant {self.endpoint.constants[name]!r}"
                elif name.startswith(NEW):
                    if value not in self._ids.get(name.removeprefix(NEW), ()) or new.setdefault(name, value) != value:
                        return f"the value {value!r} is not a new id of {name.removeprefix(NEW)}"
                elif name.startswith(UUID):
                    if canonical(value, "text") not in self.uuids or new.setdefault(name, value) != value:
                        return f"the value {value!r} is not a new UUID"
                elif not self._is(name, value) or bound.setdefault(name, value) != value:
                    return f"the value {value!r} is not that of the parameter {name}"
        return None

    def _is(self, name: str, value: Any) -> bool:
        """Whether a value is that of a parameter."""
        if name not in self._given:
            return False
        given, kind = self._given[name], self._kinds.get(name)
        if kind is None:
            return same(value, given)
        found = canonical(value, kind)
        return found is not None and found == canonical(given, kind)

    def run(self, execute: Callable[[], Iterable[Any]]) -> Iterable[Any]:
        """Execute a statement; note its error, which the application may catch."""
        try:
            return execute()
        except Exception as error:
            self.error = error
            raise

    def after(
        self, sql: str, names: Iterable[str], rows: Iterable[Iterable[Any]], last: Callable[[], int | None]
    ) -> None:
        """Note the ids that an INSERT has generated: `names` and `rows` are what RETURNING gave, `last` the last id."""
        for table, value in new_ids(template_of(sql), self._generated, names, rows, last):
            self._ids.setdefault(table, set()).add(value)

    def made(self, uuid: str) -> None:
        """Note a UUID that the operation has made."""
        self.uuids.add(uuid)

    def _refuse(self, message: str) -> None:
        self.refused = UnrecordedError(message)
        raise self.refused


def new_ids(
    template: Template,
    generated: Mapping[str, str],
    names: Iterable[str],
    rows: Iterable[Iterable[Any]],
    last: Callable[[], int | None],
) -> list[tuple[str, Any]]:
    """The ids that an INSERT has generated, each with its table. An INSERT that gives the id itself generates none."""
    found = template.inserted
    if found is None or found[0] not in generated or generated[found[0]] in found[1] or not found[1] - {""}:
        return []
    if template.text.upper().startswith("INSERT OR ") or " ON CONFLICT " in template.text.upper():
        return []  # it may affect an older row
    lowered = [n.lower() for n in names]
    if generated[found[0]] in lowered:
        place = lowered.index(generated[found[0]])
        return [(found[0], list(row)[place]) for row in rows]
    newest = last() if len(template.rows) == 1 else None
    return [(found[0], newest)] if newest is not None else []
