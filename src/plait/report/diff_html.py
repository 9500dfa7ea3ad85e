"""Two traces side by side, as one self-contained HTML file. Both diagrams have the same lanes and rows.

Like the report, the page is complete without its script: then it has the drawings and a table of the steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from plait.kernel.alignment import Alignment, lanes
from plait.kernel.trace import Lane, Snapshot, Trace
from plait.report.diff import (
    NAMES,
    beginnings,
    counts,
    difference_rows,
    entries,
    fairness,
    headline,
    introduced,
    parting,
)
from plait.report.html import LONG, page
from plait.report.markup import escape
from plait.report.space_time.layout import rows_with_bands
from plait.report.space_time.svg import space_time
from plait.report.viewer import embedded, pair_data

_CLASSES = {"same": "", "changed": "changed", "moved": "moved", "one": "alone"}


def diff_page(first: Trace, second: Trace, found: Alignment, names: tuple[str, str], renamed: Mapping[str, str]) -> str:
    """The report of `plait diff --html`: a summary, and a viewer of both runs. Without script, drawings and a table."""
    said = headline(first, second, found)
    sides = zip(NAMES, names, (first, second), strict=True)
    parts = "".join(f"<li><b>{name}</b> {escape(what)}</li>" for name, what in parting(first, second, found))
    summary = "; ".join([counts(found), *fairness(found), *beginnings(found, renamed)])
    where = f" The first difference:</p><ul>{parts}</ul>" if parts else "</p>"
    header = [
        '<header class="summary">',
        f'<h1><span class="badge {"holds" if found.same else "violated"}">{"SAME" if found.same else "DIFFERENT"}</span> '
        f'<span class="subject">{escape(said)}</span></h1>',
        *(f'<p class="claim"><b>{name}</b> {escape(introduced(file, trace))}</p>' for name, file, trace in sides),
        "" if found.same else f'<p class="claim">{escape(summary)}.{where}',
        _values("Initial states", found.start),
        _values("Last states", found.end),
        '<p class="legend">Both diagrams have the same lanes. Steps that are the same are in the same row. '
        '<b class="alone">●</b> in one run only, <b class="changed">●</b> the same handler with other effects, '
        '<b class="moved">●</b> the same step at another time.</p>',
        "</header>",
    ]
    # It opens at the first difference.
    start = 0 if found.same_steps else found.common + 1
    viewer = [
        f'<section class="viewer" id="trace0" data-current="{start}" aria-label="both runs">',
        f"<noscript>\n{_diagrams(first, second, found)}\n{_steps(first, second, found)}\n</noscript>",
        embedded(pair_data(first, second, found.rows, start)),
        "</section>",
    ]
    return page(said, "\n".join(header), ["\n".join(viewer)], look="diff")


def _values(title: str, found: Sequence[object]) -> str:
    rows = "".join(
        f"<tr><th>{escape(what)}</th><td>{escape(a)}</td><td>{escape(b)}</td></tr>"
        for what, a, b in difference_rows(list(found))  # type: ignore[arg-type]
    )
    if not rows:
        return ""
    return f'<table class="values"><thead><tr><th>{title}</th><th>A</th><th>B</th></tr></thead><tbody>{rows}</tbody></table>'


def _diagrams(first: Trace, second: Trace, found: Alignment) -> str:
    """The two drawings. A row is empty if only the other run has an event there."""
    if max(len(first), len(second)) > LONG:
        return "<p>The runs are long: their diagrams need JavaScript.</p>"
    both, drawings = lanes(first, second), []
    places: dict[str, list[int]] = {"first": [0], "second": [0]}
    for number, row in enumerate(found.rows, 1):
        for side, steps in places.items():
            if getattr(row, side) is not None:
                steps.append(number)
    # A boundary of either run takes room in both drawings, so that rows stay side by side.
    bands: Counter[int] = Counter()
    for trace, steps in zip((first, second), places.values(), strict=True):
        bands |= Counter(steps[mark.before + 1] for mark in trace.marks if mark.before + 1 < len(steps))
    for name, trace, side in zip(NAMES, (first, second), ("first", "second"), strict=True):
        marked = {step + 1: _CLASSES[r.relation] for r in found.rows if (step := getattr(r, side)) is not None}
        rows = rows_with_bands(places[side], list(bands.elements()))
        drawing = space_time(_with_lanes(trace, both), standalone=False, rows=rows, marked=marked)
        drawings.append(f'<figure><figcaption>{name}</figcaption><div class="scroll">{drawing}</div></figure>')
    return f'<div class="pair">{"".join(drawings)}</div>'


def _with_lanes(trace: Trace, both: list[Lane]) -> Trace:
    """The trace on the lanes of both. Lanes that it does not have are not drawn."""
    missing = {lane.name: "unborn" for lane in both} | dict.fromkeys((lane.name for lane in trace.lanes), "")
    absent = {name: status for name, status in missing.items() if status}

    def without(state: Snapshot) -> Snapshot:
        return msgspec.structs.replace(state, status={**state.status, **absent}) if absent else state

    events = [msgspec.structs.replace(e, state=without(e.state)) for e in trace.events]
    return msgspec.structs.replace(trace, lanes=both, initial=without(trace.initial), events=events)


def _steps(first: Trace, second: Trace, found: Alignment) -> str:
    rows = []
    for entry in entries(first, second, found):
        said = "".join(f"<div><b>{whose}</b> <i>{kind}</i> {escape(what)}</div>" for whose, kind, what in entry.details)
        a, b = entry.numbers
        rows.append(
            f'<tr class="{entry.row.relation}"><td>{a}</td><td>{b}</td><td>{escape(entry.title)}</td><td>{said}</td></tr>'
        )
    head = "<tr><th>A</th><th>B</th><th>step</th><th>effects (A, B: only in this run)</th></tr>"
    table = f'<table class="steps2"><thead>{head}</thead>{"".join(rows)}</table>'
    return f"<details open><summary>Steps</summary>{table}</details>"
