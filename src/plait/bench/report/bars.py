"""Horizontal bars on a logarithmic scale as an SVG, in sections, with marks for what somebody else found."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from plait.report.markup import escape, text_width

_SIZE, _LINE, _BAR, _MARGIN, _AXIS, _LABELS = 11, 17, 11, 14, 480, 210
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


Kind = Literal["bar", "limit", "differs"]


class Mark(NamedTuple):
    """A diamond; hollow if the value is only a bound."""

    value: float
    about: str
    hollow: bool = False


class Bar(NamedTuple):
    """One bar; a value of None leaves its place empty."""

    label: str
    value: float | None
    text: str
    """What stands at its end."""
    about: str
    kind: Kind = "bar"
    mark: Mark | None = None


def bars_svg(title: str, legend: str, sections: dict[str, list[Bar]]) -> str:
    """Draw them."""
    bars = [bar for under in sections.values() for bar in under]
    most = max([10.0, *(bar.value or 0 for bar in bars), *(bar.mark.value for bar in bars if bar.mark)])
    decades = math.ceil(math.log10(most))
    left = _MARGIN + _LABELS
    full = left + _AXIS + 130

    def x(value: float) -> float:
        return left + _AXIS * math.log10(max(value, 1)) / decades

    body: list[str] = []
    y = 62.0
    for section, under in sections.items():
        y += 8
        body.append(_text(_MARGIN, y + _BAR, section, "setting"))
        y += _LINE
        for bar in under:
            body.append(_text(_MARGIN + 12, y + _BAR - 1, bar.label))
            end = float(left)
            if bar.value is not None:
                end = x(bar.value)
                body.append(
                    f'<rect class="{bar.kind}" x="{left}" y="{y:g}" width="{max(end - left, 1):.1f}" height="{_BAR}">'
                    f"<title>{escape(bar.about)}</title></rect>"
                )
            if bar.mark is not None:
                at = x(bar.mark.value)
                body.append(_diamond(at, y + _BAR / 2, bar.mark))
                # The number stands where neither the bar nor the mark is.
                end = at + 4 if end - 7 <= at <= end + text_width(bar.text, _SIZE) + 14 else end
            body.append(_text(end + 5, y + _BAR - 1, bar.text))
            y += _LINE
    axis = []
    for decade in range(decades + 1):
        at = x(10**decade)
        axis.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="58" y2="{y + 4:g}"/>')
        axis.append(_text(at, 52, f"{10**decade:,}" if decade < 5 else f"10{str(decade).translate(_RAISED)}", "tick"))
    height = y + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {height:g}" width="{full}" height="{height:g}" '
        f'role="img" aria-label="{escape(title)}"><style>{_STYLE}</style>'
        f'<rect class="paper" width="{full}" height="{height:g}"/>'
        + _text(_MARGIN, 18, title, "setting")
        + _text(_MARGIN, 34, legend)
        + "".join([*axis, *body])
        + "</svg>\n"
    )


_STYLE = (
    f"text{{font:{_SIZE}px sans-serif;fill:#222}}.setting{{font-weight:bold}}.tick{{text-anchor:middle;fill:#666}}"
    ".paper{fill:#fff}.grid{stroke:#ddd}.bar{fill:#3b76af}.limit{fill:#b5cde3}.differs{fill:#c0392b}"
    ".mark{fill:#e08214;stroke:#7f3b08}.hollow{fill:#fff;stroke:#7f3b08}"
)


def _text(x: float, y: float, raw: str, kind: str | None = None) -> str:
    return f'<text x="{x:.1f}" y="{y:g}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(raw)}</text>'


def _diamond(x: float, y: float, mark: Mark) -> str:
    kind = "hollow" if mark.hollow else "mark"
    return f'<path class="{kind}" d="M{x:.1f} {y - 5:g}l4 5l-4 5l-4 -5z"><title>{escape(mark.about)}</title></path>'
