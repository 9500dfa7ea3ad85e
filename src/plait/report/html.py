"""The report as one self-contained HTML file: no network, no fonts, no library.

The page is complete without its script: it contains the verdict, properties, statistics, the diagram and every step.
The script adds the viewer, which shows the state of every process at each step. Its data is embedded as JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec

from plait.kernel.trace import Snapshot, Trace
from plait.kernel.values import text
from plait.kernel.verdict import Verdict
from plait.report import wording as facts
from plait.report.coverage import sections
from plait.report.markup import asset, escape
from plait.report.space_time.flow import lane_status, states
from plait.report.space_time.layout import Layout
from plait.report.space_time.svg import drawing

# The icons are drawn, because many fonts have no media symbols.
_ICONS = {
    name: f'<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d="{path}"/></svg>'
    for name, path in {
        "first": "M3 3h2v10H3z M13 3v10L6 8z",
        "back": "M12 3v10L4 8z",
        "on": "M4 3v10l8-5z",
        "last": "M11 3h2v10h-2z M3 3v10l7-5z",
    }.items()
}


def report(verdict: Verdict) -> str:
    """One self-contained page for a verdict, with a viewer for each trace."""
    word, subject = facts.headline(verdict)
    title = f"{word} {subject}" + (f" in {facts.visible(verdict.model)}" if verdict.model else "")
    viewers = [
        _viewer(trace, facts.trace_heading(trace, verdict), facts.outcome(trace, verdict), i)
        for i, trace in enumerate(_traces(verdict))
    ]
    return _page(title, f'<header class="summary">{_summary(verdict)}</header>', viewers)


def trace_page(trace: Trace, title: str | None = None) -> str:
    """One self-contained page with a viewer for a trace."""
    heading = title or facts.trace_heading(trace)
    return _page(heading, "", [_viewer(trace, heading, None, 0)])


def _page(title: str, header: str, viewers: list[str]) -> str:
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>{asset('report.css')}</style>",
            "</head>",
            f'<body class="{"traces" if viewers else "plain"}">',
            header,
            "<main>",
            *viewers,
            "</main>",
            f"<script>{asset('report.js')}</script>" if viewers else "",
            "</body>",
            "</html>",
            "",
        ]
    )


def _traces(verdict: Verdict) -> list[Trace]:
    """The trace of the verdict, then the traces of properties, without repetitions."""
    traces: list[Trace] = []
    for trace in (verdict.trace, *(p.trace for p in verdict.properties)):
        if trace is not None and trace not in traces:
            traces.append(trace)
    return traces


def _summary(verdict: Verdict) -> str:
    word, subject = facts.headline(verdict)
    model = f'<span class="model">{escape(facts.visible(verdict.model))}</span>' if verdict.model else ""
    parts = [
        f'<h1><span class="badge {verdict.status}">{word}</span> '
        f'<span class="subject">{escape(subject)}</span>{model}</h1>',
        f'<p class="claim">{escape(facts.claim(verdict))}</p>',
    ]
    if verdict.message:
        parts.append(f'<p class="message {verdict.status}">{escape(facts.visible_lines(verdict.message))}</p>')
    parts += [f'<p class="warning"><b>warning:</b> {escape(facts.visible_lines(w))}</p>' for w in verdict.warnings]
    rows = "".join(
        f"<tr><td>{escape(facts.visible(p.name))}</td><td>{escape(facts.visible(p.kind))}</td>"
        f'<td class="{p.status}">{p.status}</td><td>{escape(facts.property_note(verdict, p))}</td></tr>'
        for p in verdict.properties
    )
    properties = (
        '<table class="properties"><thead><tr><th>property</th><th>kind</th><th>status</th><th>note</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    parts += [
        f'<p class="reduction"><b>{escape(name)}:</b> {escape(said)}</p>'
        for name, said in facts.reduction_rows(verdict)
    ]
    statistics = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.statistics_rows(verdict)
    )
    parts.append(f'<div class="facts">{properties if rows else ""}<dl class="statistics">{statistics}</dl></div>')
    parts.append(_coverage(verdict))
    return "\n".join(parts)


def _coverage(verdict: Verdict) -> str:
    """The coverage, in a folded section: a row for each kind of part, with its gaps."""
    if verdict.coverage is None:
        return ""
    rows = []
    for name, summary, gaps in sections(verdict.coverage):
        missed = "".join(f"<li><b>{escape(what)}</b> {escape(how)}</li>" for what, how in gaps)
        rows.append(f"<tr><th>{name}</th><td>{escape(summary)}{f'<ul>{missed}</ul>' if missed else ''}</td></tr>")
    over, shown = escape(facts.visible(verdict.coverage.over)), " open" if verdict.status == "holds" else ""
    return (
        f'<details class="coverage"{shown}><summary>Coverage, over {over}</summary>'
        f"<table><tbody>{''.join(rows)}</tbody></table></details>"
    )


def _explanation(trace: Trace, outcome: str | None) -> str:
    """Why the run is as it is, unfolded. Only a violation is red."""
    lines = [
        (f"explanation {outcome or ''}".strip(), trace.explanation),
        ("tidied", facts.start_text(trace)),
        ("tidied", trace.tidied),
    ]
    said = "".join(f'<p class="{kind}">{escape(facts.visible_lines(text))}</p>' for kind, text in lines if text)
    waits = "".join(
        f"<tr><td>{escape(who)}</td><td>{escape(reason)}</td></tr>" for who, reason in facts.waiting_rows(trace)
    )
    if waits:
        said += (
            f'<details class="why" open><summary>{facts.waiting_title(trace)}</summary><table>{waits}</table></details>'
        )
    calls = "".join(
        f"<div>{escape(where)}</div><pre>{escape(code)}</pre>" for where, code in facts.traceback_rows(trace)
    )
    if calls:
        said += f'<details class="traceback" open><summary>Traceback (your code)</summary>{calls}</details>'
    rows = "".join(
        f"<tr><td>{escape(part)}</td><td>{escape(value)}</td><td>{escape(step)}</td></tr>"
        for part, value, step in facts.why_rows(trace)
    )
    if not rows:
        return said
    idle = facts.numbers_text([i + 1 for i in facts.idle_steps(trace)])
    faint = f"<p>Steps that are not involved (drawn faint): {idle}</p>" if idle else ""
    return f'{said}<details class="why" open><summary>Why</summary><div><table>{rows}</table>{faint}</div></details>'


def _viewer(trace: Trace, heading: str, outcome: str | None, number: int) -> str:
    last = len(trace.events)
    # The interesting state is the last one: the violation, or what was to be reached. A run without a property has none.
    start = 0 if trace.property is None else last
    layout = Layout(trace)
    controls = (
        '<div class="controls">'
        f'<button type="button" data-go="first" title="First (Home)" aria-label="first step">{_ICONS["first"]}</button>'
        f'<button type="button" data-go="back" title="Back (←)" aria-label="previous step">{_ICONS["back"]}</button>'
        f'<input type="range" min="0" max="{last}" value="{start}" step="1" aria-label="step">'
        f'<button type="button" data-go="on" title="On (→)" aria-label="next step">{_ICONS["on"]}</button>'
        f'<button type="button" data-go="last" title="Last (End)" aria-label="last step">{_ICONS["last"]}</button>'
        '<output class="now" aria-live="polite"></output></div>'
    )
    return f"""<section class="viewer" id="trace{number}" data-current="{start}">
