"""Tables of SQLAlchemy Core, read from the source: names and columns, and the DDL where the definition says all of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from plait.gyro.values import CoreTable

_PLAIN = {
    "Integer": "INTEGER", "BigInteger": "BIGINT", "SmallInteger": "SMALLINT", "INTEGER": "INTEGER", "BIGINT": "BIGINT",
    "SMALLINT": "SMALLINT", "String": "VARCHAR", "Text": "TEXT", "Unicode": "VARCHAR", "UnicodeText": "TEXT",
    "VARCHAR": "VARCHAR", "TEXT": "TEXT", "Float": "FLOAT", "Double": "DOUBLE PRECISION", "REAL": "REAL",
}  # fmt: skip
"""Types whose values are sent to the database as they are."""
_CONVERTED = {
    "Boolean": "BOOLEAN", "Date": "DATE", "DateTime": "TIMESTAMP", "Time": "TIME", "Numeric": "NUMERIC",
    "LargeBinary": "BLOB",
}  # fmt: skip
_FILLED = {"default", "onupdate", "insert_default"}
_HARMLESS = {"primary_key", "nullable", "unique", "autoincrement", "index", "comment"}
_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")

Resolve = Callable[[ast.expr], str | None]
"""The name that something has in SQLAlchemy."""


class _DefinitionError(Exception):
    """Something of a definition that is not understood."""


def table(node: ast.Call, resolve: Resolve) -> CoreTable | None:
    """What `Table(name, metadata, Column(…), …)` defines; None if even its columns are not certain."""
    if len(node.args) < 2 or node.keywords:
        return None
    columns: list[tuple[str, bool]] = []
    lines: list[str] = []
    key: list[str] = []
    written, complete = "", True
    try:
        name = _name(node.args[0])
        for part in node.args[2:]:
            kind = resolve(part.func) if isinstance(part, ast.Call) else None
            if kind == "Column":
                assert isinstance(part, ast.Call)
                own, plain, filled, line = _column(part, resolve, key)
                columns.append((own, plain))
                written = written or filled
                complete = complete and line is not None
                lines.append(line or "")
            elif kind in ("PrimaryKeyConstraint", "UniqueConstraint") and isinstance(part, ast.Call):
                names = [_name(a) for a in part.args]
                lines.append(f"{'UNIQUE' if kind[0] == 'U' else 'PRIMARY KEY'} ({_quoted(names)})")
            elif kind == "Index":
                assert isinstance(part, ast.Call)
                complete = complete and not any(k.arg == "unique" for k in part.keywords)
            elif kind in ("ForeignKeyConstraint", "CheckConstraint"):
                complete = False
            else:
                return None
    except _DefinitionError:
        return None
    if key:
        lines.append(f"PRIMARY KEY ({_quoted(key)})")
    ddl = f'CREATE TABLE "{name}" ({", ".join(lines)});' if complete and not written else ""
    return CoreTable(name, tuple(columns), written, ddl)


def _column(node: ast.Call, resolve: Resolve, key: list[str]) -> tuple[str, bool, str, str | None]:
    """Name, whether values are stored as given, what SQLAlchemy fills it with, and its line of DDL if that is certain."""
    name = _name(node.args[0]) if node.args else ""
    plain, kind, refers, filled = False, "", "", ""
    certain = True
    for part in node.args[1:]:
        call = part.func if isinstance(part, ast.Call) else part
        found = resolve(call)
        if found == "ForeignKey" and isinstance(part, ast.Call):
            target = part.args[0] if part.args else None
            said = target.value if isinstance(target, ast.Constant) else None
            fits = isinstance(said, str) and re.fullmatch(r"[a-z_]\w*\.[a-z_]\w*", said) and not part.keywords
            certain = certain and bool(fits)
            if fits:
                other, _, column = str(said).partition(".")
                refers = f' REFERENCES "{other}" ("{column}")'
        elif found in _PLAIN and not (isinstance(part, ast.Call) and (part.keywords or len(part.args) > 1)):
            plain, kind = True, _PLAIN[found]
        elif found in _CONVERTED:
            kind = _CONVERTED[found]
        else:
            certain = False  # a type of the application's own or with a collation, a sequence, a computed column
            filled = f"{found} of the column {name}" if found in ("Sequence", "Identity", "Computed") else filled
    said_of: dict[str, object] = {}
    for keyword in node.keywords:
        if keyword.arg in _FILLED:
            filled = f"the {keyword.arg} of the column {name}"
        elif keyword.arg not in _HARMLESS:
            certain = False
            if keyword.arg not in ("server_default", "info", "doc"):
                raise _DefinitionError
        elif not isinstance(keyword.value, ast.Constant):
            certain = False
        else:
            said_of[keyword.arg] = keyword.value.value
    line = f'"{name}" {kind}{" NOT NULL" if said_of.get("nullable") is False else ""}'
    line += (" UNIQUE" if said_of.get("unique") else "") + refers
    if said_of.get("primary_key"):
        key.append(name)
    return name, plain, filled, line if certain and kind else None


def _name(node: ast.expr) -> str:
    """A name that is written the same with and without quotes."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.match(node.value)):
        raise _DefinitionError
    return node.value


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{n}"' for n in names)
