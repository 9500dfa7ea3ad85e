"""Measurements at several sites for a terminal, as Markdown, and as a drawing."""

from __future__ import annotations

import io
import math

from plait.bench.sites import SiteRow, SiteTable
from plait.report.markup import escape

_HEADS = (
    "configuration",
    "servers",
    "clients",
    "ops/s",
    "mean ms",
    "median",
    "local*",
    "global",
    "global %",
    "ratio",
    "paper",
)
_LINE, _BAR, _LEFT, _AXIS = 17, 11, 170, 420


def _cells(row: SiteRow) -> list[str]:
    return [
        row.configuration,
        str(row.servers),
        str(row.clients),
        f"{row.throughput:,.0f}",
        f"{row.mean:,.1f}",
        f"{row.median:,.1f}",
        f"{row.local_median:,.2f}",
        f"{row.global_mean:,.0f}" if row.global_share else "",
        f"{row.global_share:.1%}",
        f"{row.ratio:.1f} x" if row.ratio else "",
        f"{row.published_ratio:.1f} x" if row.published_ratio else "",
    ]


_REMARK = (
    "* median of operations without the token, at the server; ratio: how many times lower the mean is than central"
)


def sites_text(table: SiteTable, *, width: int, color: bool) -> str:
    """The table as a terminal shows it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in _HEADS:
        grid.add_column(head, justify="left" if head == "configuration" else "right", no_wrap=True)
    for number, (workload, rows) in enumerate(table.workloads.items()):
        if number:
            grid.add_section()
        grid.add_row(f"[bold]{workload}[/]")
        for row in rows:
            grid.add_row(*_cells(row))
    console = Console(file=io.StringIO(), width=max(width, 100), force_terminal=color, highlight=False)
    console.print(table.title, style="bold")
    console.print(grid)
    console.print(_REMARK)
    console.print(table.conditions)
    for line in table.summary:
        console.print(line)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in str(text).splitlines())


def sites_markdown(table: SiteTable) -> str:
    """The table as Markdown."""
    lines = [f"| workload | {' | '.join(_HEADS)} |", "|---|---|" + "---:|" * (len(_HEADS) - 1)]
    for workload, rows in table.workloads.items():
        lines += [f"| {workload} | {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join([*lines, "", _REMARK, "", table.conditions, "", *table.summary])


def sites_svg(table: SiteTable) -> str:
    """Bars of the mean latency, on a logarithmic scale."""
    most = max((row.mean for row in table.rows), default=1.0)
    decades = max(1, math.ceil(math.log10(max(most, 1.1))))

    def x(value: float) -> float:
        return _LEFT + _AXIS * math.log10(max(value, 1.0)) / decades

    body: list[str] = []
    y = 64.0
    for workload, rows in table.workloads.items():
        y += 8
        body.append(f'<text class="head" x="14" y="{y + _BAR:g}">{escape(workload)}</text>')
        y += _LINE
        for row in rows:
            label = row.configuration if row.configuration.endswith("local") else f"{row.configuration}, {row.servers}"
            about = f"{label}: mean {row.mean:.1f} ms, {row.throughput:.0f} operations per second"
            body.append(f'<text x="26" y="{y + _BAR - 1:g}">{escape(label)}</text>')
            kind = row.configuration if row.configuration in ("central", "gyro", "read-only", "galera") else "gyro"
            body.append(
                f'<rect class="{kind}" x="{_LEFT}" y="{y:g}" width="{max(x(row.mean) - _LEFT, 1):.1f}" height="{_BAR}">'
                f"<title>{escape(about)}</title></rect>"
            )
            shown = f"{row.mean:,.1f} ms, {row.throughput:,.0f}/s"
            body.append(f'<text x="{x(row.mean) + 5:.1f}" y="{y + _BAR - 1:g}">{shown}</text>')
            y += _LINE
    grid = [
        f'<line class="grid" x1="{x(10**d):.1f}" x2="{x(10**d):.1f}" y1="58" y2="{y:g}"/>'
        f'<text class="tick" x="{x(10**d):.1f}" y="52">{10**d:,}</text>'
        for d in range(decades + 1)
    ]
    size = (_LEFT + _AXIS + 130, y + 14)
    style = (
        "text{font:11px sans-serif;fill:#222}.head{font-weight:bold}.tick{text-anchor:middle;fill:#666}.paper{fill:#fff}"
        ".grid{stroke:#ddd}.gyro{fill:#3b76af}.central{fill:#777}.read-only{fill:#b5cde3}.galera{fill:#c98a4b}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]:g}" width="{size[0]}" '
        f'height="{size[1]:g}" role="img" aria-label="{escape(table.title)}"><style>{style}</style>'
        f'<rect class="paper" width="{size[0]}" height="{size[1]:g}"/>'
        f'<text class="head" x="14" y="18">{escape(table.title)}</text>'
        '<text x="14" y="34">mean latency in milliseconds, logarithmic; operations per second</text>'
        + "".join([*grid, *body])
        + "</svg>\n"
    )
