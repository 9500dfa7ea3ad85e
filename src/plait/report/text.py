"""Verdicts and traces for a terminal: readable without colour, and never wider than the given width."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from plait.kernel.trace import Event, Trace
from plait.kernel.values import text
from plait.kernel.verdict import Verdict
from plait.report import wording as facts
from plait.report.coverage import sections
from plait.report.space_time.flow import lane_status, states

_FALLBACK_WIDTH = 100
_STATUS_STYLES = {"holds": "bold green", "violated": "bold red", "inconclusive": "bold yellow"}

Span = tuple[str, str]
"""A piece of a line and its style ('' for none). Styles are applied last, so that widths are computed on plain text."""

Line = list[Span]


LONG = 30
"""An abridged text shows all steps of a run that is not longer than this."""
_FIRST, _LAST = 3, 12
"""Else it shows this many of the first and of the last steps."""


def trace_text(
    trace: Trace,
    verdict: Verdict | None = None,
    *,
    width: int | None = None,
    color: bool = False,
    abridged: bool = False,
) -> str:
    """The run, step by step, with a space-time drawing if it fits.

    The verdict, if it is known, decides the title: counterexample or example. `width` is the number of columns (None:
    that of the terminal, or 100 without a terminal). With `color`, the text contains the escape sequences of the
    terminal. With `abridged`, only the first and the last steps of a long run are shown.
    """
    width = _columns(width)
    return finish(_trace_lines(trace, verdict, width, abridged), width, color)


def verdict_text(verdict: Verdict, *, color: bool = False, width: int | None = None, abridged: bool = False) -> str:
    """The verdict, then what exactly was shown, the properties, the statistics, the warnings and the trace.

    After a long run, the verdict is repeated in the last line. With `abridged`, only the first and the last steps of a
    long run are shown.
    """
    width = _columns(width)
    word, subject = facts.headline(verdict)
    style = _STATUS_STYLES[verdict.status]
    lines: list[Line] = [[(word, style), (f" {subject}", "bold")]]
    if verdict.model:
        lines[0].append((f"  in {facts.visible(verdict.model)}", "dim"))
    if verdict.message and verdict.message != subject:
        lines += [[(f"  {facts.visible(line)}", "")] for line in verdict.message.splitlines()]
    lines.append([(f"  {facts.claim(verdict)}", "")])
    lines += _property_lines(verdict)
    lines += _reduction_lines(verdict)
    lines += _statistics_lines(verdict, width)
    if verdict.warnings:
        lines.append([])
        for warning in verdict.warnings:
            lines.append([("warning: ", "bold yellow"), (" ".join(map(facts.visible, warning.splitlines())), "")])
    lines += _coverage_lines(verdict)
    if verdict.trace is not None:
        lines.append([])
        lines += _trace_lines(verdict.trace, verdict, width, abridged)
        if len(verdict.trace) > LONG:
            lines += [[], [*lines[0][:2], (f"  ({facts.length_text(verdict.trace)})", "bold"), *lines[0][2:]]]
    return finish(lines, width, color)


def coverage_text(verdict: Verdict, *, width: int | None = None) -> str:
    """The coverage of a check alone."""
    return finish(_coverage_lines(verdict)[1:], _columns(width), False)


def _property_lines(verdict: Verdict) -> list[Line]:
    if not verdict.properties:
        return []
    names = max(len(facts.visible(p.name)) for p in verdict.properties)
    kinds = max(len(facts.visible(p.kind)) for p in verdict.properties)
    lines: list[Line] = [[], [("Properties", "bold")]]
    for p in verdict.properties:
        note = facts.property_note(verdict, p)
        lines.append(
            [
                (f"  {facts.visible(p.name):<{names}}  ", ""),
                (f"{facts.visible(p.kind):<{kinds}}  ", "dim"),
                (f"{p.status.upper():<12}" if note else p.status.upper(), _STATUS_STYLES[p.status]),
                (f"  {note}" if note else "", ""),
            ]
        )
    return lines


def _reduction_lines(verdict: Verdict) -> list[Line]:
    rows = facts.reduction_rows(verdict)
    if not rows:
        return []
    names = max(len(name) for name, _ in rows)
    return [[], [("Reductions", "bold")], *([(f"  {name:<{names}}  ", "dim"), (said, "")] for name, said in rows)]


def _coverage_lines(verdict: Verdict) -> list[Line]:
    if verdict.coverage is None:
        return []
    lines: list[Line] = [[], [("Coverage", "bold"), (f"  over {facts.visible(verdict.coverage.over)}", "dim")]]
    for name, summary, gaps in sections(verdict.coverage):
        lines.append([(f"  {name:<10}  ", "dim"), (summary, "")])
        wide = min(40, max((len(what) for what, _ in gaps), default=0))
        lines += [[(f"    {what:<{wide}}  ", "yellow"), (how, "")] for what, how in gaps]
    return lines


def _statistics_lines(verdict: Verdict, width: int) -> list[Line]:
    """The statistics, in two columns if they fit. The left column comes first."""
    rows = facts.statistics_rows(verdict)
    half = (len(rows) + 1) // 2
    left, right = rows[:half], rows[half:]
    names = [max(len(name) for name, _ in side) for side in (left, right)]
    values = [max(len(value) for _, value in side) for side in (left, right)]
    lines: list[Line] = [[], [("Statistics", "bold")]]
    if 2 + sum(names) + sum(values) + 2 + 4 + 2 > width:
        label = max(names)
        return lines + [[(f"  {name:<{label}}  ", "dim"), (value, "")] for name, value in rows]
    for i, (name, value) in enumerate(left):
        line: Line = [(f"  {name:<{names[0]}}  ", "dim"), (value, "")]
        if i < len(right):
            pad = " " * (values[0] - len(value) + 4)
            line += [(f"{pad}{right[i][0]:<{names[1]}}  ", "dim"), (right[i][1], "")]
        lines.append(line)
    return lines


def hidden_steps(steps: int) -> range:
    """The steps that an abridged text of a run leaves out, by their numbers.

    >>> hidden_steps(250)
    range(4, 239)
    """
    return range(_FIRST + 1, steps - _LAST + 1) if steps > LONG else range(0)


def hidden_text(hidden: range) -> str:
    """The line that stands for the steps that are left out."""
    return f"steps {hidden.start} to {hidden.stop - 1} are not shown (the option all shows every step)"


def _trace_lines(trace: Trace, verdict: Verdict | None, width: int, abridged: bool) -> list[Line]:
    lines: list[Line] = [[(facts.trace_heading(trace, verdict), "bold")], [(f"  of {facts.model_text(trace)}", "dim")]]
    if (start := facts.start_text(trace)) is not None:
        lines.append([(f"  {start}", "")])
    if trace.tidied:
        lines.append([(f"  {facts.visible(trace.tidied)} (the option raw shows the run as it was found)", "dim")])
    hidden = hidden_steps(len(trace.events)) if abridged else range(0)
    from plait.report.space_time.text import draw

    drawing = draw(trace, width, hidden)
    if drawing:
        lines += [[], *([(row, "")] for row in drawing)]
    lines.append([])
    if not trace.events:
        lines.append([("  The run has no steps: it ends in the initial state.", "")])
    digits = len(str(len(trace.events)))
    details, marks = facts.step_details(trace), facts.mark_texts(trace)
    for step, event in enumerate(trace.events, start=1):
        if step in hidden:
            if step == hidden.start:
                lines.append([(f"{'⋮':>{digits + 3}} {hidden_text(hidden)}", "bold")])
            continue
        lines += _mark_lines(marks.get(step - 1, []), digits)
        if trace.loop == step - 1:
            lines.append([("  ┌─ ", "bold magenta"), (facts.LOOP_STARTS, "magenta")])
        lines += _step_lines(event, details[step - 1], step, digits)
    if trace.loop is not None:
        lines.append([("  └─ ", "bold magenta"), (facts.loop_text(trace) or "", "magenta")])
    lines += _mark_lines(marks.get(len(trace.events), []), digits)
    lines += _final_lines(trace)
    if trace.explanation:
        style = "bold" if verdict is None else _STATUS_STYLES[facts.outcome(trace, verdict)]
        lines.append([])
        lines += [[(facts.visible(line), style)] for line in trace.explanation.splitlines()]
    wide = max((len(who) for who, _ in facts.waiting_rows(trace)), default=0)
    verb = "waits: " if trace.abstract is None else ""
    for who, reason in facts.waiting_rows(trace):
        lines.append([(f"  {who:<{wide}}  {verb}", "dim"), (reason, "")])
    for where, code in facts.traceback_rows(trace):
        lines += [[(f"  {where}", "dim")], [(f"      {code}", "")]]
    for part, value, writer in facts.why_rows(trace):
        shown: Line = [("  ", ""), (part, "")]
        shown += [(" is ", "dim"), (value, "")] if value else []
        lines.append([*shown, (f"   ({writer})", "dim")] if writer else shown)
    if idle := facts.idle_steps(trace):
        count = "step" if len(idle) == 1 else "steps"
        lines.append([(f"  not involved: {count} {facts.numbers_text([i + 1 for i in idle])}", "dim")])
    return lines


def _mark_lines(marks: list[list[str]], digits: int) -> list[Line]:
    """The messages that were lost before a boundary, and the boundary."""
    lines: list[Line] = []
    for label, *lost in marks:
        for number, said in enumerate(lost):
            lines.append([(f"{' ' * (digits + 4)}{'' if number else 'lost':<9} ", "red"), (said, "")])
        lines.append([(f"  ── {label} ──", "bold")])
    return lines


def _step_lines(event: Event, details: list[tuple[str, str]], step: int, digits: int) -> list[Line]:
    head: Line = [(f"{step:>{digits + 2}}. ", "dim")]
    if event.kind in facts.FAULTS:
        head.append((f"{facts.FAULTS[event.kind]}  ", "bold red" if event.kind != "recover" else "bold green"))
    head.append((facts.visible(event.lane), "bold cyan"))
    if place := facts.place_text(event):
        head.append((f"  {place}", "dim"))
    head.append((f"  {facts.event_label(event)}", "bold"))
    styles = {
        "takes": "blue",
        "sends": "green",
        "changes": "yellow",
        "writes": "yellow",
        "loses": "red",
        "drops": "red",
    }
    indent = " " * (digits + 4)
    lines = [head]
    before = ""
    for verb, said in details:
        shown = verb if verb != before else ""
        lines.append([(f"{indent}{shown:<9} ", styles.get(verb, "dim")), (said, "")])
        before = verb
    return lines


def _final_lines(trace: Trace) -> list[Line]:
    last = states(trace)[-1]
    status = lane_status(trace)[-1]
    messages = {m.id: m for m in trace.messages}
    names = [lane.name for lane in trace.lanes]
    label = max((len(facts.visible(n)) for n in (*names, *last.monitors)), default=0)
    lines: list[Line] = [[], [("Final state", "bold")]]
    for name in names:
        fields = last.fields.get(name, {})
        line: Line = [(f"  {facts.visible(name):<{label}}  ", "cyan")]
        if name in status:
            word = facts.STATUS_WORDS.get(status[name], facts.visible(status[name]))
            line.append((f"[{word}] ", "bold red" if status[name] != "unborn" else "dim"))
        if status.get(name) != "unborn":
            line.append((facts.record_text(fields) or "no fields", "" if fields else "dim"))
        lines.append(line)
        for i in last.pending.get(name, []):
            m = messages.get(i)
            said = f"#{i} {facts.message_text(m)} from {facts.visible(m.sender)}" if m else f"#{i}"
            lines.append([(" " * (label + 4), ""), ("waiting: ", "dim"), (said, "")])
    for monitor, value in last.monitors.items():
        lines.append([(f"  {facts.visible(monitor):<{label}}  ", "magenta"), (facts.visible(text(value)), "")])
    if last.budgets:
        left = ", ".join(f"{facts.visible(name)}: {count}" for name, count in last.budgets.items())
        lines.append([("  faults that may still happen: ", "dim"), (left, "")])
    return lines


def _columns(width: int | None) -> int:
    """The number of columns to use, at least 20."""
    return max(20, width if width is not None else shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns)


def finish(lines: list[Line], width: int | None, color: bool) -> str:
    """The lines as text, wrapped to a width, with colours if wanted."""
    width = _columns(width)
    paint = _painter() if color else _plain
    wrapped = [part for line in lines for part in _wrap(line, width)]
    return "\n".join("".join(paint(piece, style) for piece, style in _trim(line)) for line in wrapped)


def _trim(line: Line) -> Line:
    """The line without spaces at the end. Colours are added later, so they change nothing else."""
    line = list(line)
    while line and not line[-1][0].strip():
        line.pop()
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if line else []


def _plain(piece: str, style: str) -> str:
    return piece


def _painter() -> Callable[[str, str], str]:
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(piece: str, style: str) -> str:
        if not style or not piece.strip():
            return piece
        return Style.parse(style).render(piece, color_system=ColorSystem.STANDARD)

    return paint


def _wrap(line: Line, width: int) -> list[Line]:
    """Break a styled line at spaces. The next lines are indented to the column after the label."""
    cells = [(char, style) for piece, style in line for char in piece]
    if len(cells) <= width:
        return [line]
    hang = min(len(line[0][0]) if len(line) > 1 else _indent(line[0][0]) + 2, width // 2)
    parts: list[Line] = []
    while cells:
        room = width if not parts else width - hang
        cut = len(cells)
        if cut > room:
            spaces = [i for i in range(room + 1) if cells[i][0] == " "]
            floor = hang if not parts else 0
            cut = spaces[-1] if spaces and spaces[-1] > floor else room
        part: Line = [(" " * hang, "")] if parts else []
        parts.append(part + _spans(cells[:cut]))
        cells = cells[cut:]
        while cells and cells[0][0] == " ":
            cells = cells[1:]
    return parts


def _indent(piece: str) -> int:
    return len(piece) - len(piece.lstrip(" "))


def _spans(cells: list[tuple[str, str]]) -> Line:
    spans: Line = []
    for char, style in cells:
        if spans and spans[-1][1] == style:
            spans[-1] = (spans[-1][0] + char, style)
        else:
            spans.append((char, style))
    return spans
