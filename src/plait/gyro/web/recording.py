"""From recorded requests to a recording: a listing of transactions that the analysis classifies.

A transaction is an endpoint. Its statements are the templates that its requests executed. The source of the value in a
slot is decided by the rule:

- a *parameter*, if the value equals this parameter in every execution, and had at least two values;
- `:new_TABLE`, if it is an id that an earlier INSERT of the same request generated in every execution, and had at least
  two values;
- `:uuid_1`, if it is a UUID that `uuid.uuid4` made in the same request, in every execution;
- a *constant*, if it had the same value in at least three executions, in different requests, and neither a parameter
  nor an earlier result of a request had this value;
- any value otherwise (`:any_1`).

If executions of one template have different sources, they become several statements. The rule may be wrong, because of
a coincidence or because the tests are incomplete. Then a server refuses requests that a better recording would allow
(`contract.py`); it never executes something wrong.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from plait.gyro.sql.schema import Schema, parse_schema
from plait.gyro.web.contract import FREE, NEW, UUID, Check, UnrecordedError, contract, new_ids
from plait.gyro.web.recorder import DRIVERS, FOLDER
from plait.gyro.web.requests import canonical, same
from plait.gyro.web.template import Template, template_of
from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    import yaml

_STDERR = 2
"""Where the output of the tests goes."""
_VARIANTS = 4
"""The most statements that one template becomes."""
_CONSTANT = 3
"""A constant was seen in this many executions."""
_DEFERRED = re.compile(r"\s+DEFERRABLE\s+INITIALLY\s+DEFERRED\b", re.IGNORECASE)
"""Servers check foreign keys at once: a commit must not fail after its update is in the log."""
_START = "from plait.gyro.web.recorder import start\n\nstart()\n"


class _Execution(msgspec.Struct):
    sql: str
    parameters: Any
    names: list[str]
    rows: list[list[Any]]
    last: int | None

    def newest(self) -> int | None:
        """The id of the last inserted row."""
        return self.last


class _Request(msgspec.Struct):
    endpoint: str
    given: dict[str, Any]
    schema: str
    executions: list[_Execution]
    uuids: list[str] = []


@dataclasses.dataclass
class Row:
    """The values of one execution, and what they may be."""

    request: int
    values: tuple[tuple[Any, ...], ...]
    sources: list[set[str]]
    """For each slot: the parameters and new ids that are equal to its values."""
    results: set[Any]
    """The values that earlier statements of the request returned, and the parameters."""


@dataclasses.dataclass
class Recording:
    """A listing, and what its author should know."""

    text: str
    requests: int
    endpoints: int
    statements: int
    warnings: list[str]


def record(command: Sequence[str]) -> tuple[int, Recording | None]:
    """Run a command that tests an application; return its exit code, and the recording if there were requests."""
    with tempfile.TemporaryDirectory(prefix="plait-gyro-") as folder:
        hook = Path(folder) / "python"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(_START, encoding="utf-8")
        package = str(Path(__file__).resolve().parents[3])
        paths = [str(hook), *filter(None, [os.environ.get("PYTHONPATH")]), package]
        environment = os.environ | {FOLDER: folder, "PYTHONPATH": os.pathsep.join(paths)}
        try:
            code = subprocess.run(list(command), env=environment, check=False, stdout=_STDERR).returncode
        except OSError as error:
            raise UsageError(
                f"{command[0]} cannot be run: {error.strerror}", hint="give the command that runs the tests after --"
            ) from None
        drivers = Path(folder) / DRIVERS
        used = sorted(set(drivers.read_text(encoding="utf-8").splitlines())) if drivers.exists() else []
        lines = [line for file in sorted(Path(folder).glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    requests = [msgspec.json.decode(line, type=_Request) for line in lines]
    if code == 0 and used and not requests:
        raise UsageError(
            f"the application uses {used[0]}, and only statements of SQLite are recorded",
            hint="run the tests with a database of SQLite, and serve the application with --db sqlite",
        )
    found = recording_of(requests) if requests else None
    if found is not None:
        found.warnings += [f"statements that are executed with another DBMS are not recorded: {each}" for each in used]
    return code, found


def recording_of(requests: Sequence[_Request]) -> Recording:
    """The recording of these requests."""
    schemas = Counter(r.schema for r in requests if r.schema)
    ddl = _DEFERRED.sub("", max(schemas, key=lambda s: (len(s), s), default=""))
    schema = parse_schema(ddl, source="the database of the tests")
    generated = {t.name: t.generated for t in schema.tables.values() if t.generated is not None}
    transactions: dict[str, dict[str, Any]] = {}
    warnings: list[str] = []
    for name in sorted({r.endpoint for r in requests}, key=_order):
        found = _Endpoint(name, schema, generated)
        for number, request in enumerate(r for r in requests if r.endpoint == name):
            found.add(number, request)
        transactions[name] = found.transaction()
        warnings += found.warnings
    text = _dump(ddl, transactions)
    while (repaired := _repair(text, transactions, requests)) is not None:
        warnings.append(repaired)
        text = _dump(ddl, transactions)
    count = sum(len(t["statements"]) for t in transactions.values())
    return Recording(text, len(requests), len(transactions), count, warnings)


class _Endpoint:
    def __init__(self, name: str, schema: Schema, generated: dict[str, str]) -> None:
        self.name = name
        self.schema = schema
        self.generated = generated
        self.rows: dict[Template, list[Row]] = {}
        self.warnings: list[str] = []
        self.constants: dict[str, Any] = {}
        self._free = itertools.count(1)

    def add(self, number: int, request: _Request) -> None:
        """Add the executions of a request."""
        ids: dict[str, set[Any]] = {}
        results = {_hashable(v) for v in request.given.values()}
        for execution in request.executions:
            template = template_of(execution.sql)
            key = dataclasses.replace(template, rows=template.rows[:1])
            for values in template.values(execution.parameters):
                sources = [
                    {n for n, v in request.given.items() if slot and all(same(x, v) for x in slot)}
                    | {
                        NEW + table
                        for table, known in ids.items()
                        if slot and all(isinstance(x, int | str) and x in known for x in slot)
                    }
                    | ({UUID} if slot and all(canonical(x, "text") in request.uuids for x in slot) else set())
                    for slot in values
                ]
                self.rows.setdefault(key, []).append(Row(number, values, sources, set(results)))
            for table, value in new_ids(template, self.generated, execution.names, execution.rows, execution.newest):
                ids.setdefault(table, set()).add(value)
            results |= {_hashable(v) for row in execution.rows for v in row}

    def transaction(self) -> dict[str, Any]:
        """The transaction of this endpoint, for the listing."""
        statements: list[str] = []
        for template, rows in self.rows.items():
            for group in _groups(rows):
                names = [self._name(template, number, group) for number in range(len(rows[0].values))]
                statements.append(template.named(names))
        statements = list(dict.fromkeys(statements))
        used = list(dict.fromkeys(n for s in statements for n in re.findall(r":(\w+)", s)))
        skipped = (FREE, NEW, UUID, "const_")
        parameters = [n for n in used if not n.startswith(skipped)]
        body: dict[str, Any] = {"parameters": parameters, "statements": statements}
        if self.constants:
            body["constants"] = self.constants
        return body

    def _name(self, template: Template, slot: int, rows: list[Row]) -> str:
        """The source of a slot."""
        filled = [r for r in rows if r.values[slot]]
        common = set.intersection(*(r.sources[slot] for r in filled)) if filled else set()
        seen = {_hashable(v) for r in filled for v in r.values[slot]}
        if common and len(seen) > 1:
            chosen = min(common, key=_preference)
            if chosen == UUID:
                return f"{UUID}{slot + 1}"
            if len(common) > 1:
                others = ", ".join(sorted(common - {chosen}))
                self._warn(template, f"{chosen} and {others} always have the same value; {chosen} is assumed")
            return chosen
        if common:
            shown = ", ".join(sorted(common))
            self._warn(template, f"{shown} had only the value {next(iter(seen))!r}; any value is assumed")
            return f"{FREE}{next(self._free)}"
        if len(seen) == 1 and len({r.request for r in filled}) > 1 and len(filled) >= _CONSTANT:
            value = next(iter(seen))
            if isinstance(value, str | int) and not any(value in r.results for r in filled):
                name = f"const_{len(self.constants) + 1}"
                self.constants[name] = value
                return name
        return f"{FREE}{next(self._free)}"

    def _warn(self, template: Template, what: str) -> None:
        self.warnings.append(f"{self.name}: {what}: test it with other values (in {_cut(template.text)})")


def _groups(rows: list[Row]) -> list[list[Row]]:
    """Split the executions of a template, so that each slot that always has a source has one source in a group."""
    groups = _split(rows)
    return groups if len(groups) <= _VARIANTS else [rows]


def _split(rows: list[Row]) -> list[list[Row]]:
    for slot in range(len(rows[0].values)):
        filled = [r for r in rows if r.values[slot]]
        if (
            not filled
            or not all(r.sources[slot] for r in filled)
            or set.intersection(*(r.sources[slot] for r in filled))
        ):
            continue
        counts = Counter(s for r in filled for s in r.sources[slot])
        best = min(counts, key=lambda s: (-counts[s], _preference(s)))
        chosen = [r for r in rows if best in r.sources[slot] or not r.values[slot]]
        return _split(chosen) + _split([r for r in rows if not (best in r.sources[slot] or not r.values[slot])])
    return [rows]


def _preference(name: str) -> tuple[int, str]:
    """Between sources with the same values: variables of the URL, then the session, … and new ids last."""
    order = ["new", "uuid", "header", "cookie", "query", "form", "json", "session"]
    return -(order.index(p) if (p := name.partition("_")[0]) in order else len(order)), name


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float) or value is None else repr(value)


def _repair(text: str, transactions: dict[str, dict[str, Any]], requests: Sequence[_Request]) -> str | None:
    """Check the recorded requests against their recording. If one fails, free a source; say which."""
    known = contract(text)
    for request in requests:
        check = Check(known, request.endpoint, request.given)
        check.uuids |= set(request.uuids)
        for execution in request.executions:
            try:
                check.before(execution.sql, execution.parameters)
            except UnrecordedError:
                statements = transactions[request.endpoint]["statements"]
                wanted = template_of(execution.sql)
                numbers = itertools.count(sum(s.count(f":{FREE}") for s in statements) + 1)
                free = wanted.named([f"{FREE}{next(numbers)}" for _ in wanted.rows[0]])
                kept = [s for s in statements if template_of(s).text != wanted.text]
                transactions[request.endpoint]["statements"] = [*kept, free]
                return f"{request.endpoint}: the sources of values differ in: {_cut(wanted.text)}"
            check.after(execution.sql, execution.names, execution.rows, execution.newest)
    return None


def _order(name: str) -> tuple[str, str]:
    method, _, rule = name.partition(" ")
    return rule, method


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def _dump(ddl: str, transactions: dict[str, dict[str, Any]]) -> str:
    tidy = "".join(f"{line.rstrip()}\n" for line in ddl.expandtabs(4).splitlines() if line.strip())
    document = {"recorded": True, "schema": tidy, "transactions": transactions}
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
