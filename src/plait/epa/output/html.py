"""HTML pages: a comparison (both runs side by side, the propagation graph), a check, and a campaign.

They have the style, the viewer and the tables of all reports (`plait.report`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from plait.epa.campaign import OUTCOMES, Result, Summary
from plait.epa.comparison import Comparison, Deviation, Spot, path_to_output
from plait.epa.output.plot import campaign_svg
from plait.epa.reversibility import Reversibility, Witness
from plait.report.html import page, run_section
from plait.report.markup import escape

_STYLE = """
.graph { overflow-x: auto; border: 1px solid var(--edge); border-radius: 6px; margin: 6px 0 }
.graph text { font: 12px var(--code); fill: var(--ink) } .graph .name { font-weight: 600 }
.graph .lane { fill: none; stroke: var(--edge) } .graph .box { fill: var(--paper); stroke: var(--soft) }
.graph .root { fill: var(--band); stroke: var(--violated); stroke-width: 2 }
.graph .path { stroke: var(--violated); stroke-width: 2 } .graph .link { fill: none; stroke: var(--soft); opacity: .55 }
.graph .link.on { stroke: var(--violated); stroke-width: 2; opacity: 1 } .graph .link.across { stroke-dasharray: 5 3 }
.panel ul { padding-left: 20px } .plot { overflow-x: auto } .plot svg { color: var(--ink) }
"""
"""The propagation graph and the plot. Everything else has the styles of all pages."""
_MOST = 80
_WIDTH, _HEIGHT, _GAP, _TOP = 250, 34, 40, 40


def comparison_html(found: Comparison) -> str:
    """The HTML page of a comparison."""
    refused = found.verdict.status == "inconclusive"
    said = "The runs are equal" if found.equal else "The faulty run deviates"
    badge = "EQUAL" if found.equal else "DIFFERENT"
    if refused:
        said, badge = "The runs cannot be compared", "NOT COMPARABLE"
    output = f"different output ({', '.join(found.differences)})" if found.output_differs else "same output"
    facts = [f"golden {found.golden}", f"faulty {found.faulty}", found.ending, output]
    facts += [f"fault {found.fault}"] if found.fault else []
    status = found.verdict.status
    header = _header(status, badge, said, facts)
    sections = [_doubts(found)] if found.doubts else []
    sections += [_replay(found)] if found.proof.replay else []
    sections += [_thread(thread) for thread in found.threads if thread.first is not None]
    equal = [thread.thread for thread in found.threads if thread.first is None]
    if equal:
        title = f"{len(equal)} of {len(found.threads)} threads are equal"
        names = f"<p>{escape(', '.join(equal))}</p>"
        sections.append(f'<section class="panel">{_folded(title, names)}</section>')
    if found.spots:
        graph = f'<div class="graph" tabindex="0" role="region" aria-label="propagation graph">{graph_svg(found)}</div>'
        title = "Propagation of the error" if found.comparable else "Propagation of the difference"
        gaps = f"Errors are not followed inside of these functions, nor through files: {', '.join(found.gaps)}."
        noted = f'<p class="soft">{escape(gaps)}</p>' if found.gaps else ""
        sections.append(_panel(title, _explanation(found), graph, noted, _links(found)))
    if found.verdict.trace is not None:
        of = "error" if found.comparable else "difference"
        sections.append(run_section(found.verdict.trace, f"The spread of the {of}, step by step", status, 0))
    elif refused and found.proof.verdict.trace is not None:
        sections.append(run_section(found.proof.verdict.trace, "A schedule that changes the run", "violated", 0))
    return page(said, header, sections, styles=_STYLE)


def _doubts(found: Comparison) -> str:
    rows = "".join(f"<li>{escape(doubt)}</li>" for doubt in found.doubts)
    shown = (
        "No difference is shown." if found.verdict.status == "inconclusive" else "They are shown below all the same."
    )
    return _panel(
        "Not comparable", f"<p>Differences between the runs need not come from the fault. {shown}</p><ul>{rows}</ul>"
    )


def _replay(found: Comparison) -> str:
    ended = "The faulty run replayed the golden run to the end. All deviations are effects of the fault."
    if found.replay_ended:
        ended = (
            f"Replay ended: {found.replay_ended.words}. Deviations after this point are effects of the fault or of another "
            "order of the threads."
        )
    return _panel("Replay", f"<p>{escape(ended)}</p>", _rows(found.proof.needs))


def _rows(rows: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li><code>{escape(row)}</code></li>' for row in rows)}</ul>"


def reversibility_html(found: Reversibility) -> str:
    """The HTML page of a check: the witnesses, the permuted schedule of the first one, and the assumptions."""
    verdict = found.verdict
    word, said = {
        "holds": ("HOLDS", "The trace is pseudo-deterministic"),
        "violated": ("VIOLATED", "The trace is not pseudo-deterministic"),
        "inconclusive": ("INCONCLUSIVE", "The check is not decided"),
    }[verdict.status]
    facts = [
        str(verdict.model),
        f"{verdict.statistics.states:,} records",
        f"{found.objects:,} objects, {found.shared_objects:,} of them shared",
        f"{found.dependencies:,} dependencies between threads",
    ]
    said += (" with replay" if verdict.status == "holds" else ", even with replay") if found.replay else ""
    header = _header(verdict.status, word, said, facts, verdict.bound or verdict.message)
    sections = [_witnesses(found.witnesses)] if found.witnesses else []
    lists = [
        ("Needs replay", found.needs),
        ("The input does not determine these", found.nondeterministic),
        ("Not joined before the program ends", found.loose),
        ("Nothing is known of", found.unseen),
        ("Assumptions", found.assumptions),
        ("Warnings", list(verdict.warnings)),
    ]
    for title, rows in lists:
        if rows:
            sections.append(_panel(title, _rows(rows)))
    if verdict.trace is not None:
        sections.append(run_section(verdict.trace, "A schedule with the second event first", verdict.status, 0))
    if verdict.status == "holds":
        sections.insert(0, _panel("No two dependent events can occur in reversed order"))
    return page(said, header, sections, styles=_STYLE)


def campaign_html(summary: Summary, results: Sequence[Result]) -> str:
    """The HTML page of a campaign: the plot, a table of the types of faults, and a table of all runs."""
    program = " ".join([summary.header.program, *summary.header.arguments])
    facts = [f"{len(results):,} of {summary.header.runs:,} runs", f"seed {summary.header.seed}"]
    facts.append(f"{summary.failures:,} crashes and silent data corruptions")
    facts.append(f"MPFNR {summary.mpfnr:.1%}")
    status, word = ("holds", "COMPLETE") if summary.complete else ("inconclusive", "INCOMPLETE")
    header = _header(status, word, f"Campaign of {program}", facts)
    head = ["fault", "runs", *OUTCOMES, "coverage", "95 % interval"]
    shares = [
        [
            s.type,
            f"{s.runs:,}",
            *(f"{s.outcomes[o]:,}" for o in OUTCOMES),
            f"{s.coverage:.1%}",
            f"{s.low:.1%} to {s.high:.1%}",
        ]
        for s in summary.shares
    ]
    legend = " ".join(f"<b>{escape(name)}</b>: {escape(text)}." for name, text in OUTCOMES.items())
    runs = [
        [
            str(r.index),
            r.fault.text,
            r.place,
            r.outcome,
            "yes" if r.propagates else "no",
            f"{r.seconds:.3f}",
            *([r.replay.words if r.replay else "to the end"] if summary.header.replay is not None else []),
        ]
        for r in sorted(results, key=lambda r: r.index)
    ]
    replayed = ["replay"] if summary.header.replay is not None else []
    sections = [
        _panel(
            "Coverage by type of fault",
            f'<div class="plot" tabindex="0" role="region" aria-label="plot">{campaign_svg(summary, embedded=True)}</div>',
            _table(head, shares),
            f'<p class="soft">{legend}</p>',
        ),
        _panel("Runs", _table(["run", "fault", "source", "outcome", "spread", "seconds", *replayed], runs)),
    ]
    if replayed:
        ends = (
            f"All runs replayed the golden run. Replay ended in {summary.diverged:,} runs that diverged by the fault, and "
            f"in {summary.stalled:,} runs after a time limit. In {summary.uncertain:,} runs with propagation, it may come "
            "from another order of the threads after the end of replay."
        )
        sections.insert(1, _panel("Replay", f"<p>{escape(ends)}</p>", _rows(summary.needs)))
    return page(f"Campaign: {program}", header, sections, styles=_STYLE)


def _header(status: str, word: str, said: str, facts: Sequence[str], message: str | None = None) -> str:
    more = f'<p class="message {status}">{escape(message)}</p>' if message else ""
    return (
        f'<header class="summary"><h1><span class="badge {status}">{word}</span> '
        f'<span class="subject">{escape(said)}</span></h1><p class="claim">{escape(" · ".join(facts))}</p>{more}</header>'
    )


def _panel(title: str, *content: str) -> str:
    return f'<section class="panel"><h2>{escape(title)}</h2>{"".join(content)}</section>'


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that sorts, and that has a filter if it is long."""
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    return f'<table class="rows sortable"><thead><tr>{titles}</tr></thead><tbody>{cells}</tbody></table>'


