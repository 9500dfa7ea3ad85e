"""`plait epa`: record threaded programs, check and compare their traces, inject faults, follow errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Count, Flag, Quiet, Seconds, after_dashes
from plait.cli.output import emit, emit_json, note, writable
from plait.kernel.errors import UsageError
from plait.kernel.trace import Trace

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
    """
    from plait.epa.faults import parse
    from plait.epa.recording import Recording
    from plait.epa.run import run as record

    folder = output or Path(program.with_suffix(".trace").name)
    planned = parse(fault) if fault is not None else None
    done = record(program, after_dashes(), folder, fault=planned, yields=yields, timeout=timeout)
    recording = Recording(folder)
    if recording.output:
        emit(recording.output.decode(errors="replace"))
    if (folder / "stderr").stat().st_size:
        sys.stderr.write((folder / "stderr").read_text(errors="replace"))
    note(f"{folder}: {done.ending}, {recording.native.records:,} records, threads: {len(recording.threads)}")
    for cut in recording.cuts:
        note(f"cut off: {cut}")
    if planned is not None and not recording.native.faults():
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
    html
        Write a page with the synchronisation of the threads to this file.
    json
        Print exactly one JSON object on stdout.
    """
    from plait.epa.output.text import event_lines, object_lines, overview
    from plait.epa.recording import Recording

    writable(chrome, "--chrome")
    writable(html, "--html")
    recording = Recording(trace)
    if thread is not None and thread not in [t.name for t in recording.threads]:
        raise UsageError(
            f"--thread: there is no thread {thread}",
            hint=f"the threads are {', '.join(t.name for t in recording.threads)}",
        )
    if chrome is not None:
        from plait.epa.output.chrome import write_chrome

        note(f"{chrome}: {write_chrome(recording, chrome):,} events")
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
        for line in object_lines(recording):
            emit(line)
        return 0
    if chrome is None and html is None:
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
    from plait.epa.output.text import event_lines, object_lines
    from plait.epa.recording import Recording

    writable(output, "-o")
    recording = Recording(trace)
    lines = (line for source in (event_lines(recording, None, None), object_lines(recording)) for line in source)
    if output is None:
        for line in lines:
            emit(line)
    else:
        with output.open("w", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
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
        Treat this function as deterministic, for example rand with a fixed seed.
        addresses allows arithmetic on addresses. Repeat the option for several functions.
    limit
        Look for at most this number of witnesses.
    html
        Write a page with the permuted schedule of the first witness to this file.
    json
        Print exactly one JSON object on stdout.
    """
    from plait.epa.output.text import reversibility_lines
    from plait.epa.recording import Recording
    from plait.epa.reversibility import check

    writable(html, "--html")
    found = check(
        Recording(trace),
        benign_same_value=benign_same_value,
        nondeterministic=nondeterministic,
        allow=allow,
        limit=limit or 5,
    )
    if json:
        emit_json(found)
    else:
        emit("\n".join(reversibility_lines(found)))
    if html is not None and found.verdict.trace is not None:
        _page(html, f"Not pseudo-deterministic: {trace}", found.verdict.trace)
    elif html is not None:
        note("--html: there is no witness to show")
    return found.verdict.exit_code


def compare(
    golden: Path, faulty: Path, /, *, html: Path | None = None, trace: Path | None = None, json: Flag = False
) -> int:
    """Compare a faulty run with the golden one (the help text is in `plait.cli.main`).

    Parameters
    ----------
    golden
        The folder of the golden trace.
    faulty
        The folder of the faulty trace.
    html
        Write a page with both runs side by side and the propagation graph to this file.
    trace
        Write the propagation to this file, as a trace for the viewer (.itf.json).
    json
        Print exactly one JSON object on stdout.
    """
    from plait.epa.comparison import compare as compare_runs
    from plait.epa.output.html import comparison_html
    from plait.epa.output.text import comparison_lines
    from plait.epa.recording import Recording

    writable(html, "--html")
    writable(trace, "--trace")
    found = compare_runs(Recording(golden), Recording(faulty))
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
    runs: AtLeastOne = 100,
    seed: Count = 0,
    timeout: Seconds = None,
    output: Output = None,
    plot: Path | None = None,
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
        Types of faults, separated by commas: bitflip, filesize, mallsize, callcorr, invalptr, skipunlock, droplock,
        killthread.
    runs
        The number of runs, distributed over the types.
    seed
        The random seed. The same seed gives the same faults.
    timeout
        A run that takes longer counts as a hang. Default: 20 times the golden run, at least 2 seconds.
    output
        The file for the results. An interrupted campaign continues with the results in it.
    plot
        Write a plot of the coverage to this file (.svg).
    unsound
        Continue even if the golden run is not pseudo-deterministic. Then deviations may come from the schedule.
    json
        Print exactly one JSON object on stdout.
    quiet
        Print no progress.
    """
    from plait.epa.campaign import Campaign, NotDeterministic, perform, summarize
    from plait.epa.output.text import reversibility_lines, summary_lines

    writable(plot, "--plot")
    file = output or Path(program.with_suffix(".results.jsonl").name)
    writable(file, "-o")
    types = [t.strip() for t in faults.split(",") if t.strip()]
    try:
        prepared = Campaign(
            program, after_dashes(), types=types, runs=runs or 100, seed=seed, timeout=timeout, require=not unsound
        )
    except NotDeterministic as error:
        if json:
            emit_json(error.found)
        else:
            emit("\n".join(reversibility_lines(error.found)))
        note("the golden run is not pseudo-deterministic: no fault was injected (--unsound continues anyway)")
        return error.found.verdict.exit_code
    results = []
    tell = _progress(quiet, runs or 100)
    try:
        for kind in prepared.unusable:
            note(f"{kind}: the program has no place for a fault of this type")
        for result in perform(prepared, file, tell):
            results.append(result)
    except KeyboardInterrupt:
        note(f"interrupted after {len(results)} of {runs} runs; run the same command again to continue")
    finally:
        prepared.close()
    summary = summarize(prepared.header, results)
    if json:
        emit_json({"summary": summary, "results": results})
    else:
        emit("\n".join(summary_lines(summary)))
        example = next((r for r in results if r.outcome == "sdc"), None)
        if example is not None:
            rest = " ".join(["--", *after_dashes()]) if after_dashes() else ""
            note(f"repeat one of them: plait epa run {program} --fault {example.fault.text} {rest}".rstrip())
    if plot is not None:
        from plait.epa.output.plot import campaign_svg

        plot.write_text(campaign_svg(summary), encoding="utf-8")
        note(f"plot: {plot}")
    return 0 if summary.complete else _INTERRUPTED


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
