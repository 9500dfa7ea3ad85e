"""Figure 17 of Saissi 2019: in how many runs with a fault does the trace deviate, by program and type of fault?

The types are those of Table 9. Crashes and silent data corruptions must leave a deviation: otherwise the comparison would
have missed an error that certainly propagated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plait.bench.epa.programs import Built
from plait.bench.epa.soundness import Soundness
from plait.bench.options import Options
from plait.bench.table import Cell, Column, Plot, Table
from plait.epa.campaign import Campaign, Result, Summary, perform, summarize
from plait.kernel.errors import UsageError

TYPES = ["bitflip", "filesize", "mallsize", "callcorr", "invalptr"]
"""Table 9."""
COLUMNS = [
    Column("injections"),
    Column("coverage"),
    Column("low", "95 %: from"),
    Column("high", "to"),
    Column("crash"),
    Column("hang"),
    Column("sdc", "SDC"),
    Column("masked", "spread, same output"),
    Column("none", "only the corrupted value"),
]
_PLOT = Plot(
    "coverage",
    "share of the injections by outcome; line: 95 % interval of the coverage, which is printed at the right",
    stacked=["crash", "hang", "sdc", "masked"],
    interval=("low", "high"),
)
_EVERY = 50
"""Progress is reported after this many injections."""


def measure_coverage(
    whole: Table,
    options: Options,
    programs: Sequence[Built],
    sound: dict[str, Soundness],
    injections: int,
    folder: Path,
) -> dict[str, list[Result]]:
    """Inject faults into all programs whose golden run is sound. Returns the results by program."""
    table = Table(
        "epa-figure-17",
        "Figure 17: coverage by program and type of fault",
        COLUMNS,
        "fault",
        conditions=f"{injections:,} injections for each program and type of fault",
        plot=_PLOT,
    )
    whole.parts.append(table)
    found: dict[str, list[Result]] = {}
    summaries: list[Summary] = []
    for built in programs:
        if not sound[built.name].holds:
            table.summary.append(f"{built.name} is left out: its golden run is not pseudo-deterministic.")
            continue
        try:
            campaign = Campaign(
                built.binary,
                built.arguments(built.program.threads),
                types=TYPES,
                runs=injections * len(TYPES),
                seed=1,
                jobs=options.jobs,
            )
        except UsageError as error:  # for example, a second run without a fault deviates
            table.errors.append(f"{built.name}: {error.message}")
            continue

        def tell(count: int, _: Result, name: str = built.name, total: int = injections * len(TYPES)) -> None:
            if count % _EVERY == 0:
                options.tell(f"faults: {name}, {count:,} of {total:,}")

        try:
            results = list(perform(campaign, folder / f"{built.name}.jsonl", tell))
        finally:
            campaign.close()
        found[built.name] = results
        summaries.append(summarize(campaign.header, results))
        add_rows(table, built.name, summaries[-1])
        if campaign.unusable:
            table.summary.append(f"{built.name} has no place for {', '.join(campaign.unusable)}.")
    conclude(table, summaries)
    return found


def add_rows(table: Table, name: str, summary: Summary) -> None:
    """A row for each type of fault."""
    for share in summary.shares:
        outcomes: dict[str, Any] = {
            outcome: Cell(count / share.runs, "share") for outcome, count in share.outcomes.items()
        }
        table.add(
            name,
            share.type,
            injections=Cell(share.runs),
            coverage=Cell(share.coverage, "share"),
            low=Cell(share.low, "share"),
            high=Cell(share.high, "share"),
            **outcomes,
        )
        table.raw[f"{name} {share.type}"] = {"runs": share.runs, "outcomes": share.outcomes, "coverage": share.coverage}


def conclude(table: Table, summaries: Sequence[Summary]) -> None:
    """The maximal possible false negative rates (MPFNR) of all injections, and of crashes and silent data corruptions."""
    if not summaries:
        return
    rates = [share.mpfnr for summary in summaries for share in summary.shares]
    failures = sum(summary.failures for summary in summaries)
    missed = sum(summary.missed for summary in summaries)
    direct = sum(summary.direct for summary in summaries)
    table.summary += [
        f"MPFNR by program and type: {min(rates):.0%} to {max(rates):.0%} (Saissi 2019: 9% to 44%).",
        f"Crashes and SDC: {failures:,}. {missed:,} of them left no deviation (Saissi 2019: 0); in {direct:,}, only the "
        "corrupted value deviates.",
    ]
    table.raw["failures"] = {"all": failures, "missed": missed, "direct": direct}
    if missed:
        table.errors.append(f"{missed} of {failures} crashes and corruptions left no deviation")