def _witnesses(witnesses: Sequence[Witness]) -> str:
    rows = [[w.object, w.first, w.second, ", ".join(w.locks), w.advice] for w in witnesses]
    head = ["shared object", "observed first", "observed second", "both hold", "to fix it"]
    return _panel("Events that can occur in reversed order", _table(head, rows))


def _thread(thread: Deviation) -> str:
    rows = "".join(
        f'<tr class="{"differs" if line.differs else ""}"><td>{escape(line.golden or "")}</td>'
        f"<td>{escape(line.faulty or '')}</td><td>{escape(line.place)}</td></tr>"
        for line in thread.lines
    )
    counts = f"{thread.changed:,} changed, {thread.missing:,} missing, {thread.extra:,} extra"
    path = "; the thread took a different path" if thread.parted else ""
    path += "" if thread.certain else "; replay had ended before"
    table = (
        '<table class="rows"><thead><tr><th>golden</th><th>faulty</th><th>source</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    for run, events in (
        ("faulty", [line.golden for line in thread.lines]),
        ("golden", [line.faulty for line in thread.lines]),
    ):
        if not any(events):
            title = f"{thread.thread}: only the {run} run has this thread"
            return f'<section class="panel">{_folded(title, table)}</section>'
    return _panel(thread.thread, f"<p>First deviation at event {thread.index:,}: {counts}{path}.</p>", table)


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
    return f"{spot.place.rsplit('/', 1)[-1]}, {spot.times}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _links(found: Comparison) -> str:
    rows = [
        [f"[{link.source}] → [{link.target}]", link.via, link.object or "", f"{link.times:,}"] for link in found.links
    ]
    return _folded(f"All {len(found.links)} links", _table(["from, to", "by", "through", "times"], rows))
