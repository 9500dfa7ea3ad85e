"""A Conformance as text for a terminal, and as a page: the log beside the run of the model."""

from __future__ import annotations

import msgspec

from plait.kernel.verdict import Conformance, Unexplained
from plait.report.coverage import sections
from plait.report.html import page, run_section
from plait.report.markup import escape
from plait.report.text import Line, finish
from plait.report.wording import plural, visible

_WORDS = {"conforms": "CONFORMS", "violated": "VIOLATED", "deviates": "DEVIATES", "inconclusive": "INCONCLUSIVE"}
_STYLES = {"conforms": "bold green", "violated": "bold red", "deviates": "bold red", "inconclusive": "bold yellow"}


def claim(found: Conformance) -> str:
    """What exactly was shown."""
    run = f"a run of {plural(found.steps, 'step')}"
    if found.status in ("conforms", "violated"):
        free = f"; the log names no event of {plural(found.free, 'step')} of it" if found.free else ""
        return f"{run[0].upper()}{run[1:]} explains {_all(found.events)}{free}."
    best = f"{found.explained:,} of {plural(found.events, 'event')}"
    if found.status == "deviates":
        return f"No run of the model explains the log. The longest explained beginning has {best}."
    stopped = {
        "states": f"after {plural(found.states, 'state')}",
        "timeout": "by the timeout",
        "interrupted": "because it was interrupted",
    }
    return f"The search was ended {stopped[found.bound or 'states']}. So far, runs explain at most {best}."


def _all(events: int) -> str:
    return "the only event" if events == 1 else f"all {plural(events, 'event')}"


def headline(found: Conformance) -> tuple[str, str]:
    """The result in one word, and the log."""
    subject = ", ".join(one.property for one in found.violations) if found.status == "violated" else found.log
    return _WORDS[found.status], visible(subject)


def conformance_text(found: Conformance, *, color: bool = False, width: int = 100) -> str:
    """The result, what was shown, and for a log that does not conform the event that no step explains."""
    word, subject = headline(found)
    lines: list[Line] = [
        [(word, _STYLES[found.status]), (f" {subject}", "bold"), (f"  in {visible(found.target)}", "dim")]
    ]
    lines.append([(f"  {claim(found)}", "")])
    for one in found.violations:
        said = f": {one.message}" if one.message else ""
        lines.append([("  violated: ", "bold red"), (f"{one.property} after step {one.step}{said}", "")])
    shown = 0
    for event in found.unexplained:
        if event.waits is None or not shown:
            lines += _event_lines(event)
            shown += 1
    later = [event for event in found.unexplained if event.waits is not None][0 if shown else 1 :]
    if later and len(found.unexplained) > 1:
        where = ", ".join(f"{event.process} ({event.place}) for {event.waits}" for event in later)
        lines += [[], [("Waiting: ", "bold"), (where, "")]]
    if found.others:
        lines += [[], [(f"  {plural(found.others, 'other beginning')} of the same length can be explained.", "dim")]]
    if found.unexplained or found.violations:
        lines += _run_lines(found)
    lines += _handler_lines(found)
    if found.coverage is not None:
        lines += [[], [("Coverage", "bold"), (f"  over {found.coverage.over}", "dim")]]
        for name, summary, gaps in sections(found.coverage):
            lines.append([(f"  {name:<10}  ", "dim"), (summary, "")])
            lines += [[(f"    {what}  ", "yellow"), (how, "")] for what, how in gaps]
    searched = f"{plural(found.states, 'state')}, {plural(found.transitions, 'transition')}, {found.seconds:.1f} s"
    lines += [[], [("Search", "bold"), (f"  {searched}", "dim")]]
    return finish(lines, width, color)


def _event_lines(event: Unexplained) -> list[Line]:
    lines: list[Line] = [
        [],
        [
            ("No step explains ", "bold"),
            (visible(event.place), "bold"),
            (f"  {event.process}: {visible(event.event)}", ""),
        ],
    ]
    for one in event.candidates:
        lines.append([(f"    {visible(one.step)}", "yellow")])
        lines += [[(f"      {visible(why)}", "")] for why in one.forbids]
    if event.waits is not None:
        lines.append([(f"    a message from {event.waits} is missing, which has unexplained events", "dim")])
    if not event.candidates and event.waits is None:
        lines.append([("    the model has no such step here", "")])
    return lines


def _run_lines(found: Conformance) -> list[Line]:
    lines: list[Line] = [[], [("Run", "bold"), ("  its last steps, with the events that they explain", "dim")]]
    if found.skipped:
        lines.append([(f"  ⋮  {plural(found.skipped, 'step')} before", "dim")])
    for step in found.last:
        said = ", ".join(map(visible, step.events)) if step.events else "not logged"
        lines.append([(f"  {step.number:>6}  {step.process}: {visible(step.label)}  ", ""), (said, "dim")])
    return lines


def _handler_lines(found: Conformance) -> list[Line]:
    """Which handlers the run exercises."""
    if not found.handlers:
        return []
    never = [f"{one.role}.{one.name}" for one in found.handlers if not one.steps]
    ran = len(found.handlers) - len(never)
    lines: list[Line] = [[], [("Handlers", "bold"), (f"  {ran} of {len(found.handlers)} ran in the run", "")]]
    if never:
        lines.append([("  never: ", "dim"), (", ".join(never), "")])
    return lines


def conformance_page(found: Conformance) -> str:
    """A page: the result, the log beside the last steps of the run, and a viewer for the states of the run."""
    word, subject = headline(found)
    rows = "".join(
        f"<tr><td>{escape(', '.join(step.events) or '—')}</td><td>{step.number}</td>"
        f"<td>{escape(step.process)}</td><td>{escape(step.label)}</td></tr>"
        for step in found.last
    )
    rows += "".join(
        f'<tr class="bad"><td>{escape(event.place)}<br>{escape(event.event)}</td><td></td><td>{escape(event.process)}</td>'
        f"<td>{_reasons(event)}</td></tr>"
        for event in found.unexplained
    )
    violated = "".join(
        f"<p>{escape(one.property)} is violated after step {one.step}{escape(': ' + one.message if one.message else '')}</p>"
        for one in found.violations
    )
    header = (
        f'<header class="summary"><h1>{escape(word)} {escape(subject)}</h1><p>{escape(found.target)}</p>'
        f"<p>{escape(claim(found))}</p>{violated}"
        f"<h2>Log and model</h2><table><thead><tr><th>log</th><th>step</th><th>process</th><th>model</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></header>"
    )
    heading = f"The run, from step {found.trace_start} on" if found.trace_start > 1 else "The run"
    viewers = [] if found.trace is None else [run_section(found.trace, heading, None, 0)]
    return page(f"{word} {subject}", header, viewers)


def _reasons(event: Unexplained) -> str:
    parts = [
        f"<li>{escape(one.step)}<ul>{''.join(f'<li>{escape(why)}</li>' for why in one.forbids)}</ul></li>"
        for one in event.candidates
    ]
    waits = f"<p>a message from {escape(event.waits)} is missing</p>" if event.waits else ""
    return f"<ul>{''.join(parts)}</ul>{waits}" if parts else waits or "the model has no such step here"


def conformance_json(found: Conformance) -> dict[str, object]:
    """Plain data, with the exit code."""
    data: dict[str, object] = msgspec.to_builtins(found)
    return {**data, "exit_code": found.exit_code}