<div class="title"><h2>{escape(heading)}</h2>
<span class="of">{escape(facts.model_text(trace))}</span>{_explanation(trace, outcome)}</div>
<div class="final"><h3>Final state</h3>{_final(trace)}</div>
{controls}
<div class="panes">
<div class="diagram pane" tabindex="0" aria-label="space-time diagram"><div class="canvas"
 style="--wide:{layout.width:.0f}px">{drawing(layout, standalone=False, heading=heading)}</div></div>
<div class="side">
<div class="steps pane" tabindex="0" aria-label="steps">{_steps(trace)}</div>
<div class="state pane" tabindex="0" aria-label="state"></div>
</div>
</div>
<script type="application/json" class="data">{_embed(_data(trace))}</script>
</section>"""


def _steps(trace: Trace) -> str:
    items = ['<li data-step="0"><span class="number">0</span><div><b>Initial state</b></div></li>']
    details, marks = facts.step_details(trace), facts.mark_texts(trace)
    idle = facts.idle_steps(trace)
    for step, event in enumerate(trace.events, start=1):
        fault = facts.FAULTS.get(event.kind)
        mark = f'<span class="fault {event.kind}">{escape(fault)}</span> ' if fault else ""
        rows = list(details[step - 1])
        if event.read:
            rows.insert(0, ("reads", ", ".join(map(facts.visible, event.read))))
        said = "".join(
            f'<div class="{verb}"><dt>{"" if i and rows[i - 1][0] == verb else verb}</dt><dd>{escape(what)}</dd></div>'
            for i, (verb, what) in enumerate(rows)
        )
        rounds = "".join(_mark(*lines) for lines in marks.get(step - 1, []))
        loop = f'<div class="loop">{facts.LOOP_STARTS}</div>' if trace.loop == step - 1 else ""
        items.append(
            f'<li data-step="{step}"{" class=idle" if step - 1 in idle else ""}><span class="number">{step}</span>'
            f"<div>{rounds}{loop}{mark}<b>{escape(facts.visible(event.lane))}</b> "
            f'<span class="label">{escape(facts.event_label(event))}</span>'
            f"{f'<dl>{said}</dl>' if said else ''}</div></li>"
        )
    end = facts.loop_text(trace)
    return f'<ol class="steplist">{"".join(items)}</ol>' + (f'<p class="loop">↻ {escape(end)}</p>' if end else "")


def _mark(label: str, *lost: str) -> str:
    """A boundary between steps, and the messages that were lost before it."""
    given_up = "".join(f'<div class="loses">lost {escape(line)}</div>' for line in lost)
    return f'{given_up}<div class="boundary">{escape(label)}</div>'


def _final(trace: Trace) -> str:
    """The last state as a table, for print and for browsers without script."""
    last, status = states(trace)[-1], lane_status(trace)[-1]
    rows = []
    for lane in trace.lanes:
        word = facts.STATUS_WORDS.get(status.get(lane.name, ""), facts.visible(status.get(lane.name, "")))
        mark = f'<span class="fault">{escape(word)}</span> ' if word else ""
        waiting = "".join(f"<li>{escape(line)}</li>" for line in _inbox(trace, last, lane.name))
        fields = facts.record_text(last.fields.get(lane.name, {}))
        rows.append(
            f"<tr><th>{escape(facts.visible(lane.name))}</th><td>{mark}{escape(fields)}"
            f"{f'<ul>{waiting}</ul>' if waiting else ''}</td></tr>"
        )
    for name, value in last.monitors.items():
        rows.append(f"<tr><th>{escape(facts.visible(name))}</th><td>{escape(facts.visible(text(value)))}</td></tr>")
    return f'<table class="finalstate"><tbody>{"".join(rows)}</tbody></table>'


def _inbox(trace: Trace, snapshot: Snapshot, lane: str) -> list[str]:
    messages = {m.id: m for m in trace.messages}
    lines = []
    for i in snapshot.pending.get(lane, []):
        m = messages.get(i)
        lines.append(f"#{i} {facts.message_text(m)} from {facts.visible(m.sender)}" if m else f"#{i}")
    return lines


def _data(trace: Trace) -> dict[str, Any]:
    """The data of the script: for each state, all values as text."""
    status = lane_status(trace)
    messages = {m.id: f"#{m.id} {facts.message_text(m)} from {facts.visible(m.sender)}" for m in trace.messages}

    def shown(record: dict[str, Any]) -> list[tuple[str, str]]:
        return [(facts.visible(name), facts.visible(text(value))) for name, value in record.items()]

    result = []
    for snapshot, down in zip(states(trace), status, strict=True):
        result.append(
            {
                "lanes": [
                    {
                        "status": facts.STATUS_WORDS.get(down[lane.name], down[lane.name])
                        if lane.name in down
                        else None,
                        "fields": shown(snapshot.fields.get(lane.name, {})),
                        "inbox": snapshot.pending.get(lane.name, []),
                    }
                    for lane in trace.lanes
                ],
                "monitors": shown(snapshot.monitors),
                "budgets": shown(snapshot.budgets),
            }
        )
    names = [lane.name for lane in trace.lanes]
    return {
        "lanes": [facts.visible(name) for name in names],
        "acting": [names.index(e.lane) if e.lane in names else None for e in trace.events],
        "titles": [
            f"{facts.visible(e.lane)} {facts.event_label(e) or facts.FAULTS.get(e.kind, '')}" for e in trace.events
        ],
        "messages": {str(i): said for i, said in messages.items()},
        "states": result,
    }


def _embed(data: object) -> str:
    """JSON that cannot end its own script element, whatever its values are."""
    raw = msgspec.json.encode(data).decode()
    return raw.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
