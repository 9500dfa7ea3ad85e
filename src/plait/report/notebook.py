"""Verdicts and traces for notebooks, as HTML that a notebook shows in full even if it does not trust it.

A notebook that came from elsewhere is not trusted. Jupyter then removes scripts, style sheets, SVG elements and most
attributes. So all styles are in `style` attributes, which also win against the style sheets of the notebook, and the
diagram is an image with its data in the address.
"""

from __future__ import annotations

import base64

from plait.kernel.trace import Trace
from plait.kernel.values import text
from plait.kernel.verdict import Verdict
from plait.report import wording as facts
from plait.report.coverage import sections
from plait.report.markup import escape
from plait.report.space_time.flow import lane_status, states
from plait.report.space_time.layout import Layout
from plait.report.space_time.svg import drawing

_INK, _SOFT = "#1c2128", "#57606a"
_COLORS = {"holds": "#116b53", "violated": "#a8201a", "inconclusive": "#8a5a00"}
_FRAME = (
    f"color:{_INK};background-color:#ffffff;border:1px solid #d5dae0;border-radius:6px;padding:10px 14px;"
    "max-width:1100px;font-family:sans-serif;font-size:13px;line-height:1.45;text-align:left"
)
_CELL = (
    f"color:{_INK};background-color:#ffffff;text-align:left;vertical-align:top;padding:1px 12px 1px 0;"
    "font-size:12.5px;font-weight:normal;border:0;white-space:normal"
)
_CODE = "font-family:monospace;font-size:12px;word-wrap:break-word"


def verdict_fragment(verdict: Verdict) -> str:
    """A verdict for a notebook, with its trace if it has one."""
    parts = _summary(verdict)
    if verdict.trace is not None:
        heading = facts.trace_heading(verdict.trace, verdict)
        parts += _trace(verdict.trace, heading, facts.outcome(verdict.trace, verdict))
    return _frame(parts)


def trace_fragment(trace: Trace) -> str:
    """A trace for a notebook: the diagram, then steps and the last state in folded sections."""
    return _frame(_trace(trace, facts.trace_heading(trace), None))


def note_fragment(said: str) -> str:
    """One sentence for a notebook."""
    return _frame([_paragraph(said)])


def _frame(parts: list[str]) -> str:
    return f'<div style="{_FRAME}">\n' + "\n".join(parts) + "\n</div>"


def _paragraph(said: str, color: str = _INK, *, bold: bool = False) -> str:
    weight = "bold" if bold else "normal"
    style = f"margin:2px 0;color:{color};font-weight:{weight};white-space:pre-line"
    return f'<div style="{style}">{escape(facts.visible_lines(said))}</div>'


def _soft(said: str) -> str:
    return f'<span style="color:{_SOFT}">{escape(said)}</span>'


def _table(rows: list[list[str]]) -> str:
    """A table of cells that are HTML."""
    lines = ["".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) for row in rows]
    body = "".join(f'<tr style="background-color:#ffffff">{line}</tr>' for line in lines)
    return f'<table style="border-collapse:collapse;margin:4px 0">{body}</table>'


def _code(said: str) -> str:
    return f'<span style="{_CODE}">{escape(said)}</span>'


def _folded(title: str, content: str, *, shown: bool = False) -> str:
    return f"<details{' open' if shown else ''}><summary>{escape(title)}</summary>{content}</details>"


