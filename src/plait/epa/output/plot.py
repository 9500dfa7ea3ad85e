"""A campaign as a plot: coverage by type of fault and outcome, with 95 % intervals (Saissi 2019, Figure 17)."""

from __future__ import annotations

from html import escape

from plait.epa.campaign import Summary

_COLORS = {"crash": "#8c2d04", "hang": "#cc4c02", "sdc": "#fe9929", "masked": "#fed98e"}
_NAMES = {"crash": "crash", "hang": "hang", "sdc": "SDC", "masked": "spread, same output"}
_BAR, _GAP, _HEIGHT, _LEFT, _TOP = 64, 36, 260, 60, 60


def campaign_svg(summary: Summary, *, embedded: bool = False) -> str:
    """The plot as SVG. The rest up to 100 % are runs in which only the corrupted value deviates.

    A plot that is embedded in a page has the colours of the page, and no title.
    """
    width = max(_LEFT + 20 + len(summary.shares) * (_BAR + _GAP), 560)
    height = _TOP + _HEIGHT + 60
    title = f"{summary.header.program} {' '.join(summary.header.arguments)}"
    ink = "currentColor" if embedded else "#000"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{ink}" role="img" aria-label="fault coverage">',
    ]
    if not embedded:
        parts.append(f'<rect width="{width}" height="{height}" fill="#fff"/>')
        parts.append(f'<text x="{_LEFT}" y="20" font-weight="600">Fault coverage: {escape(title)}</text>')
    for i, (name, color) in enumerate(_COLORS.items()):
        parts.append(f'<rect x="{_LEFT + i * 110}" y="32" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{_LEFT + 17 + i * 110}" y="43">{_NAMES[name]}</text>')
    for tenth in range(0, 11, 2):
        y = _TOP + _HEIGHT * (1 - tenth / 10)
        parts.append(f'<path d="M{_LEFT} {y}H{width - 10}" stroke="#888" stroke-opacity=".35"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{tenth * 10} %</text>')
    for i, share in enumerate(summary.shares):
        x = _LEFT + 20 + i * (_BAR + _GAP)
        bottom = float(_TOP + _HEIGHT)
        for name, color in _COLORS.items():
            part = _HEIGHT * share.outcomes[name] / share.runs
            bottom -= part
            parts.append(f'<rect x="{x}" y="{bottom:.1f}" width="{_BAR}" height="{part:.1f}" fill="{color}"/>')
        low, high = (_TOP + _HEIGHT * (1 - v) for v in (share.low, share.high))
        middle = x + _BAR / 2
        whisker = f"M{middle} {low:.1f}V{high:.1f}M{middle - 6} {low:.1f}h12M{middle - 6} {high:.1f}h12"
        for color, thickness in (("#fff", 3), ("#000", 1)):  # visible on all colours
            parts.append(f'<path d="{whisker}" stroke="{color}" stroke-width="{thickness}"/>')
        parts.append(f'<text x="{middle}" y="{_TOP + _HEIGHT + 20}" text-anchor="middle">{escape(share.type)}</text>')
        parts.append(
            f'<text x="{middle}" y="{_TOP + _HEIGHT + 38}" text-anchor="middle">{share.coverage:.0%} of {share.runs}</text>'
        )
    return "".join([*parts, "</svg>\n"])
