"""The conflicts of an application as SVG: writers on the left, transactions that read or write the same on the right.

A dashed line is a conflict that the partitioning puts at one server. A solid line is a conflict that may be between
servers. Shapes carry the same information as colours: global transactions have a thick border, local/global ones a
dashed border.
"""

from __future__ import annotations

from plait.kernel.classification import Classification, Conflict, Operation
from plait.report.markup import asset, diagram_styles, escape, shorten, text_width
from plait.report.wording import visible

_ROW, _BOX, _GAP, _MARGIN, _HEAD, _PAD = 30.0, 22.0, 420.0, 16.0, 48.0, 10.0
_LENGTH = 34


def conflict_svg(found: Classification, *, standalone: bool = True) -> str:
    """Draw the conflicts between transactions."""
    merged: dict[tuple[str, str], list[Conflict]] = {}
    for conflict in found.conflicts:
        merged.setdefault((conflict.writer, conflict.other), []).append(conflict)
    by_name = {o.name: o for o in found.operations}
    order = [o.name for o in sorted(found.operations, key=lambda o: o.classed == "local")]
    writers = [n for n in order if any(w == n for w, _ in merged)]
    others = [n for n in order if any(o == n for _, o in merged)]
    wide = max((text_width(_label(by_name[n]), 12) for n in {*writers, *others}), default=100.0) + 2 * _PAD
    height = _HEAD + _ROW * max(len(writers), len(others), 1) + _MARGIN
    width = 2 * (_MARGIN + wide) + _GAP
    tops = {"writer": _tops(len(writers), height), "other": _tops(len(others), height)}
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    parts = [
        f'<svg{space} class="plait-diagram plait-conflicts" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img"><title>{escape("Conflicts in " + visible(found.application))}</title>',
        f"<style>{diagram_styles()}{asset('conflict_graph.css')}</style>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
        f'<text class="side" x="{_MARGIN:.0f}" y="24">writes</text>',
        f'<text class="side" x="{width - _MARGIN:.0f}" y="24" text-anchor="end">reads or writes the same</text>',
    ]
    left, right = _MARGIN + wide, _MARGIN + wide + _GAP
    lines = []
    for (writer, other), conflicts in merged.items():
        y1, y2 = tops["writer"][writers.index(writer)], tops["other"][others.index(other)]
        local = all(c.local for c in conflicts)
        bend = _GAP * 0.45
        lines.append(
            (
                not local,
                f'<g class="conflict {"local" if local else "remains"}" data-writer="{escape(writer)}" '
                f'data-other="{escape(other)}"><title>{escape(_tip(conflicts))}</title><path d="M{left:.1f} {y1:.1f} '
                f'C{left + bend:.1f} {y1:.1f} {right - bend:.1f} {y2:.1f} {right:.1f} {y2:.1f}"/></g>',
            )
        )
    parts += [line for _, line in sorted(lines)]
    parts += [_node(by_name[n], _MARGIN, tops["writer"][i], wide) for i, n in enumerate(writers)]
    parts += [_node(by_name[n], right, tops["other"][i], wide) for i, n in enumerate(others)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _tops(count: int, height: float) -> list[float]:
    """The vertical positions of the boxes of a column."""
    room = height - _HEAD - _MARGIN
    step = room / max(count, 1)
    return [_HEAD + step * (i + 0.5) for i in range(count)]


def _label(operation: Operation) -> str:
    marks = {"local": "L", "global": "G", "local/global": "L/G"}
    return f"{shorten(visible(operation.name), _LENGTH)}  {marks[operation.classed]}"


def _node(operation: Operation, x: float, y: float, wide: float) -> str:
    kind = operation.classed.replace("/", "-")
    tip = (
        f"{operation.name}: {operation.classed}, routed by {', '.join(operation.keys) or 'nothing'}\n{operation.reason}"
    )
    return (
        f'<g class="transaction {kind}" data-name="{escape(operation.name)}"><title>{escape(tip)}</title>'
        f'<rect x="{x:.1f}" y="{y - _BOX / 2:.1f}" width="{wide:.1f}" height="{_BOX:.0f}" rx="5"/>'
        f'<text x="{x + wide / 2:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(_label(operation))}</text></g>'
    )


def _tip(conflicts: list[Conflict]) -> str:
    lines = []
    for c in conflicts:
        where = "always at one server" if c.local else "perhaps at different servers"
        lines.append(f"{c.other} {c.kind} what {c.writer} writes, {where}: {shorten(', '.join(c.attributes), 200)}")
        lines += [f"  because {by}" for by in c.by[:4]]
    return "\n".join(lines)