def _summary(verdict: Verdict) -> list[str]:
    word, subject = facts.headline(verdict)
    color = _COLORS[verdict.status]
    badge = f'<b style="color:#ffffff;background-color:{color};padding:2px 8px;border-radius:4px">{word}</b>'
    model = f" {_soft(f'in {facts.visible(verdict.model)}')}" if verdict.model else ""
    parts = [
        f'<div style="font-size:16px;margin:0 0 4px 0">{badge} <b>{escape(subject)}</b>{model}</div>',
        _paragraph(facts.claim(verdict)),
    ]
    if verdict.message:
        parts.append(_paragraph(verdict.message, color if verdict.status == "violated" else _INK, bold=True))
    parts += [_paragraph(f"warning: {warning}", _COLORS["inconclusive"]) for warning in verdict.warnings]
    rows = []
    for result in verdict.properties:
        status = f'<b style="color:{_COLORS[result.status]}">{result.status}</b>'
        name, kind = _code(facts.visible(result.name)), escape(facts.visible(result.kind))
        rows.append([name, kind, status, escape(facts.property_note(verdict, result))])
    parts += [_table(rows)] if rows else []
    parts += [_paragraph(f"{name}: {said}") for name, said in facts.reduction_rows(verdict)]
    # Not a description list: notebooks have style sheets that make its items float.
    statistics = " &nbsp; ".join(
        f'<span style="white-space:nowrap">{_soft(name)} {escape(value)}</span>'
        for name, value in facts.statistics_rows(verdict)
    )
    parts.append(f'<div style="font-size:12px;margin:4px 0">{statistics}</div>')
    if verdict.coverage is not None:
        found = []
        for name, summary, gaps in sections(verdict.coverage):
            missed = "".join(f"<br><b>{escape(what)}</b> {escape(how)}" for what, how in gaps)
            found.append([escape(name), escape(summary) + missed])
        title = f"Coverage, over {facts.visible(verdict.coverage.over)}"
        parts.append(_folded(title, _table(found), shown=verdict.status == "holds"))
    return parts


def _trace(trace: Trace, heading: str, outcome: str | None) -> list[str]:
    layout = Layout(trace)
    svg = drawing(layout, standalone=True, dark=False, heading=heading)
    address = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    parts = [f'<div style="font-size:14px;font-weight:bold;margin:10px 0 2px 0">{escape(heading)}</div>']
    if trace.explanation:
        parts.append(_paragraph(trace.explanation, _COLORS.get(outcome or "", _INK), bold=True))
    parts += [_paragraph(said, _SOFT) for said in (facts.start_text(trace), trace.tidied) if said]
    if why := facts.why_rows(trace):
        rows = [[_code(part), _code(value), _soft(step)] for part, value, step in why]
        parts.append(_folded("Why", _table(rows), shown=True))
    parts += [
        '<div style="overflow-x:auto;overflow-y:auto;max-height:640px">'
        f'<img src="{address}" alt="{escape(f"Space-time diagram. {heading}")}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" style="max-width:none"></div>',
        _folded("Steps", _steps(trace)),
        _folded("Final state", _final(trace)),
    ]
    return parts


def _steps(trace: Trace) -> str:
    details, marks, rows = facts.step_details(trace), facts.mark_texts(trace), []
    for step, event in enumerate(trace.events, start=1):
        for label, *lost in marks.get(step - 1, []):
            rows.append(["", f"<b>{escape(label)}</b>" + "".join(f"<br>lost {_code(line)}" for line in lost)])
        if trace.loop == step - 1:
            rows.append(["", f"<b>{facts.LOOP_STARTS}</b>"])
        fault = f"<b>{escape(facts.FAULTS[event.kind])}</b> " if event.kind in facts.FAULTS else ""
        said = f"{fault}<b>{escape(facts.visible(event.lane))}</b> {_code(facts.event_label(event))}"
        said += "".join(f"<br>{_soft(verb)} {_code(what)}" for verb, what in details[step - 1])
        rows.append([_soft(str(step)), said])
    if end := facts.loop_text(trace):
        rows.append(["", f"<b>{escape(end)}</b>"])
    return _table(rows)


def _final(trace: Trace) -> str:
    last, status = states(trace)[-1], lane_status(trace)[-1]
    messages = {m.id: m for m in trace.messages}
    rows = []
    for lane in trace.lanes:
        word = facts.STATUS_WORDS.get(status.get(lane.name, ""), facts.visible(status.get(lane.name, "")))
        said = f"<b>{escape(word)}</b> " if word else ""
        said += _code(facts.record_text(last.fields.get(lane.name, {})))
        for number in last.pending.get(lane.name, []):
            m = messages.get(number)
            waiting = f"#{number} {facts.message_text(m)} from {facts.visible(m.sender)}" if m else f"#{number}"
            said += f"<br>{_soft('waiting')} {_code(waiting)}"
        rows.append([escape(facts.visible(lane.name)), said])
    rows += [[escape(facts.visible(name)), _code(facts.visible(text(value)))] for name, value in last.monitors.items()]
    return _table(rows)
