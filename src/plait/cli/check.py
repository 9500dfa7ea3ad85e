"""`plait check`: search a model's states, and print the verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Count, Flag, Parameters, Quiet, Seconds, Size, Target
from plait.cli.options import split as assignments
from plait.cli.output import colored, default_trace_path, emit, note, width, writable
from plait.kernel.errors import TraceError, UsageError

if TYPE_CHECKING:
    from plait.kernel.trace import Trace
    from plait.kernel.verdict import Verdict

Search = Literal["bfs", "dfs", "random", "stateless"]


def check(
    target: Target,
    /,
    *,
    parameters: Parameters = (),
    properties: Annotated[tuple[str, ...], Parameter(name="--property", negative="", show_default=False)] = (),
    search: Search = "bfs",
    workers: AtLeastOne = None,
    max_states: AtLeastOne = None,
    max_depth: AtLeastOne = None,
    timeout: Seconds = None,
    memory: Size = None,
    seed: Count = 0,
    walks: AtLeastOne = None,
    keep_going: Flag = False,
    reduce: str = "none",
    decomposition: Literal["auto", "declared"] = "auto",
    split: Literal["none", "reply", "quorum", "combined"] = "reply",
    seeds: Literal["fewest", "instance"] = "fewest",
    history: Literal["none", "last"] = "none",
    spos: bool = True,
    rounds: Flag = False,
    assume: str | None = None,
    phases: AtLeastOne = None,
    raw: Annotated[bool, Parameter(negative="")] = False,
    coverage: Flag = False,
    json: Flag = False,
    trace: Path | None = None,
    html: Path | None = None,
    quiet: Quiet = False,
) -> int:
    """Search a model's states (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A zoo name, a Python file (models/token.py or models/token.py:ring), or package.module:function.
    parameters
        Set a parameter of the model, as in -p acceptors=3; plait show TARGET lists them.
    properties
        Check this property only. Give it once per property.
    search
        bfs finds a shortest counterexample, dfs needs less memory, random is for spaces that are too large.
    workers
        Threads that search; by default one per processor.
    max_states
        Stop after so many distinct states. Numbers may be written 1_000_000, 1e6, 10k or 10M.
    max_depth
        Look at runs of at most so many steps.
    timeout
        Stop after so many seconds; 2m and 1h are understood.
    memory
        Stop before using more memory than this: 500M, 4G.
    seed
        What the random walks depend on; the same seed gives the same walks.
    walks
        How many random walks to take.
    keep_going
        Go on after a violation, until every property has its verdict.
    reduce
        Reductions, separated by commas: decomposition, por, symmetry; dpor for the stateless search; auto, or none.
    decomposition
        Which fields are auxiliary: those that can be proven to be (auto), or only those declared with aux(…).
    split
        What por tells apart by the senders of the messages that are consumed.
    seeds
        Where the stubborn sets of por start: where an instance does, or where the fewest processes are enough.
    history
        Make the messages that each process consumed last part of the state, as the papers' tool does.
    spos
        Depth-first searches keep states with a single successor off the stack (selective push-on-stack).
    rounds
        Check the sequential program of a round-based protocol instead (plait rounds --help); violations are of the protocol.
    assume
        What the network delivers, with --rounds: none, reliable, n-f (n-1, …), majority, common, kernel, module:predicate.
    phases
        Search so many phases, with --rounds; by default 3.
    raw
        Show counterexamples as they were found: all steps, in that order.
    coverage
        Say what was exercised: handlers, branches, messages, fields, and properties that hold vacuously.
    json
        Print exactly one JSON object on stdout.
    trace
        Save the counterexample in this file instead of in .plait/, as ITF (JSON).
    html
        Write a report to this file, to be opened in a browser.
    quiet
        Print no progress, and of the verdict one line.
    """
    from plait.model.loader import load

    writable(trace, "--trace")
    writable(html, "--html")
    system = load(target, assignments(parameters))
    known = [p.name for p in system.properties]
    for name in properties:
        if name not in known:
            raise UsageError(
                f"{system.name} has no property {name!r}", hint=f"its properties are: {', '.join(known) or 'none'}"
            )

    from contextlib import nullcontext

    from plait.check import api
    from plait.cli.progress import ProgressLine

    run: Callable[..., Verdict] = api.check
    if rounds:
        run = _rounds(phases, assume, reduce, coverage)
    elif assume is not None or phases is not None:
        given = "--assume" if assume is not None else "--phases"
        raise UsageError(f"{given} is about rounds", hint=f"give --rounds too: plait check {target} --rounds {given} …")
    with nullcontext() if quiet else ProgressLine() as progress:
        verdict = run(
            system,
            search=search,
            workers=workers,
            max_states=max_states,
            max_depth=max_depth,
            timeout=timeout,
            memory=memory,
            seed=seed,
            walks=api.WALKS if walks is None else walks,
            keep_going=keep_going,
            reduce=reduce,
            decomposition=decomposition,
            split=split,
            seeds=seeds,
            history=history,
            spos=spos,
            raw=raw,
            coverage=coverage,
            properties=list(properties) or None,
            progress=progress,
        )
    show(verdict, json=json, quiet=quiet)
    say = note if json else emit
    for line in save_traces(verdict, system.name, trace):
        say(line)
    if html is not None:
        write_report(verdict, html)
        say(f"report: {html}")
    return verdict.exit_code


def _rounds(phases: int | None, assume: str | None, reduce: str, coverage: bool) -> Callable[..., Verdict]:
    """Checking by way of the sequential program."""
    from functools import partial

    from plait.rounds.check import check_rounds
    from plait.rounds.sequential import PHASES

    if reduce != "none":
        raise UsageError(
            f"--rounds with --reduce {reduce}",
            hint="in a sequential program nothing is interleaved: leave --reduce out",
        )
    if coverage:
        raise UsageError(
            "--rounds with --coverage: a sequential program has no handlers",
            hint="leave --rounds out to see what the protocol itself does",
        )
    return partial(check_rounds, phases=phases or PHASES, assume="none" if assume is None else assume)


def show(verdict: Verdict, *, json: bool, quiet: bool) -> None:
    """Print the verdict."""
    if json:
        import msgspec

        emit(msgspec.json.encode(verdict.to_json()).decode())
    elif quiet:
        from plait.report.wording import headline

        emit(" ".join(headline(verdict)))
    else:
        from plait.report.text import verdict_text

        emit(verdict_text(verdict, color=colored(sys.stdout), width=width()))


def write_report(verdict: Verdict, file: Path) -> None:
    """Write the HTML report."""
    from plait.report.html import report

    try:
        file.write_text(report(verdict), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html: {file} cannot be written: {error.strerror}", hint="choose another file") from None


def save_traces(verdict: Verdict, model: str, chosen: Path | None) -> list[str]:
    """Save every counterexample, the first one to the chosen file; the lines that say how to replay them."""
    found: list[tuple[str, Trace]] = []
    if verdict.status == "violated" and verdict.trace is not None:
        found.append((verdict.property or "counterexample", verdict.trace))
    for result in verdict.properties:
        if result.status == "violated" and result.trace is not None and result.name != verdict.property:
            found.append((result.name, result.trace))
    if not found:
        if chosen is not None:
            note(f"note: {chosen} is not written: there is no counterexample")
        return []

    from plait.report.itf import save_trace

    lines = []
    for number, (name, counterexample) in enumerate(found):
        path = chosen if chosen is not None and number == 0 else default_trace_path(model, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_trace(counterexample, path)
        except (OSError, TraceError) as error:
            # The verdict stands; only its replay is lost.
            note(f"warning: the counterexample is not saved: {error}\nhint: give --trace FILE")
        else:
            lines.append(replay_line(path))
    return lines


def replay_line(path: Path) -> str:
    """The command that replays a saved trace."""
    import shlex

    return f"replay: plait replay {shlex.quote(str(path))}"
