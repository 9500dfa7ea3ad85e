"""The report as one self-contained HTML file: no network, no fonts, no library.

The page is complete without its script: it contains the verdict, properties, statistics, the diagram and every step.
The script replaces diagram and steps with the viewer (`viewer.py`), whose data is embedded as JSON.
"""

from __future__ import annotations

import msgspec

from plait.kernel.trace import Event, Snapshot, Trace
from plait.kernel.values import text
from plait.kernel.verdict import Verdict
from plait.report import wording as facts
from plait.report.coverage import sections
from plait.report.markup import asset, escape
from plait.report.phases.svg import phases_svg
from plait.report.picture import address, shown
from plait.report.space_time.flow import lane_status, states
from plait.report.space_time.layout import Layout
from plait.report.space_time.svg import drawing
from plait.report.viewer import embedded, head, run_data

LONG = 500
"""A run with more steps than this is not drawn twice."""


def report(verdict: Verdict) -> str:
    """One self-contained page for a verdict, with a viewer for each trace."""
    word, subject = facts.headline(verdict)
    title = f"{word} {subject}" + (f" in {facts.visible(verdict.model)}" if verdict.model else "")
    return page(title, _header(verdict), _sections(verdict))


def trace_page(trace: Trace, title: str | None = None) -> str:
    """One self-contained page with a viewer for a trace."""
    heading = title or facts.trace_heading(trace)
    return page(heading, "", [run_section(trace, heading, None, 0)])


def verdict_content(verdict: Verdict) -> str:
    """The content of the page of a verdict, for a widget: it always has a script."""
    return "\n".join([_header(verdict), *_sections(verdict, plain=False)])


def trace_content(trace: Trace) -> str:
    """The content of the page of a trace, for a widget: it always has a script."""
    return run_section(trace, facts.trace_heading(trace), None, 0, plain=False)


def _header(verdict: Verdict) -> str:
    return f'<header class="summary">{_summary(verdict)}</header>'


def _sections(verdict: Verdict, *, plain: bool = True) -> list[str]:
    return [
        run_section(trace, facts.trace_heading(trace, verdict), facts.outcome(trace, verdict), i, plain=plain)
        for i, trace in enumerate(_traces(verdict))
    ]


def page(title: str, header: str, sections: list[str], look: str = "", styles: str = "") -> str:
    """A page with these sections. `look` is a class of its body, `styles` is a style sheet of its own."""
    return "\n".join(
        [
            *head(title, script=bool(sections), styles=styles),
            f'<body class="{f"traces {look}".strip() if sections else "plain"}">',
            header,
            "<main>",
            *sections,
            "</main>",
            f"<script>{asset('viewer.js')}</script>" if sections else "",
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
    if verdict.phases is not None:
        picture = phases_svg(verdict.phases, standalone=False)
        parts.append(f'<details class="phases"><summary>The rounds of a phase</summary>{picture}</details>')
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


def run_section(trace: Trace, heading: str, outcome: str | None, number: int, *, plain: bool = True) -> str:
    """The viewer of a run, the `number`th of its page.

    With `plain`, a browser without script shows the drawing, the steps and the last state.
    """
    last = len(trace.events)
    # The interesting state is the last one: the violation, or what was to be reached. A run without a property has none.
    start = 0 if trace.property is None else last
    return f"""<section class="viewer" id="trace{number}" data-current="{start}" aria-label="{escape(heading)}">
<div class="title"><h2>{escape(heading)}</h2>
<span class="of">{escape(facts.model_text(trace))}</span>{_explanation(trace, outcome)}</div>
{_plain(trace, heading) if plain else ""}
{embedded(run_data(trace, start))}
</section>"""


def _plain(trace: Trace, heading: str) -> str:
    """A run for browsers without script."""
    return f"""<noscript>
{_drawing(trace, heading)}
<h3>Steps</h3>{_steps(trace)}
<h3>Final state</h3>{_final(trace)}{_pictures(trace)}
</noscript>"""


def _drawing(trace: Trace, heading: str) -> str:
    """The diagram for browsers without script. The one of a long run would make the page slow for all others."""
    if len(trace.events) > LONG:
        return "<p>The run is long: its diagram needs JavaScript.</p>"
    return f'<div class="diagram">{drawing(Layout(trace), standalone=False, heading=heading)}</div>'


def _steps(trace: Trace) -> str:
    items = ['<li data-step="0"><span class="number">0</span><div><b>Initial state</b></div></li>']
    details, marks = facts.step_details(trace), facts.mark_texts(trace)
    idle = facts.idle_steps(trace)
    for step, event in enumerate(trace.events, start=1):
        fault = facts.FAULTS.get(event.kind)
        mark = f'<span class="fault {event.kind}">{escape(fault)}</span> ' if fault else ""
        rows = list(details[step - 1])
        if event.read and event.values is msgspec.UNSET:
            rows.insert(0, ("reads", ", ".join(map(facts.visible, event.read))))
        said = "".join(
            f'<div class="{verb}"><dt>{"" if i and rows[i - 1][0] == verb else verb}</dt><dd>{escape(what)}</dd></div>'
            for i, (verb, what) in enumerate(rows)
        )
        rounds = "".join(_mark(*lines) for lines in marks.get(step - 1, []))
        loop = f'<div class="loop">{facts.LOOP_STARTS}</div>' if trace.loop == step - 1 else ""
        items.append(
            f'<li data-step="{step}"{" class=idle" if step - 1 in idle else ""}><span class="number">{step}</span>'
            f"<div>{rounds}{loop}{mark}<b>{escape(facts.visible(event.lane))}</b> {_place(event)}"
            f'<span class="label">{escape(facts.event_label(event))}</span>'
            f"{f'<dl>{said}</dl>' if said else ''}</div></li>"
        )
    end = facts.loop_text(trace)
    return f'<ol class="steplist">{"".join(items)}</ol>' + (f'<p class="loop">↻ {escape(end)}</p>' if end else "")


def _place(event: Event) -> str:
    """The place of the statement of a step, with its whole path on hover."""
    if not event.place:
        return ""
    path = escape(facts.visible(event.place.file))
    return f'<span class="place" title="{path}">{escape(facts.place_text(event))}</span> '


def _mark(label: str, *lost: str) -> str:
    """A boundary between steps, and the messages that were lost before it."""
    given_up = "".join(f'<div class="loses">lost {escape(line)}</div>' for line in lost)
    return f'{given_up}<div class="boundary">{escape(label)}</div>'


def _final(trace: Trace) -> str:
    """The last state as a table, for browsers without script."""
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


def _pictures(trace: Trace) -> str:
    """What views draw of the last state."""
    drawn = []
    for name, picture in (states(trace)[-1].views or {}).items():
        found = shown(picture)
        said = f'<img src="{address(found.svg)}" alt="{escape(facts.visible(name))}">' if found.svg else ""
        said += "".join(f"<p>{escape(facts.visible_lines(text))}</p>" for text in (found.error, found.note) if text)
        drawn.append(f"<figure><figcaption>{escape(facts.visible(name))}</figcaption>{said}</figure>")
    return f'<div class="views">{"".join(drawn)}</div>' if drawn else ""


def _inbox(trace: Trace, snapshot: Snapshot, lane: str) -> list[str]:
    messages = {m.id: m for m in trace.messages}
    lines = []
    for i in snapshot.pending.get(lane, []):
        m = messages.get(i)
        lines.append(f"#{i} {facts.message_text(m)} from {facts.visible(m.sender)}" if m else f"#{i}")
    return lines
