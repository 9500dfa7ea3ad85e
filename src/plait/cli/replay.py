"""`plait replay`: executes a saved trace again, on the current model."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from plait.cli.options import AtLeastOne, Flag, Quiet, Target
from plait.cli.output import emit, note
from plait.kernel.errors import PlaitError, TraceError, UsageError
from plait.kernel.trace import Event, Snapshot, Trace

if TYPE_CHECKING:
    from plait.model.system import System


def replay(
    file: Path,
    /,
    *,
    step: AtLeastOne = None,
    target: Target | None = None,
    pdb: Flag = False,
    all: Flag = False,  # noqa: A002 - the name of the option
    quiet: Quiet = False,
) -> int:
    """Re-execute a saved trace on its model (the help text is in `plait.cli.main`).

    Parameters
    ----------
    file
        A trace that plait check saved.
    step
        Stop after this step, and show the whole state. With --pdb, stop in the debugger inside this step.
    target
        The target of the model, if it changed since the trace was saved.
    pdb
        Stop in the debugger inside the handler of a step: the last one, or that of --step. PYTHONBREAKPOINT names the \
debugger, as for breakpoint().
    all
        Print every step of a long run. By default, a terminal shows the first and the last steps.
    quiet
        Print the result only.
    """
    from plait.check.explain.replay import replay as events
    from plait.model.loading.loader import load
    from plait.report.itf import load_trace
    from plait.report.wording import LOOP_STARTS, loop_text, mark_texts, start_text, step_details

    trace = load_trace(file)
    steps = len(trace.events)
    if step is not None and step > steps:
        raise TraceError(f"{file} has {steps} steps, not {step}", hint=f"give --step 1 to {steps}")
    if trace.lanes and trace.lanes[-1].role == "memory":
        if pdb:
            raise UsageError("--pdb: the program of plait bmc has no handlers in Python", hint="leave --pdb out")
        return _program(trace, target, step, all, quiet)
    try:
        system = load(target or trace.target, trace.parameters, parse=False)
    except PlaitError as error:
        moved = f"if the model moved, give its new target: plait replay {file} --target …"
        raise TraceError(
            f"{file}: its model does not load: {error.message}",
            hint=f"{error.hint}; {moved}" if error.hint else moved,
        ) from None
    before = _debugged(system, trace, step) if pdb else None
    if not quiet:
        emit(f"{start_text(trace) or 'initially'}\n{_state(trace, trace.initial)}")
    details, marks = step_details(trace), mark_texts(trace)
    hidden = _hidden(step or steps, all)
    for count, event in enumerate(events(system, trace, before=before), 1):
        if not quiet and count in hidden:
            _emit_hidden(count, hidden)
        elif not quiet:
            for label, *lost in marks.get(count - 1, []):
                emit("\n".join([*(f"     lost      {line}" for line in lost), f"  -- {label} --"]))
            if count - 1 == trace.loop:
                emit(f"  ┌─ {LOOP_STARTS}")
            emit(_step(event, count, details[count - 1]))
            if count == steps and trace.loop is not None:
                emit(f"  └─ {loop_text(trace)}")
        if count == step:
            loop = (
                ""
                if trace.loop is None or count <= trace.loop
                else f", in the loop of steps {trace.loop + 1} to {steps}"
            )
            emit(f"after step {count}{loop}")
            emit(_state(trace, event.state))
            return 0
    kinds = {p.name: p.kind for p in system.properties}
    emit(_reproduced(trace, kinds.get(trace.property or "")))
    return 0


def _debugged(system: System, trace: Trace, step: int | None) -> Callable[[int, Callable[[], None]], None]:
    """What to do before each step, so that the debugger stops in one of them."""
    from plait.check.explain.debugger import handled_steps
    from plait.report.wording import visible

    handled = handled_steps(system, trace)
    if not handled:
        raise TraceError("--pdb: no step of this trace runs a handler", hint="leave --pdb out")
    wanted = handled[-1] if step is None else step
    event = trace.events[wanted - 1]
    if wanted not in handled:
        raise TraceError(
            f"--pdb: step {wanted} ({event.lane}: {event.label}) runs no handler",
            hint=f"give --step {', '.join(map(str, handled[:-1]))}{' or ' if handled[1:] else ''}{handled[-1]}",
        )
    if os.environ.get("PYTHONBREAKPOINT") == "0" and sys.breakpointhook is sys.__breakpointhook__:
        note("warning: PYTHONBREAKPOINT=0 turns the debugger off\nhint: unset PYTHONBREAKPOINT")

    def before(number: int, stop: Callable[[], None]) -> None:
        if number == wanted:
            emit(f"stopped in step {number} of {len(trace)}: {visible(event.lane)}  {visible(event.label)}")
            # A debugger uses the terminal itself: readline does not edit lines of a stream that is not the terminal's.
            with redirect_stdout(sys.__stdout__), redirect_stderr(sys.__stderr__):
                stop()

    return before


def _reproduced(trace: Trace, kind: str | None) -> str:
    from plait.kernel.trace import for_whom
    from plait.report.wording import plural

    if trace.property is None:  # a run that was walked, not found
        said = "reproduced"
    else:
        said = f"reproduced: property {trace.property} is {'reached' if kind == 'reachable' else 'violated'}"
    said += for_whom(trace.violators)
    if trace.loop is not None:
        return f"{said}: steps {trace.loop + 1} to {len(trace)} repeat for ever"
    return f"{said} after {plural(len(trace), 'step')}{', where the run ends' if kind == 'temporal' else ''}"


def _hidden(steps: int, every_step: bool) -> range:
    """The steps of a long run that a terminal does not show."""
    from plait.report.text import hidden_steps

    return hidden_steps(steps) if sys.stdout.isatty() and not every_step else range(0)


def _emit_hidden(count: int, hidden: range) -> None:
    from plait.report.text import hidden_text

    if count == hidden.start:
        emit(f"  ⋮  {hidden_text(hidden)}")


def _program(trace: Trace, target: str | None, step: int | None, every_step: bool, quiet: bool) -> int:
    """Replay the run of a program with shared variables on the interpreter."""
    from plait.bmc.execution.tracing import WIDTH, replay
    from plait.bmc.load import load
    from plait.report.wording import step_details

    program = load(target or trace.target, {k: v for k, v in trace.parameters.items() if k != WIDTH})
    if not quiet:
        emit(f"initially\n{_state(trace, trace.initial)}")
    details = step_details(trace)
    hidden = _hidden(step or len(trace.events), every_step)
    for count, event in enumerate(replay(program, trace), 1):
        if not quiet and count in hidden:
            _emit_hidden(count, hidden)
        elif not quiet:
            emit(_step(event, count, details[count - 1]))
        if count == step:
            emit(f"after step {count}\n{_state(trace, event.state)}")
            return 0
    property_ = program.find(trace.property or "")
    emit(_reproduced(trace, None if property_ is None else property_.kind))
    return 0


def _step(event: Event, number: int, details: list[tuple[str, str]]) -> str:
    from plait.report import wording as facts

    fault = f"{facts.FAULTS[event.kind]}: " if event.kind in facts.FAULTS else ""
    place = f"{shown}  " if (shown := facts.place_text(event)) else ""
    lines = [f"{number:>3}. {fault}{facts.visible(event.lane)}  {place}{facts.visible(event.label)}"]
    before = ""
    for verb, said in details:
        lines.append(f"     {verb if verb != before else '':<9} {said}")
        before = verb
    return "\n".join(lines)


def _state(trace: Trace, state: Snapshot) -> str:
    """The fields and pending messages of all processes."""
    from plait.kernel.values import text
    from plait.report import wording as facts

    messages = {m.id: m for m in trace.messages}
    longest = max((len(name) for name in (*state.fields, *state.monitors)), default=0)
    lines = []
    for name, fields in state.fields.items():
        status = f"[{state.status[name]}] " if name in state.status else ""
        lines.append(f"     {name:<{longest}}  {status}{facts.record_text(fields)}".rstrip())
        for id_ in state.pending.get(name, []):
            if (message := messages.get(id_)) is not None:
                lines.append(f"     {'':<{longest}}  waiting: {facts.message_text(message)} from {message.sender}")
    lines += [f"     {name:<{longest}}  {facts.visible(text(value))}" for name, value in state.monitors.items()]
    return "\n".join(lines)
