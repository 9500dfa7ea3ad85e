"""The output of `plait bench`: the machine, then one table or several."""

from __future__ import annotations

import msgspec

from plait.bench.machine import Machine
from plait.bench.report.markdown import table_markdown
from plait.bench.report.text import table_text
from plait.bench.table import Table


class Results(msgspec.Struct, frozen=True):
    """The tables, and the machine on which they were measured."""

    machine: Machine
    tables: list[Table]


def results_text(results: Results, *, width: int, color: bool) -> str:
    """The results for a terminal."""
    parts = [f"{results.machine}\n", *(table_text(table, width=width, color=color) for table in results.tables)]
    return "\n".join(parts)


def results_markdown(results: Results) -> str:
    """The results as Markdown."""
    return "\n".join([f"{results.machine}.\n", *map(table_markdown, results.tables)])


def results_json(results: Results) -> str:
    """The results as one JSON object (docs/reference/cli.md)."""
    return msgspec.json.encode(results).decode()
