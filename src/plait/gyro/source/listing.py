"""Applications as lists of transactions: YAML, or SQL with a comment in front of each transaction.

YAML::

    schema: store.sql                   # or the DDL itself
    transactions:
      add:
        parameters: [cart, item]
        statements:
          - SELECT stock FROM items WHERE id = :item
          - INSERT INTO lines (cart, item) VALUES (:cart, :item)

SQL::

    -- transaction: add(cart, item)
    SELECT stock FROM items WHERE id = :item;
    INSERT INTO lines (cart, item) VALUES (:cart, :item);

A placeholder is the name of a parameter, or of a column that an earlier statement of the transaction returns. Use
RETURNING to get the id that an INSERT generates, or `:new_TABLE`. A name that begins with `any_` stands for any value,
and `:uuid_1` for a UUID that the server makes so that it is mapped to this server.
YAML may also have `constants: {NAME: VALUE}` in a transaction, and `recorded: true` (`plait.gyro.web`): then columns
have no names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from plait.gyro.sql.conditions import EXACT
from plait.gyro.sql.schema import Dialect, Schema, parse_schema
from plait.gyro.sql.statements import Ids, placeholders
from plait.gyro.sql.terms import Constant, Generated, Parameter, Term, Unknown
from plait.gyro.transactions import Transaction
from plait.kernel.errors import Argument, UsageError
from plait.kernel.extras import needs

with needs("gyro"):
    import yaml

_HEADER = re.compile(r"^--\s*transaction:?\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_SIGNATURE = re.compile(r"([A-Za-z_][\w.]*)\s*\(([^()]*)\)")
_SEMICOLON = re.compile(r"'(?:''|[^'])*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|(;)", re.DOTALL)


def read_yaml(
    file: Path, schema: Schema | None, *, dialect: Dialect = "sqlite", ids: Ids = "server"
) -> tuple[Schema, list[Transaction]]:
    """Read the transactions of a YAML file."""
    document = _document(file)
    if schema is None:
        schema = parse_schema(schema_text(file), dialect=dialect, source=f"the schema of {file}")
    found = []
    for name, body in document["transactions"].items():
        place = f"{file}: {name}"
        if not isinstance(body, dict) or set(body) - {"parameters", "statements", "weight", "constants"}:
            raise UsageError(
                f"{place}: expected the keys parameters, statements, constants and weight",
                hint="see docs/guides/gyro.md",
            )
        parameters, statements = body.get("parameters") or [], body.get("statements") or []
        if isinstance(statements, str):
            statements = split(statements)
        if not _strings(parameters) or not _strings(statements) or not statements:
            raise UsageError(
                f"{place}: expected a list of names in parameters, and SQL in statements",
                hint="see docs/guides/gyro.md",
            )
        transaction = Transaction(str(name), tuple(parameters), place, _weight(place, body.get("weight", 1)))
        transaction.known |= _constants(place, body.get("constants") or {})
        for number, sql in enumerate(statements, start=1):
            known = dict(transaction.known)
            _add(transaction, sql, schema, f"{place}, statement {number}", ids)
            if document.get("recorded"):
                transaction.known = known
        transaction.finish(schema)
        found.append(transaction)
    return schema, found


def schema_text(file: Path) -> str:
    """The DDL of a YAML file."""
    given = _document(file).get("schema")
    if not isinstance(given, str):
        raise UsageError(
            f"{file} has no schema",
            hint=("give ", Argument("schema", "FILE"), ", or write `schema:` with the DDL or the name of its file"),
        )
    if "\n" in given or "(" in given:
        return given
    other = file.parent / given
    if not other.is_file():
        raise UsageError(f"{file}: no schema file {other}", hint="give a file with DDL")
    return other.read_text(encoding="utf-8")


def _document(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not YAML: {' '.join(str(error).split())}", hint="correct the file") from None
    if not isinstance(document, dict) or not isinstance(document.get("transactions"), dict):
        raise UsageError(
            f"{file}: expected a mapping with `transactions`",
            hint="see docs/guides/gyro.md for the format",
        )
    return document


def read_sql(
    file: Path, schema: Schema | None, *, dialect: Dialect = "sqlite", ids: Ids = "server"
) -> tuple[Schema, list[Transaction]]:
    """Read the transactions of a SQL file. The text before the first transaction may be the schema."""
    text = file.read_text(encoding="utf-8")
    headers = list(_HEADER.finditer(text))
    head = text[: headers[0].start()] if headers else text
    if schema is None:
        schema = parse_schema(head, dialect=dialect, source=str(file))
    found = []
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        signature = _SIGNATURE.fullmatch(header[1])
        line = text.count("\n", 0, header.start()) + 1
        if signature is None:
            raise UsageError(
                f"{file}:{line}: expected a name and parameters, got {header[1]!r}",
                hint="for example: -- transaction: add(cart, item)",
            )
        names = tuple(n.strip() for n in signature[2].split(",") if n.strip())
        transaction = Transaction(signature[1], names, f"{file}:{line}")
        for sql in split(text[header.end() : following.start() if following else len(text)]):
            at = text.index(sql, header.end())
            _add(transaction, sql, schema, f"{file}:{text.count(chr(10), 0, at) + 1}", ids)
        if not transaction.statements:
            raise UsageError(
                f"{file}:{line}: {signature[1]} has no statements", hint="write the statements below the header"
            )
        transaction.finish(schema)
        found.append(transaction)
    return schema, found


def split(text: str) -> list[str]:
    """Split a text at semicolons into statements.

    >>> split("SELECT ';'; SELECT 2")
    ["SELECT ';'", 'SELECT 2']
    """
    parts, start = [], 0
    for match in _SEMICOLON.finditer(text):
        if match[1]:
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return [p.strip() for p in parts if re.sub(r"--[^\n]*", "", p).strip()]


def _add(transaction: Transaction, sql: str, schema: Schema, place: str, ids: Ids) -> None:
    known: dict[str, Term] = {name: Parameter(name) for name in transaction.parameters}
    known |= transaction.known
    bindings: dict[str, Term] = {}
    for name in placeholders(sql)[1]:
        if name not in known and (implied := _implied(name, schema, ids)) is not None:
            known[name] = implied
        if name not in known:
            names = ", ".join(known) or "none"
            raise UsageError(
                f"{place}: :{name.removeprefix('_')} is neither a parameter nor returned by an earlier statement",
                hint=f"known names: {names}",
            )
        bindings[name] = known[name]
    for name, term in transaction.add(sql, bindings, schema, place=place, ids=ids):
        transaction.known[name] = term


def _implied(name: str, schema: Schema, ids: Ids) -> Term | None:
    """What a name means by itself: any value, a new UUID, or an id that the transaction generates for a table."""
    if name.startswith("any_"):
        return Unknown("any value")
    if name.startswith("uuid_") and name[5:].isdigit():
        return Generated("uuid", -1 - int(name[5:])) if ids == "server" else Unknown("a new UUID")
    table = schema.tables.get(name.removeprefix("new_").lower()) if name.startswith("new_") else None
    if table is None or table.generated is None:
        return None
    if ids == "table":
        return Unknown(f"the table generates {table.name}.{table.generated}")
    return Generated(f"{table.name}.{table.generated}", -1)


def _constants(place: str, given: Any) -> dict[str, Term]:
    plain = isinstance(given, dict) and all(
        isinstance(v, int | str) and not isinstance(v, bool) for v in given.values()
    )
    if not plain:
        raise UsageError(
            f"{place}: expected names with numbers or text in constants", hint="for example constants: {open: 1}"
        )
    exact = {n: v for n, v in given.items() if isinstance(v, str) or abs(v) < EXACT}
    return {str(n): Constant(exact[n]) if n in exact else Unknown("a large number") for n in given}


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _weight(place: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise UsageError(f"{place}: weight {value!r} is not a weight", hint="give a finite number of at least 0")
    return float(value)
