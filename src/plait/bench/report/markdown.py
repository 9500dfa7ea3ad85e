"""A table as Markdown."""

from __future__ import annotations

from plait.bench.report.cells import grid
from plait.bench.table import Table


def table_markdown(table: Table) -> str:
    """The table as Markdown; the settings are the first column."""
    laid = grid(table)
    lines = [f"## {table.title}", ""]
    if table.conditions:
        lines += [f"{table.conditions}.", ""]
    if table.rows:
        lines.append(f"| setting | {' | '.join(laid.headings)} |")
        lines.append("|---" + "".join("|--:" if number else "|---" for number in laid.numbers) + "|")
        for section, under in laid.sections.items():
            lines += [f"| {' | '.join(map(_escaped, (section, *line.cells)))} |" for line in under]
        lines.append("")
    for remark in laid.remarks:
        lines += [remark.replace("*", r"\*"), ""]
    text = "\n".join(lines[:-1] if lines[-1] == "" else lines) + "\n"
    return "\n".join([text, *map(table_markdown, table.parts)])


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|").replace("*", r"\*")
