"""Tables 6 and 7 and Figure 14 of Saissi 2019 (section 4.6): programs, encodings, published times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from plait.bench.options import Options
from plait.bench.papers import projections
from plait.bench.table import Cell, Column, Plot, Row, Table
from plait.bmc.api import check
from plait.bmc.load import load

BMC, PBMC = "steps (BMC)", "steps, projections (PBMC)"
SLICED, ORDERED = "steps, sliced", "steps, sliced, order"
CLOCK, CLOCK_P, AUTO, EXPLICIT = "clock", "clock, projections", "auto", "explicit"

WAYS: dict[str, dict[str, Any]] = {
    BMC: {"encoding": "steps", "projection": "off", "order": False},
    PBMC: {"encoding": "steps", "projection": "on", "order": False},
    SLICED: {"encoding": "steps", "projection": "auto", "order": False},
    ORDERED: {"encoding": "steps", "projection": "auto", "order": True},
    CLOCK: {"encoding": "clock", "projection": "off"},
    CLOCK_P: {"encoding": "clock", "projection": "on"},
    AUTO: {},
    EXPLICIT: {"encoding": "explicit"},
}
"""The first two are the encodings of Saissi 2019. `auto` is the default of `plait bmc`."""

_SEEDS, _ENOUGH = 31, 10.0
"""Each formula is solved with 31 seeds, or with fewer if they take 10 s together. The mean is reported."""


class Setting(NamedTuple):
    """A program of the zoo, and the published seconds (solving, total) without and with projections."""

    target: str
    property: str
    depth: int
    parameters: Mapping[str, int]
    expected: str
    bmc: tuple[float, float] | None = None
    pbmc: tuple[float, float] | None = None
    unended: bool = False
    """The published BMC did not end in two hours."""
    quick: bool = False
    width: int | None = None
    """Bits of numbers. With a width, the file system needs a solver; without one, ranges alone decide it."""


def _philosophers(n: int, bmc: tuple[float, float], pbmc: tuple[float, float], quick: bool = False) -> Setting:
    name = "neighbours_do_not_eat_together"
    return Setting("philosophers", name, 10, {"n": n}, "sat", bmc, pbmc, quick=quick)


def _litmus(n: int, bmc: tuple[float, float], pbmc: tuple[float, float], **more: bool) -> Setting:
    return Setting(f"litmus{n}", "sometimes", 20, {}, "sat", bmc, pbmc, **more)


def _fsys(depth: int, bmc: tuple[float, float], pbmc: tuple[float, float], quick: bool = False) -> Setting:
    return Setting("fsys", "bounds", depth, {"threads": 5}, "unsat", bmc, pbmc, quick=quick, width=8)


def _indexer(n: int, depth: int, bmc: tuple[float, float], pbmc: tuple[float, float], quick: bool = False) -> Setting:
    return Setting("indexer", "no_collision", depth, {"threads": n}, "unsat", bmc, pbmc, quick=quick)


FROM = 20
"""In Figure 14, projections save time from this depth on."""
FIGURE = {
    f"Figure 14: Litmus 5, depth {depth}": Setting("litmus5", "never", depth, {}, "unsat")
    for depth in (10, 15, 20, 24, 27)
}
SETTINGS: dict[str, Setting] = {
    "Indexer 2, depth 10": _indexer(2, 10, (19.531, 20.116), (5.088, 5.773), quick=True),
    "Indexer 4, depth 15": _indexer(4, 15, (15979.298, 15981.531), (5881.442, 5884.755)),
    "FSys 5, depth 30": _fsys(30, (37.058, 47.376), (1.825, 58.139)),
    "FSys 5, depth 60": _fsys(60, (206.297, 227.427), (14.879, 227.942)),
    "FSys 5, depth 70": _fsys(70, (627.547, 651.991), (40.469, 325.797)),
    "FSys 5, depth 90": _fsys(90, (949.518, 981.573), (10.478, 467.558)),
    "DPhil 5, depth 10": _philosophers(5, (5.921, 8.830), (7.671, 12.665), quick=True),
    "DPhil 7, depth 10": _philosophers(7, (14.391, 19.162), (14.945, 22.585)),
    "DPhil 10, depth 10": _philosophers(10, (51.229, 59.460), (39.607, 52.139)),
    "DPhil 12, depth 10": _philosophers(12, (77.121, 88.028), (66.544, 82.618)),
    "DPhil 15, depth 10": _philosophers(15, (219.824, 235.581), (182.689, 204.752)),
    "Litmus 4, depth 20": _litmus(4, (10.649, 11.348), (13.988, 15.819), quick=True),
    "Litmus 5, depth 20": _litmus(5, (605.336, 606.475), (654.573, 657.102)),
    "Litmus 6, depth 20": _litmus(6, (3888.401, 3889.363), (908.573, 911.550)),
    "Litmus 7, depth 20": _litmus(7, (2611.024, 2612.562), (349.708, 353.544)),
    "Litmus 8, depth 20": _litmus(8, (7200.0, 7200.0), (59.738, 64.031), unended=True),
    **FIGURE,
}


class Timing(NamedTuple):
    """CPU seconds and result of one run."""

    solving: float
    total: float
    building: float
    found: str
    """`sat`, `unsat`, or the limit that was hit."""
    work: int | None
    """The solver's own measure of its work; None without a solver."""

    @property
    def decided(self) -> bool:
        return self.found in ("sat", "unsat")


