"""`plait gyro`: scale out a SQL application. `analyze` finds the operations that need no coordination."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.gyro_backup import backup, restore
from plait.cli.gyro_change import change
from plait.cli.gyro_record import record
from plait.cli.gyro_serve import serve
from plait.cli.gyro_status import status
from plait.cli.options import AtLeastOne, Flag, Quiet
from plait.cli.output import colored, emit, emit_json, note, width, writable
from plait.kernel.errors import UsageError

__all__ = ["analyze", "backup", "change", "record", "restore", "serve", "status"]


def analyze(
    application: str,
    /,
    *,
    schema: Annotated[Path | None, Parameter(name="--schema")] = None,
    weights: Annotated[Path | None, Parameter(name="--weights")] = None,
    dialect: Literal["sqlite", "postgres", "mysql"] = "sqlite",
    ids: Literal["server", "table"] = "server",
    servers: AtLeastOne = 3,
    json: Flag = False,
    html: Annotated[Path | None, Parameter(name="--html")] = None,
    quiet: Quiet = False,
) -> int:
    """Classify the transactions of an application (the help text is in `plait.cli.main`).

    Parameters
    ----------
    application
        A Python file or package whose functions execute SQL, or a .yaml or .sql file that lists transactions.
    schema
        A file with the DDL. Default: the constant SCHEMA, schema.sql next to the application, or SQLAlchemy Tables.
    weights
        The relative frequency of each transaction: a YAML file with lines like `order: 3`.
    dialect
        The dialect of the SQL: sqlite, postgres or mysql.
    ids
        The source of ids that INSERT leaves out: each server (server), or the table (table).
    servers
        The number of servers, at least 2. It determines the cost of local/global transactions.
    json
        Print exactly one JSON object on stdout.
    html
        Write a report with the conflict graph: one file that works offline.
    quiet
        Print no progress.
    """
    writable(html, "--html")
    from plait.gyro.analysis import analyze as run

    with _progress(quiet) as tell:
        found = run(
            application, schema=schema, weights=weights, dialect=dialect, ids=ids, servers=servers or 3, tell=tell
        )
    if html is not None:
        from plait.report.classification.html import classification_page

        try:
            html.write_text(classification_page(found), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"--html: {html} cannot be written: {error.strerror}", hint="choose another file"
            ) from None
    if json:
        emit_json(found)
    else:
        from plait.report.classification.text import classification_text

        emit(classification_text(found, width=width(), color=colored(sys.stdout)))
    if html is not None:
        note(f"report: {html}")
    return 0


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the current pair of transactions on a terminal. Other outputs get no progress."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
