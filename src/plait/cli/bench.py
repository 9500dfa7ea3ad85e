"""`plait bench` lists and runs the benchmarks, which are in `plait.bench`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from plait.bench.options import Options
from plait.bench.registry import BENCHMARKS, GROUPS, run_all, select
from plait.cli.options import AtLeastOne, Flag, Quiet, Seconds
from plait.cli.output import colored, emit, emit_json, note, width, writable
from plait.kernel.errors import UsageError

if TYPE_CHECKING:
    from plait.bench.report.results import Results
    from plait.bench.table import Table


def bench(
    *names: str,
    quick: Flag = False,
    workers: AtLeastOne = None,
    repeats: AtLeastOne = None,
    timeout: Seconds = None,
    quorum: Flag = False,
    figure: Annotated[
        tuple[Literal["latency", "lan", "load", "share", "classes", "parallel", "cost"], ...],
        Parameter(name="--figure", negative=(), show_default=False),
    ] = (),
    runs: AtLeastOne = None,
    jobs: AtLeastOne = None,
    faults: AtLeastOne = None,
    seed: int | None = None,
    examples: Path | None = None,
    tla2tools: Annotated[Path | None, Parameter(name="--tla2tools")] = None,
    peer: Literal["cbmc"] | None = None,
    files: Path | None = None,
    json: Flag = False,
    markdown: Flag = False,
    plot: Path | None = None,
    quiet: Quiet = False,
) -> int:
    """Run benchmarks, or list them (the help text is in `plait.cli.main`).

    Parameters
    ----------
    names
        Benchmarks, or groups: all, papers, engine. Without a name, the command lists all benchmarks.
    quick
        Measure the smallest settings only, and stop searches sooner.
    workers
        Threads of each search; by default 1 (dbss, quorum, rounds, peers).
    repeats
        Repetitions of each measurement; by default 3, or 1 with --quick (epa, and the group engine without peers and
        memory).
    timeout
        Stop each run after this many seconds; by default 60 (bmc).
    quorum
        Consume a quorum in one transition, instead of message by message (dbss).
    figure
        latency (Table 3, the default), lan (Figure 6), load (Figure 7), share (Figure 8), classes (Figure 9),
        parallel (section 2.6), cost (processor time per operation, alone); can be repeated (gyro).
    runs
        Runs without a fault of each program, with one thread and with several. The injections of each type of fault are
        half as many. By default 100, or 4 with --quick; Saissi 2019 made 10000 (epa).
    jobs
        Runs at the same time; by default 1 (epa).
    faults
        Make this many randomised runs with faults instead: kills, pauses, full disks, partitions, clocks that jump, a log
        that fails. Each run is checked (gyro).
    seed
        The seed of the first run with faults; by default 0 (gyro).
    examples
        The folder of Plait's examples; by default ./examples (gyro, epa).
    tla2tools
        The jar of the TLA+ tools; by default, Maven fetches one (peers).
    peer
        Compare with this checker, which must be on PATH: cbmc, on the same C programs (bmc).
    files
        The folder of C programs for --peer; by default, programs that come with Plait (bmc).
    json
        Print exactly one JSON object on stdout.
    markdown
        Print the tables as Markdown.
    plot
        Draw the table in this .svg file, with marks for published values.
    quiet
        Do not print progress.
    """
    given: dict[str, Any] = {
        "workers": workers,
        "repeats": repeats,
        "timeout": timeout,
        "quorum": quorum or None,
        "figure": figure or None,
        "runs": runs,
        "jobs": jobs,
        "faults": faults,
        "seed": seed,
        "examples": examples,
        "tla2tools": tla2tools,
        "peer": peer,
        "files": files,
        "plot": plot,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if not names:
        return _list(json=json, markdown=markdown, given=given)
    chosen = select(names)
    _validate(chosen, given, json=json, markdown=markdown)
    from plait.bench.machine import this_machine
    from plait.bench.report.results import Results
    from plait.bench.table import exit_code

    machine = this_machine()
    given.pop("plot", None)
    with _progress(quiet) as tell:
        tables = list(run_all(chosen, Options(quick=quick, tell=tell, **given)))
    if machine.busy and not quiet:
        note(f"The machine was busy (load {machine.load:.1f}): ratios are more reliable than times.")
    _emit(Results(machine, tables), json=json, markdown=markdown)
    _draw(tables[0], plot)
    return exit_code(tables)


def _list(*, json: bool, markdown: bool, given: dict[str, Any]) -> int:
    if markdown or given:
        raise UsageError(
            "the name of a benchmark is missing", hint="name one, for example plait bench dbss; plait bench lists all"
        )
    if json:
        emit_json({name: found.about for name, found in BENCHMARKS.items()})
        return 0
    lines = ["plait bench NAME … runs these benchmarks:"]
    for group, about in GROUPS.items():
        lines += ["", f"  {group:<12}{about}"]
        lines += [f"    {name:<12}{found.about}" for name, found in BENCHMARKS.items() if found.group == group]
    emit("\n".join(lines))
    return 0


def _validate(chosen: list[str], given: dict[str, Any], *, json: bool, markdown: bool) -> None:
    if json and markdown:
        raise UsageError("--json and --markdown cannot be combined", hint="choose one of them")
    for option in given:
        takers = [name for name, found in BENCHMARKS.items() if option in found.options]
        if not any(name in takers for name in chosen):
            raise UsageError(
                f"plait bench {' '.join(chosen)} does not take --{option}", hint=f"it works with {', '.join(takers)}"
            )
    if "files" in given and "peer" not in given:
        raise UsageError("--files needs --peer", hint="add --peer cbmc")
    jar, plot = given.get("tla2tools"), given.get("plot")
    if isinstance(jar, Path) and not jar.is_file():
        raise UsageError(f"--tla2tools: there is no file {jar}", hint="give the jar of the TLA+ tools")
    if isinstance(plot, Path):
        if len(chosen) > 1:
            raise UsageError("--plot draws one benchmark only", hint="name one benchmark")
        writable(plot, "--plot")
        if plot.suffix.lower() != ".svg":
            raise UsageError(f"--plot: {plot} does not end in .svg", hint="choose a file name that ends in .svg")


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show what is measured: a changing status line on a terminal, otherwise one line per measurement."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield status.update
    else:
        yield note


def _emit(results: Results, *, json: bool, markdown: bool) -> None:
    from plait.bench.report.results import results_json, results_markdown, results_text

    if json:
        import msgspec

        emit_json(msgspec.Raw(results_json(results).encode()))
    elif markdown:
        emit(results_markdown(results))
    else:
        emit(results_text(results, width=width(), color=colored(sys.stdout)))


def _draw(table: Table, plot: Path | None) -> None:
    if plot is None:
        return
    if table.drawn.plot is None:
        note(f"plot: {table.name} was not measured, so {plot} is not drawn")
        return
    from plait.bench.report.svg import table_svg

    try:
        plot.write_text(table_svg(table.drawn), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--plot: {plot} cannot be written: {error.strerror}", hint="choose another file") from None
    note(f"plot: {plot}")
