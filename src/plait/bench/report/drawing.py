"""What drawings share: the frame of an SVG file, and texts."""

from __future__ import annotations

from collections.abc import Iterable

from plait.report.markup import escape

SIZE, LINE, BAR, MARGIN = 11, 17, 11, 14
"""Of texts, of a row, of its bar, and around everything, in pixels."""
STYLE = (
    f"text{{font:{SIZE}px sans-serif;fill:#222}}.setting{{font-weight:bold}}.tick{{text-anchor:middle;fill:#666}}"
    ".paper{fill:#fff}.grid{stroke:#ddd}"
)


def frame(title: str, legend: str, *, width: float, height: float, style: str, body: Iterable[str]) -> str:
    """A drawing with its title and a line below it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{escape(title)}"><style>{STYLE}{style}</style>'
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>'
        + label(MARGIN, 18, title, "setting")
        + label(MARGIN, 34, legend)
        + "".join(body)
        + "</svg>\n"
    )


def label(x: float, y: float, raw: str, kind: str | None = None) -> str:
    """A text at a place."""
    return f'<text x="{x:.1f}" y="{y:g}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(raw)}</text>'