def measure(options: Options) -> Table:
    """Run every setting with every encoding. Each run is stopped after `options.timeout` seconds."""
    if options.peer is not None:
        from plait.bench.peers.cbmc import measure as side_by_side

        return side_by_side(options)
    table = Table(
        "bmc",
        "Bounded model checking with projections (Saissi 2019, Tables 6 and 7, Figure 14)",
        [
            Column("solving", published="published: solving"),
            Column("total", published="published: total"),
            Column("building", shown=False),
            Column("work"),
            Column("found"),
        ],
        "encoding",
        f"CPU seconds of one core, each run stopped after {options.timeout:g} s; the mean of {_SEEDS} seeds (fewer if "
        f"they take more than {_ENOUGH:g} s); work: the solver's own measure of its work",
        plot=Plot("total", "CPU seconds"),
    )
    chosen = {name: setting for name, setting in SETTINGS.items() if setting.quick or not options.quick}
    with table.measuring():
        for name, setting in chosen.items():
            for way in WAYS:
                options.tell(f"{len(table.rows) + 1}/{len(chosen) * len(WAYS)}  {name}: {way}")
                _add(table, name, way, mean(setting, way, options.timeout))
    table.summary += _summary(table.rows)
    if table.complete:
        with table.measuring():
            projections.add_rows(table, options)
    return table


def _add(table: Table, name: str, way: str, timing: Timing) -> None:
    setting = SETTINGS[name]
    solving, total = {BMC: setting.bmc, PBMC: setting.pbmc}.get(way) or (None, None)
    unended = setting.unended and way == BMC
    stopped = not timing.decided
    table.add(
        name,
        way,
        solving=Cell(timing.solving, "s", stopped, published=solving, published_at_least=unended),
        total=Cell(timing.total, "s", stopped, published=total, published_at_least=unended),
        building=Cell(timing.building, "s"),
        work=None if timing.work is None else Cell(timing.work),
        found=Cell(timing.found, expected=None if stopped else setting.expected, published=setting.expected),
        limit=timing.found if stopped else None,
    )


def mean(setting: Setting, way: str, timeout: float) -> Timing:
    """The mean over several seeds. The result is undecided if one run is."""
    runs: list[Timing] = []
    while len(runs) < (1 if way == EXPLICIT else _SEEDS) and sum(run.total for run in runs) < _ENOUGH:
        runs.append(_once(setting, way, timeout, len(runs)))
        if not runs[-1].decided:
            return runs[-1]
    return Timing(
        solving=statistics.mean(run.solving for run in runs),
        total=statistics.mean(run.total for run in runs),
        building=statistics.mean(run.building for run in runs),
        found=runs[0].found,
        work=None if way == EXPLICIT else round(statistics.mean(run.work or 0 for run in runs)),
    )


