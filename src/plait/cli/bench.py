"""`plait bench`: the tables of the papers, measured again on this machine; and Plait beside other checkers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Flag, Quiet, Seconds
from plait.cli.output import colored, emit, note, width, writable
from plait.kernel.errors import UsageError
from plait.kernel.extras import require

if TYPE_CHECKING:
    from plait.bench.comparison import PeerTable
    from plait.bench.sites import SiteTable
    from plait.bench.table import Table, TimingTable

_DIFFERS, _INCONCLUSIVE = 1, 3
T = TypeVar("T", "Table", "PeerTable", "SiteTable", "TimingTable")

Plot = Annotated[Path | None, Parameter(name="--plot")]


def dbss(
    *,
    quorum: Flag = False,
    quick: Flag = False,
    workers: AtLeastOne = 1,
    json: Flag = False,
    markdown: Flag = False,
    plot: Plot = None,
    quiet: Quiet = False,
) -> int:
    """Measure Table I of paper 000 (the help text is in `plait.cli.main`).

    Parameters
    ----------
    quorum
        Consume quorums in one transition, instead of one message after the other.
    quick
        Leave the largest settings out, and stop searches sooner.
    workers
        Threads that search; with one, the counts are the same each time.
    json
        Print exactly one JSON object on stdout.
    markdown
        Print the table as Markdown.
    plot
        Draw the states in this file (.svg), with the paper's as marks.
    quiet
        Print no progress.
    """
    _validate(json, markdown, plot)
    from plait.bench.tables.dbss import dbss_table

    with _progress(quiet) as tell:
        table = dbss_table(quorum=quorum, quick=quick, workers=workers or 1, tell=tell)
    return _print(table, json, markdown, plot)


def quorum(
    *,
    quick: Flag = False,
    workers: AtLeastOne = 1,
    json: Flag = False,
    markdown: Flag = False,
    plot: Plot = None,
    quiet: Quiet = False,
) -> int:
    """Measure the settings of paper 003 (the help text is in `plait.cli.main`).

    Parameters
    ----------
    quick
        Leave the largest setting out, and stop searches sooner.
    workers
        Threads that search; with one, the counts are the same each time.
    json
        Print exactly one JSON object on stdout.
    markdown
        Print the table as Markdown.
    plot
        Draw the states in this file (.svg).
    quiet
        Print no progress.
    """
    _validate(json, markdown, plot)
    from plait.bench.tables.dbss import quorum_table

    with _progress(quiet) as tell:
        table = quorum_table(quick=quick, workers=workers or 1, tell=tell)
    return _print(table, json, markdown, plot)


def peers(
    *,
    quick: Flag = False,
    workers: AtLeastOne = 1,
    tla2tools: Annotated[Path | None, Parameter(name="--tla2tools")] = None,
    json: Flag = False,
    markdown: Flag = False,
    plot: Plot = None,
    quiet: Quiet = False,
) -> int:
    """Compare with Spin, Stateright and TLC (the help text is in `plait.cli.main`).

    Parameters
    ----------
    quick
        Small sizes: to see that all agree, not how fast they are.
    workers
        Threads of each checker (Spin has one).
    tla2tools
        The jar of the TLA+ tools; without it, Maven fetches one.
    json
        Print exactly one JSON object on stdout.
    markdown
        Print the table as Markdown.
    plot
        Draw the speeds in this file (.svg).
    quiet
        Print no progress.
    """
    _validate(json, markdown, plot)
    if tla2tools is not None and not tla2tools.is_file():
        raise UsageError(f"--tla2tools: there is no file {tla2tools}", hint="give the jar of the TLA+ tools")
    from plait.bench.peers.table import peers_table
    from plait.bench.report.peers import peers_markdown, peers_svg, peers_text

    with _progress(quiet) as tell:
        table = peers_table(quick=quick, workers=workers or 1, jar=tla2tools, tell=tell)
    _emit(table, json, markdown, peers_markdown, peers_text)
    _draw(plot, lambda: peers_svg(table))
    if any(row.differs for row in table.rows):
        return _DIFFERS
    return 0 if table.complete and all(row.problem is None for row in table.rows) else _INCONCLUSIVE


def rounds(
    *,
    quick: Flag = False,
    workers: AtLeastOne = 1,
    json: Flag = False,
    markdown: Flag = False,
    plot: Plot = None,
    quiet: Quiet = False,
) -> int:
    """Measure Table 1 of paper 002 (the help text is in `plait.cli.main`).

    Parameters
    ----------
    quick
        Leave the corrected protocols out, and stop asynchronous searches sooner.
    workers
        Threads that search; with one, the counts are the same each time.
    json
        Print exactly one JSON object on stdout.
    markdown
        Print the table as Markdown.
    plot
        Draw the states in this file (.svg).
    quiet
        Print no progress.
    """
    _validate(json, markdown, plot)
    from plait.bench.tables.rounds import rounds_table

    with _progress(quiet) as tell:
        table = rounds_table(quick=quick, workers=workers or 1, tell=tell)
    return _print(table, json, markdown, plot)


def bmc(
    *,
    quick: Flag = False,
    timeout: Seconds = 60.0,
    json: Flag = False,
    markdown: Flag = False,
    plot: Plot = None,
    quiet: Quiet = False,
) -> int:
    """Measure Tables 6 and 7 and Figure 14 of the thesis (the help text is in `plait.cli.main`).

    Parameters
    ----------
    quick
        The smallest settings only.
    timeout
        Stop each run after so many seconds.
    json
        Print exactly one JSON object on stdout.
    markdown
        Print the table as Markdown.
    plot
        Draw the seconds in this file (.svg), with the thesis' as marks.
    quiet
        Print no progress.
    """
    _validate(json, markdown, plot)
    from plait.bench.report.timings import timing_markdown, timing_svg, timing_text
    from plait.bench.tables.bmc import bmc_table

    with _progress(quiet) as tell:
        table = bmc_table(quick=quick, timeout=60.0 if timeout is None else timeout, tell=tell)
    _emit(table, json, markdown, timing_markdown, timing_text)
    _draw(plot, lambda: timing_svg(table))
    if any(row.differs for row in table.rows):
        return _DIFFERS
    return 0 if table.complete else _INCONCLUSIVE


def gyro(
    *,
    figure: Annotated[
        tuple[Literal["latency", "lan", "load", "share"], ...],
        Parameter(name="--figure", negative=(), show_default=False),
    ] = (),
    examples: Annotated[Path, Parameter(name="--examples")] = Path("examples/gyro"),
    quick: Flag = False,
    json: Flag = False,
    markdown: Flag = False,
    plot: Plot = None,
    quiet: Quiet = False,
) -> int:
    """Measure section 2.8 of thesis 004 (the help text is in `plait.cli.main`).

    Parameters
    ----------
    figure
        latency (Table 3), lan (figure 6), load (figure 7), share (figure 8); may be given several times. By default latency.
    examples
        Where tpcw.py and rubis.py are.
    quick
        Fewer configurations, and fewer pages in each.
    json
        Print exactly one JSON object on stdout.
    markdown
        Print the table as Markdown.
    plot
        Draw the mean latencies in this file (.svg).
    quiet
        Print no progress.
    """
    _validate(json, markdown, plot)
    require("serve")
    from plait.bench.gyro.measure import site_table
    from plait.bench.report.sites import sites_markdown, sites_svg, sites_text

    with _progress(quiet) as tell:
        table = site_table(figure or ("latency",), examples, quick=quick, tell=tell)
    _emit(table, json, markdown, sites_markdown, sites_text)
    _draw(plot, lambda: sites_svg(table))
    return 0 if table.complete else _INCONCLUSIVE


def _validate(json: bool, markdown: bool, plot: Path | None) -> None:
    if json and markdown:
        raise UsageError("--json and --markdown are two forms of the same output", hint="give one of them")
    writable(plot, "--plot")
    if plot is not None and plot.suffix.lower() != ".svg":
        raise UsageError(f"--plot: {plot} does not end in .svg", hint="the drawing is an SVG")


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """What is being measured: a line that changes on a terminal, else one for each search."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield status.update
    else:
        yield note


def _print(table: Table, json: bool, markdown: bool, plot: Path | None) -> int:
    from plait.bench.report.tables import table_markdown, table_svg, table_text

    _emit(table, json, markdown, table_markdown, table_text)
    _draw(plot, lambda: table_svg(table))
    if any(row.differs for row in table.rows):
        return _DIFFERS
    return 0 if table.complete else _INCONCLUSIVE


def _emit(table: T, json: bool, markdown: bool, as_markdown: Callable[[T], str], as_text: Callable[..., str]) -> None:
    if json:
        import msgspec

        emit(msgspec.json.encode(table).decode())
    else:
        emit(as_markdown(table) if markdown else as_text(table, width=width(), color=colored(sys.stdout)))


def _draw(plot: Path | None, svg: Callable[[], str]) -> None:
    if plot is None:
        return
    try:
        plot.write_text(svg(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--plot: {plot} cannot be written: {error.strerror}", hint="choose another file") from None
    note(f"plot: {plot}")
