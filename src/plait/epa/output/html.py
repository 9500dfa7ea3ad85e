"""A comparison as an HTML page: both runs side by side, and the propagation graph."""

from __future__ import annotations

from itertools import pairwise

from plait.epa.comparison import Comparison, Deviation, Spot, path_to_output
from plait.report.html import page, run_section
from plait.report.markup import escape

_STYLE = """
.graph { overflow-x: auto; border: 1px solid var(--edge); border-radius: 6px; margin: 6px 0 }
.graph text { font: 12px var(--code); fill: var(--ink) } .graph .name { font-weight: 600 }
.graph .lane { fill: none; stroke: var(--edge) } .graph .box { fill: var(--paper); stroke: var(--soft) }
.graph .root { fill: var(--band); stroke: var(--violated); stroke-width: 2 }
.graph .path { stroke: var(--violated); stroke-width: 2 } .graph .link { fill: none; stroke: var(--soft); opacity: .55 }
.graph .link.on { stroke: var(--violated); stroke-width: 2; opacity: 1 } .graph .link.across { stroke-dasharray: 5 3 }
"""
"""The propagation graph. Everything else has the styles of all pages."""
_MOST = 80
_WIDTH, _HEIGHT, _GAP, _TOP = 250, 34, 40, 40


def comparison_html(found: Comparison) -> str:
    """The HTML page of a comparison."""
    said = "The runs are equal" if found.equal else "The faulty run deviates"
    output = "different output" if found.output_differs else "same output"
    facts = [f"golden {found.golden}", f"faulty {found.faulty}", found.ending, output]
    facts += [f"fault {found.fault}"] if found.fault else []
    status = "holds" if found.equal else "violated"
    header = (
        f'<header class="summary"><h1><span class="badge {status}">{"EQUAL" if found.equal else "DIFFERENT"}</span> '
        f'<span class="subject">{said}</span></h1><p class="claim">{escape(" · ".join(facts))}</p></header>'
    )
    sections = [_thread(thread) for thread in found.threads]
    if found.spots:
        graph = f'<div class="graph" tabindex="0" role="region" aria-label="propagation graph">{graph_svg(found)}</div>'
        sections.append(_panel("Propagation of the error", _explanation(found), graph, _links(found)))
    if found.verdict.trace is not None:
        sections.append(run_section(found.verdict.trace, "The spread of the error, step by step", status, 0))
    return page(said, header, sections, styles=_STYLE)


def _panel(title: str, *content: str) -> str:
    return f'<section class="panel"><h2>{escape(title)}</h2>{"".join(content)}</section>'


def _thread(thread: Deviation) -> str:
    if thread.first is None:
        return _panel(thread.thread, '<p class="soft">equal</p>')
    rows = "".join(
        f'<tr class="{"differs" if line.differs else ""}"><td>{escape(line.golden or "")}</td>'
        f"<td>{escape(line.faulty or '')}</td><td>{escape(line.place)}</td></tr>"
        for line in thread.lines
    )
    counts = f"{thread.changed:,} changed, {thread.missing:,} missing, {thread.extra:,} extra"
    path = "; the thread took a different path" if thread.parted else ""
    return _panel(
        thread.thread,
        f"<p>First deviation at event {thread.index:,}: {counts}{path}.</p>",
        '<table class="rows"><thead><tr><th>golden</th><th>faulty</th><th>source</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>",
    )


def _explanation(found: Comparison) -> str:
    more = len(found.spots) - _MOST
    cut = f" The graph shows the first {_MOST} of {len(found.spots)} instructions." if more > 0 else ""
    return (
        '<p class="soft">A box is an instruction of a thread, with the number of its deviating executions. A line '
        "means that one instruction used a value of another one. A dashed line connects two threads. Red: the fault, "
        f"and a shortest path from it to the output, or else to the last instruction.{cut}</p>"
    )


def graph_svg(found: Comparison) -> str:
    """The propagation graph: boxes on the lanes of their threads, in the order in which the error reached them."""
    spots = found.spots[:_MOST]
    lanes = list(dict.fromkeys(s.thread for s in spots))
    path = path_to_output(found)
    on_path = set(pairwise(path))
    x = {lane: 20 + i * (_WIDTH + _GAP * 2) for i, lane in enumerate(lanes)}
    y = [_TOP + 20 + i * (_HEIGHT + 14) for i in range(len(spots))]
    width, height = 40 + len(lanes) * (_WIDTH + _GAP * 2), _TOP + 40 + len(spots) * (_HEIGHT + 14)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" aria-label="propagation">'
    ]
    for lane in lanes:
        middle = x[lane] + _WIDTH / 2
        parts.append(f'<text class="name" x="{middle}" y="24" text-anchor="middle">{escape(lane)}</text>')
        parts.append(f'<path class="lane" d="M{middle} {_TOP}V{height - 10}"/>')
    for link in found.links:
        if link.source >= len(spots) or link.target >= len(spots):
            continue
        sx, sy = x[spots[link.source].thread], y[link.source]
        tx, ty = x[spots[link.target].thread], y[link.target]
        on = " on" if (link.source, link.target) in on_path else ""
        kind = f"link{' across' if link.across else ''}{on}"
        if link.across:
            begin = sx + _WIDTH if tx > sx else sx
            end = tx if tx > sx else tx + _WIDTH
            bend = (begin + end) / 2
        else:
            begin = end = sx + _WIDTH
            bend = begin + 14 + min(26, abs(link.target - link.source) * 3)
        from_, to = sy + _HEIGHT / 2, ty + _HEIGHT / 2
        d = f"M{begin} {from_}C{bend} {from_} {bend} {to} {end} {to}"
        through = f" through {link.object}" if link.object else ""
        parts.append(f'<path class="{kind}" d="{d}"><title>{escape(link.via + through)}, {link.times}x</title></path>')
    for i, spot in enumerate(spots):
        kind = "root" if spot.root else "box path" if i in path else "box"
        parts.append(
            f'<rect class="{kind}" x="{x[spot.thread]}" y="{y[i]}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
        )
        parts.append(f'<text x="{x[spot.thread] + 8}" y="{y[i] + 14}">[{i}] {escape(_cut(spot.what, 28))}</text>')
        parts.append(f'<text x="{x[spot.thread] + 8}" y="{y[i] + 28}">{escape(_cut(_place(spot), 32))}</text>')
    return "".join([*parts, "</svg>"])


def _place(spot: Spot) -> str:
    return f"{spot.place.rsplit('/', 1)[-1]}, {spot.events:,}x"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _links(found: Comparison) -> str:
    rows = "".join(
        f"<tr><td>[{link.source}] → [{link.target}]</td><td>{escape(link.via)}</td><td>{escape(link.object or '')}</td>"
        f"<td>{link.times:,}</td></tr>"
        for link in found.links
    )
    head = "<tr><th>from, to</th><th>by</th><th>through</th><th>times</th></tr>"
    table = f'<table class="rows sortable"><thead>{head}</thead><tbody>{rows}</tbody></table>'
    return f"<details><summary>All {len(found.links)} links</summary>{table}</details>"