def _once(setting: Setting, way: str, timeout: float, seed: int) -> Timing:
    program = load(setting.target, setting.parameters)
    start = time.process_time()
    verdict = check(
        program,
        depth=setting.depth,
        properties=[setting.property],
        timeout=timeout,
        cover=False,
        seed=seed,
        width=None if way in (AUTO, EXPLICIT) else setting.width,
        **WAYS[way],
    )
    total = time.process_time() - start
    if verdict.bound == "interrupted":
        raise KeyboardInterrupt
    limit = verdict.bound is not None and not verdict.bound.startswith("depth")
    outcome = "sat" if verdict.properties[0].trace is not None else "unsat"
    if limit:
        outcome = "too large" if "too large" in (verdict.bound or "") else verdict.bound or "limit"
    formula = verdict.statistics.formula
    assert formula is not None
    work = None if way == EXPLICIT else formula.work
    return Timing(formula.solve_seconds, total, formula.build_seconds, outcome, work)


Ways = dict[str, Row]


def _summary(rows: list[Row]) -> list[str]:
    settings: dict[str, Ways] = {}
    for row in rows:
        settings.setdefault(row.setting, {})[row.variant] = row
    lines = [_best(settings)]
    slow = [row for row in rows if row.limit is None and row.value("total") > 5 and row.variant != EXPLICIT]
    if slow:
        most = max(slow, key=_building)
        lines.append(
            f"In the {len(slow)} runs of more than 5 s, building and reading the formula takes at most "
            f"{_building(most):.0%} of the time ({most.setting}, {most.variant})."
        )
    for base, better in ((BMC, PBMC), (BMC, SLICED), (CLOCK, CLOCK_P)):
        lines.append(_gain(settings, base, better))
    faster = [name for name, ways in settings.items() if _enumeration_wins(ways)]
    if faster:
        lines.append(f"Enumerating all states is faster than every formula in: {'; '.join(faster)}.")
    return lines


def _building(row: Row) -> float:
    """Time to build the formula, as a share of the total."""
    return float(row.value("building") / row.value("total"))


def _best(settings: Mapping[str, Ways]) -> str:
    best = {
        name: min((r.value("total") for way, r in ways.items() if r.limit is None and way != EXPLICIT), default=None)
        for name, ways in settings.items()
    }
    undecided = [name for name, seconds in best.items() if seconds is None]
    if undecided:
        return f"No encoding decides: {'; '.join(undecided)}."
    slowest = max((seconds for seconds in best.values() if seconds is not None), default=0.0)
    return f"The best encoding decides every setting, in at most {slowest:.1f} s."


def _gain(settings: Mapping[str, Ways], base: str, better: str) -> str:
    """In settings where Saissi 2019 reports less solving time with projections: whether the work is less here, too."""
    less: list[str] = []
    other: list[str] = []
    for name, ways in settings.items():
        setting = SETTINGS.get(name)
        published = setting is not None and setting.bmc and setting.pbmc and setting.pbmc[0] < setting.bmc[0]
        if not (published or (name in FIGURE and FIGURE[name].depth >= FROM)) or not {base, better} <= ways.keys():
            continue
        one, two = ways[base], ways[better]
        if one.limit is None and two.limit is None:
            change = (two.value("work") or 0) / max(one.value("work") or 0, 1) - 1
            (less if change < 0 else other).append(f"{name} ({change:+.0%})")
        else:
            decided = two.limit is None
            (less if decided else other).append(f"{name} ({'only with' if decided else 'not decided with'})")
    return (
        f"{better} against {base}, in settings where Saissi 2019 reports less solving time: less work in "
        f"{len(less)} of {len(less) + len(other)}: {'; '.join(less) or 'none'}. Not less: {'; '.join(other) or 'none'}."
    )


def _enumeration_wins(ways: Ways) -> bool:
    mine = ways.get(EXPLICIT)
    if mine is None or mine.limit is not None:
        return False
    others = [row for way, row in ways.items() if way != EXPLICIT and row.limit is None]
    return all(mine.value("total") < row.value("total") for row in others)
