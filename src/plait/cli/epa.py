"""`plait epa`: record threaded programs, check and compare their traces, inject faults, follow errors."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Count, Flag, Quiet, Seconds, after_dashes
from plait.cli.output import emit, emit_json, note, writable
from plait.kernel.errors import UsageError
from plait.kernel.trace import Trace

if TYPE_CHECKING:
    from plait.epa.campaign import Campaign

Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]
Names = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
_INTERRUPTED = 3


def build(*sources: Path, output: Output = None, clang: int | None = None, quiet: Quiet = False) -> int:
    """Compile C and C++ sources to a program that records itself (the help text is in `plait.cli.main`).

    Parameters
    ----------
    sources
        C or C++ files. Arguments after -- go to clang, for example -- -Iinclude -DN=4.
    output
        The program to write. Default: the name of the first source file with .epa.
    clang
        The version of clang. Default: the newest installed version.
    quiet
        Print no summary.
    """
    from plait.epa.instrumentation.build import build as build_program

    if not sources:
        raise UsageError("no source file was given", hint="for example plait epa build prog.c -o prog.epa")
    target = output or Path(sources[0].with_suffix(".epa").name)
    table, toolchain = build_program(sources, target, after_dashes(), version=clang)
    if not quiet:
        note(f"{target}: {len(table.sites):,} sites instrumented with clang {toolchain.version}")
    return 0


def run(
    program: Path,
    /,
    *,
    output: Output = None,
    fault: str | None = None,
    yields: Count | None = None,
    timeout: Seconds = None,
    stdin: Path | None = None,
    replay: Path | None = None,
) -> int:
    """Run a program and record it (the help text is in `plait.cli.main`).

    Parameters
    ----------
    program
        A program from plait epa build. Arguments after -- go to the program.
    output
        The folder for the trace. Default: the name of the program with .trace.
    fault
        A fault to inject: TYPE:SITE:THREAD:NTH:VALUE, as campaigns print it.
    yields
        Insert random yields with this seed. They change the schedule.
    timeout
        Stop the program after this time.
    stdin
        The standard input of the program. Default: that of this command.
    replay
        Replay the order of locks and the results of calls of a golden run: the folder of its trace, or the file
        RESULTS.order of a campaign. Replay ends when the run diverges.
    """
    from plait.epa.faults import parse
    from plait.epa.recording import overview
    from plait.epa.replay import ending, order_of
    from plait.epa.run import run as record

    folder = output or Path(program.with_suffix(".trace").name)
    planned = parse(fault) if fault is not None else None
    with _input(stdin) as given, order_of(replay, folder) as order:
        done = record(
            program, after_dashes(), folder, fault=planned, yields=yields, timeout=timeout, stdin=given, order=order
        )
    found = overview(folder)
    if output_ := (folder / "stdout").read_bytes():
        emit(output_.decode(errors="replace"))
    if (folder / "stderr").stat().st_size:
        sys.stderr.write((folder / "stderr").read_text(errors="replace"))
    note(f"{folder}: {done.ending}, {found.records:,} records, threads: {found.threads}")
    for cut in found.cuts:
        note(f"cut off: {cut}")
    if replay is not None:
        ended = ending(folder)
        note(f"replay ended at {found.table.place(ended.site)}: {ended.words}" if ended else "replayed to the end")
    if planned is not None and not found.struck:
        note(
            f"the fault was not injected: {planned.thread} executed site {planned.site} "
            f"fewer than {planned.nth + 1} times"
        )
    return 0


def show(
    trace: Path,
    /,
    *,
    thread: str | None = None,
    limit: Count = 200,
    objects: Flag = False,
    chrome: Path | None = None,
    csv: Path | None = None,
    html: Path | None = None,
    json: Flag = False,
) -> int:
    """Print a trace (the help text is in `plait.cli.main`).

    Parameters
    ----------
    trace
        The folder of a trace.
    thread
        Show only this thread, for example T_0_1.
    limit
        Print at most this number of events; 0 prints all.
    objects
        Print the memory objects and the thread map instead of events.
    chrome
        Write a trace for Perfetto or chrome://tracing to this file.
    csv
        Write all events to this file as a table, for example for pandas. With --thread, only those of the thread.
    html
        Write a page with the synchronisation of the threads to this file.
    json
        Print exactly one JSON object on stdout.
    """
    from plait.epa.output.text import event_lines, object_blocks, overview
    from plait.epa.recording import Recording

    for option, path in (("--chrome", chrome), ("--csv", csv), ("--html", html)):
        writable(path, option)
    recording = Recording(trace)
    if thread is not None and thread not in [t.name for t in recording.threads]:
        raise UsageError(
            f"--thread: there is no thread {thread}",
            hint=f"the threads are {', '.join(t.name for t in recording.threads)}",
        )
    if chrome is not None:
        from plait.epa.output.chrome import write_chrome

        note(f"{chrome}: {write_chrome(recording, chrome):,} events")
    if csv is not None:
        from plait.epa.output.rows import write_events

        note(f"{csv}: {write_events(recording, csv, thread):,} rows")
    if html is not None:
        from plait.epa.lanes import sync_trace

        _page(html, f"Synchronisation of the threads of {trace}", sync_trace(recording))
    if json:
        emit_json(
            {
                "overview": overview(recording),
                "threads": [t._asdict() for t in recording.threads],
                "cuts": recording.cuts,
            }
        )
        return 0
    for line in overview(recording):
        note(line)
    if objects:
        for block in object_blocks(recording):
            emit(block.removesuffix("\n"))
        return 0
    if chrome is None and html is None and csv is None:
        for line in event_lines(recording, thread, limit or None):
            emit(line)
    return 0


def sanitize(trace: Path, /, *, output: Output = None) -> int:
    """Write a sanitized trace (the help text is in `plait.cli.main`).

    Parameters
    ----------
    trace
        The folder of a trace.
    output
        The file to write. Default: stdout.
    """
    from plait.epa.output.text import object_blocks
    from plait.epa.recording import Recording

    writable(output, "-o")
    recording = Recording(trace)
    blocks = (block for source in (recording.lines(), object_blocks(recording)) for block in source)
    if output is None:
        for block in blocks:
            emit(block.removesuffix("\n"))
    else:
        with output.open("w", encoding="utf-8") as out:
            out.writelines(blocks)
    note(f"digest {recording.native.digest():016x}")
    return 0


def reversible(
    trace: Path,
    /,
    *,
    benign_same_value: Flag = False,
    nondeterministic: Names = (),
    allow: Names = (),
    limit: AtLeastOne = 5,
    replay: Flag = False,
    smt2: Path | None = None,
    html: Path | None = None,
    json: Flag = False,
) -> int:
    """Check that comparisons with a trace are sound (the help text is in `plait.cli.main`).

    Parameters
    ----------
    trace
        The folder of a golden trace.
    benign_same_value
        Two writes of the same value are not a conflict.
    nondeterministic
        Treat this function as nondeterministic too. Repeat the option for several functions.
    allow
        Treat this function as deterministic, for example rand with a fixed seed. addresses, asm, freed, pointers,
        signals, stderr and paths of devices can be allowed too. Repeat the option for several functions.
    limit
        Look for at most this number of witnesses.
    replay
        Check that comparisons with runs that replay this one are sound: locks, atomic accesses and operations on files
        keep their order, and results of calls such as time and rand are repeated.
    smt2
        Write the reversibility formula to this file, as SMT-LIB. It is satisfiable if events can be reversed.
    html
        Write a page with the verdict, the witnesses and a permuted schedule to this file.
    json
        Print exactly one JSON object on stdout.
    """
    from plait.epa.output.text import reversibility_lines
    from plait.epa.recording import Recording
    from plait.epa.reversibility import check

    writable(html, "--html")
    writable(smt2, "--smt2")
    recording = Recording(trace)
    if smt2 is not None:
        from plait.epa.events import from_rows
        from plait.epa.smtlib import smt2 as formula

        if replay:
            raise UsageError("--smt2 and --replay exclude each other", hint="the formula is about runs without replay")
        lines = list(formula(from_rows(recording.native.steps()), benign_same_value=benign_same_value))
        smt2.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        note(f"smt2: {smt2}")
    options: dict[str, Any] = {
        "benign_same_value": benign_same_value, "nondeterministic": nondeterministic, "allow": allow, "limit": limit or 5
    }  # fmt: skip
    found = check(recording, replay=replay, **options)
    if json:
        emit_json(found)
    else:
        emit("\n".join(reversibility_lines(found)))
    if not found.verdict and not replay and check(recording, replay=True, **options).verdict:
        note("runs that replay this one are comparable (--replay; plait epa campaign does this by itself)")
    if html is not None:
        from plait.epa.output.html import reversibility_html

        html.write_text(reversibility_html(found), encoding="utf-8")
        note(f"html: {html}")
    return found.verdict.exit_code


def compare(
    golden: Path,
    faulty: Path,
    /,
    *,
    benign_same_value: Flag = False,
    nondeterministic: Names = (),
    allow: Names = (),
    unsound: Flag = False,
    html: Path | None = None,
    trace: Path | None = None,
    json: Flag = False,
) -> int:
    """Compare a faulty run with the golden one (the help text is in `plait.cli.main`).

    Parameters
    ----------
    golden
        The folder of the golden trace.
    faulty
        The folder of the faulty trace.
    benign_same_value
        Two writes of the same value are not a conflict.
    nondeterministic
        Treat this function as nondeterministic too. Repeat the option for several functions.
    allow
        Treat this function as deterministic, as in plait epa reversible. Repeat the option for several functions.
    unsound
        Show differences even if it is not proven that they come from the fault.
    html
        Write a page with both runs side by side and the propagation graph to this file.
    trace
        Write the propagation to this file, as a trace for the viewer (.itf.json).
    json
        Print exactly one JSON object on stdout.
    """
    from plait.epa.comparison import compare as compare_runs
    from plait.epa.comparison import proof_for
    from plait.epa.output.html import comparison_html
    from plait.epa.output.text import comparison_lines
    from plait.epa.recording import Recording

    writable(html, "--html")
    writable(trace, "--trace")
    first, second = Recording(golden), Recording(faulty)
    proof = proof_for(
        first, second, benign_same_value=benign_same_value, nondeterministic=nondeterministic, allow=allow
    )
    found = compare_runs(first, second, proof=proof, require=not unsound)
    if json:
        emit_json(found)
    else:
        emit("\n".join(comparison_lines(found)))
    if html is not None:
        html.write_text(comparison_html(found), encoding="utf-8")
        note(f"html: {html}")
    if trace is not None and found.verdict.trace is not None:
        from plait.report.itf import save_trace

        save_trace(found.verdict.trace, trace)
        note(f"trace: {trace}")
    return found.verdict.exit_code


def campaign(
    program: Path,
    /,
    *,
    faults: str = "bitflip,mallsize,callcorr,invalptr",
    runs: AtLeastOne = None,
    width: float | None = None,
    where: Names = (),
    seed: Count = 0,
    timeout: Seconds = None,
    output: Output = None,
    stdin: Path | None = None,
    jobs: AtLeastOne = 1,
    oracle: Path | None = None,
    tolerance: float | None = None,
    ignore: Names = (),
    benign_same_value: Flag = False,
    nondeterministic: Names = (),
    allow: Names = (),
    replay: Literal["auto", "always", "never"] = "auto",
    plot: Path | None = None,
    html: Path | None = None,
    csv: Path | None = None,
    unsound: Flag = False,
    json: Flag = False,
    quiet: Quiet = False,
) -> int:
    """Inject many faults, one per run (the help text is in `plait.cli.main`).

    Parameters
    ----------
    program
        A program from plait epa build. Arguments after -- go to the program.
    faults
        Types of faults, separated by commas: bitflip, multibit, window, operand, stuck0, stuck1, branch, skipped, memory,
        argument, filesize, mallsize, callcorr, invalptr, returncode, errno, shortread, skipunlock, droplock,
        doublelock, doubleunlock, killthread, or a Python file that defines one, for example my_faults.py.
    runs
        The number of runs, distributed over the types. Default: 100. A larger number extends an earlier campaign.
    width
        Perform so many runs per type that the 95 % interval of each coverage is at most this wide, for example 0.1.
    where
        Inject faults only here: function=NAME, line=FILE:LINE, opcode=NAME, thread=NAME or nth=FIRST-LAST
        (executions of the site by the thread, from 0). Names may be patterns. Repeat the option for more conditions.
    seed
        The random seed. The same seed gives the same faults.
    timeout
        A run that takes longer counts as a hang. Default: 20 times the golden run, at least 2 seconds.
    output
        The file for the results. An interrupted campaign continues with the results in it.
    stdin
        The standard input of all runs. Default: that of this command, unless it is a terminal.
    jobs
        The number of runs at the same time.
    oracle
        A Python file with a function check(golden, faulty) that decides whether the results of a run are correct.
    tolerance
        Numbers in the results may differ by this relative error, for example 1e-6.
    ignore
        A result that does not matter: stdout, stderr, or the name of a file. Repeat the option for several results.
    benign_same_value
        Two writes of the same value are not a conflict.
    nondeterministic
        Treat this function as nondeterministic too. Repeat the option for several functions.
    allow
        Treat this function as deterministic, as in plait epa reversible. Repeat the option for several functions.
    replay
        Let all runs replay the order of locks and the results of calls of the golden run: auto (only if the runs are not
        comparable otherwise), always or never. OUTPUT.order is the file for it.
    plot
        Write a plot of the coverage to this file (.svg).
    html
        Write a page with the plot and a table of all runs to this file.
    csv
        Write the runs to this file as a table, for example for pandas.
    unsound
        Continue even if the golden run is not pseudo-deterministic. Then deviations may come from the schedule.
    json
        Print exactly one JSON object on stdout.
    quiet
        Print no progress.
    """
    from plait.epa.campaign import Campaign, NotDeterministic, runs_for
    from plait.epa.oracle import Oracle
    from plait.epa.output.text import reversibility_lines

    for option, path in (("--plot", plot), ("--html", html), ("--csv", csv)):
        writable(path, option)
    file = output or Path(program.with_suffix(".results.jsonl").name)
    writable(file, "-o")
    types = [t.strip() for t in faults.split(",") if t.strip()]
    if width is not None and runs is not None:
        raise UsageError("--width and --runs exclude each other", hint="give one of them")
    if width is not None and not 0 < width <= 1:
        raise UsageError(f"--width {width} is not a share", hint="for example 0.1: intervals of at most 10 points")
    judge = Oracle(tolerance=tolerance, checker=oracle, ignore=ignore)
    order = file.with_name(f"{file.name}.order")
    if not file.exists():
        order.unlink(missing_ok=True)
    with _input(stdin, terminal=False) as given:
        try:
            prepared = Campaign(
                program,
                after_dashes(),
                types=types,
                runs=runs_for(width) * len(types) if width is not None else runs or 100,
                seed=seed,
                timeout=timeout,
                require=not unsound,
                where=where,
                oracle=judge,
                stdin=given if isinstance(given, Path) else None,
                jobs=jobs or 1,
                benign_same_value=benign_same_value,
                allow=allow,
                nondeterministic=nondeterministic,
                replay=replay,
                order=order,
            )
        except NotDeterministic as error:
            if json:
                emit_json(error.found)
            else:
                emit("\n".join(reversibility_lines(error.found)))
            note("the golden run is not pseudo-deterministic: no fault was injected (--unsound continues anyway)")
            return error.found.verdict.exit_code
        return _perform(prepared, file, plot=plot, html=html, csv=csv, json=json, quiet=quiet)


def _perform(
    prepared: Campaign,
    file: Path,
    *,
    plot: Path | None,
    html: Path | None,
    csv: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    from plait.epa.campaign import perform, summarize
    from plait.epa.output.text import summary_lines

    program, runs = prepared.program, prepared.header.runs
    results = []
    tell = _progress(quiet, runs)
    try:
        for kind in prepared.unusable:
            note(f"{kind}: the program has no place for a fault of this type")
        for result in perform(prepared, file, tell):
            results.append(result)
    except KeyboardInterrupt:
        note(f"interrupted after {len(results)} of {runs} runs; run the same command again to continue")
    finally:
        prepared.close()
    summary = summarize(prepared.header, results, prepared.check.needs)
    if json:
        emit_json({"summary": summary, "results": results})
    else:
        emit("\n".join(summary_lines(summary)))
        example = next((r for r in results if r.outcome == "sdc"), None)
        if example is not None:
            rest = " ".join(["--", *after_dashes()]) if after_dashes() else ""
            again = f"--replay {file}.order " if prepared.order is not None else ""
            note(f"repeat one of them: plait epa run {program} {again}--fault {example.fault.text} {rest}".rstrip())
    if plot is not None:
        from plait.epa.output.plot import campaign_svg

        plot.write_text(campaign_svg(summary), encoding="utf-8")
        note(f"plot: {plot}")
    if html is not None:
        from plait.epa.output.html import campaign_html

        html.write_text(campaign_html(summary, results), encoding="utf-8")
        note(f"html: {html}")
    if csv is not None:
        from plait.epa.output.rows import write_results

        note(f"{csv}: {write_results(results, csv):,} rows")
    return 0 if summary.complete else _INTERRUPTED


@contextmanager
def _input(given: Path | None, *, terminal: bool = True) -> Iterator[Path | Literal["terminal"] | None]:
    """The standard input for a program: a file with a copy of ours, the terminal, or nothing."""
    if given is not None:
        if not given.is_file():
            raise UsageError(f"--stdin: {given} is not a file", hint="give a file with the input of the program")
        yield given
        return
    try:
        kind = os.fstat(0).st_mode
        readable = not sys.stdin.closed and sys.stdin.fileno() == 0
    except (OSError, AttributeError, ValueError):
        kind, readable = 0, False
    if not readable or not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        yield "terminal" if terminal and readable and os.isatty(0) else None
        return
    waiting = threading.Timer(3.0, note, ["reading the standard input until it ends (< /dev/null: an empty input)"])
    waiting.daemon = True
    with tempfile.NamedTemporaryFile(prefix="plait-epa-") as copy:
        waiting.start()
        try:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        finally:
            waiting.cancel()
        copy.flush()
        yield Path(copy.name)


def _progress(quiet: bool, runs: int) -> Callable[[int, Any], None]:
    step = max(1, runs // 20)

    def tell(index: int, result: Any) -> None:
        if not quiet and ((index + 1) % step == 0 or index + 1 == runs):
            note(f"{index + 1} of {runs}: {result.fault.text} at {result.place}: {result.outcome}")

    return tell


def _page(file: Path, title: str, trace: Trace) -> None:
    """Write a page with the diagram of a trace."""
    from plait.report.html import trace_page

    file.write_text(trace_page(trace, title), encoding="utf-8")
    note(f"html: {file}")
