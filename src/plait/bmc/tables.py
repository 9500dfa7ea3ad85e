"""Tables 6 and 7 and Figure 14 of the thesis (section 4.6), measured again: programs, ways to decide them, its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from plait.bmc.api import check
from plait.bmc.load import load
from plait.kernel.table import Timing, TimingTable

BMC, PBMC, ORDERED = "steps (BMC)", "steps, projections (PBMC)", "steps, projections, order"
CLOCK, CLOCK_P, EXPLICIT = "clock", "clock, projections", "explicit"

WAYS: dict[str, dict[str, Any]] = {
    BMC: {"encoding": "steps", "projection": "off", "order": False},
    PBMC: {"encoding": "steps", "projection": "on", "order": False},
    ORDERED: {"encoding": "steps", "projection": "on", "order": True},
    CLOCK: {"encoding": "clock", "projection": "off"},
    CLOCK_P: {"encoding": "clock", "projection": "on"},
    EXPLICIT: {"encoding": "explicit"},
}
"""The first two are the thesis'."""


class Setting(NamedTuple):
    """A program of the zoo, and what was published: solving and total seconds without and with projections."""

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


def _philosophers(n: int, bmc: tuple[float, float], pbmc: tuple[float, float], quick: bool = False) -> Setting:
    name = "neighbours_do_not_eat_together"
    return Setting("philosophers", name, 10, {"n": n}, "sat", bmc, pbmc, quick=quick)


def _litmus(n: int, bmc: tuple[float, float], pbmc: tuple[float, float], **more: bool) -> Setting:
    return Setting(f"litmus{n}", "sometimes", 20, {}, "sat", bmc, pbmc, **more)


def _fsys(depth: int, bmc: tuple[float, float], pbmc: tuple[float, float], quick: bool = False) -> Setting:
    return Setting("fsys", "bounds", depth, {"threads": 5}, "unsat", bmc, pbmc, quick=quick)


def _indexer(n: int, depth: int, bmc: tuple[float, float], pbmc: tuple[float, float], quick: bool = False) -> Setting:
    return Setting("indexer", "no_collision", depth, {"threads": n}, "unsat", bmc, pbmc, quick=quick)


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


def bmc_table(
    *, quick: bool = False, timeout: float = 60.0, tell: Callable[[str], None] = lambda _: None
) -> TimingTable:
    """Every setting in every way; each run is stopped after `timeout` seconds."""
    rows: list[Timing] = []
    complete = True
    try:
        rows.extend(_rows(quick, timeout, tell))
    except KeyboardInterrupt:
        complete = False
    return TimingTable(
        "bmc",
        "Bounded model checking with projections (thesis, Tables 6 and 7, Figure 14)",
        rows,
        f"CPU seconds of one core; each run is stopped after {timeout:g} s",
        _summary(rows),
        complete,
    )


def _rows(quick: bool, timeout: float, tell: Callable[[str], None]) -> Iterator[Timing]:
    chosen = {name: setting for name, setting in SETTINGS.items() if setting.quick or not quick}
    number, total = 0, len(chosen) * len(WAYS)
    for name, setting in chosen.items():
        for way in WAYS:
            number += 1
            tell(f"{number}/{total}  {name}: {way}")
            yield measure(name, setting, way, timeout)


def measure(name: str, setting: Setting, way: str, timeout: float) -> Timing:
    """One line of the table."""
    program = load(setting.target, setting.parameters)
    start = time.process_time()
    verdict = check(
        program, depth=setting.depth, properties=[setting.property], timeout=timeout, cover=False, **WAYS[way]
    )
    total = time.process_time() - start
    if verdict.bound == "interrupted":
        raise KeyboardInterrupt
    found = verdict.properties[0]
    limit = verdict.bound is not None and not verdict.bound.startswith("depth")
    outcome = "sat" if found.trace is not None else (verdict.bound or "limit") if limit else "unsat"
    formula = verdict.statistics.formula
    assert formula is not None
    solving, whole = {BMC: setting.bmc, PBMC: setting.pbmc}.get(way) or (None, None)
    return Timing(
        setting=name,
        way=way,
        solving=formula.solve_seconds,
        total=total,
        verdict=outcome,
        published_solving=solving,
        published_total=whole,
        published_limit=setting.unended and way == BMC,
        expected=setting.expected,
    )


def _summary(rows: list[Timing]) -> list[str]:
    settings: dict[str, dict[str, Timing]] = {}
    for row in rows:
        settings.setdefault(row.setting, {})[row.way] = row
    lines = []
    unsolved = [name for name, ways in settings.items() if not any(t.decided for w, t in ways.items() if w != EXPLICIT)]
    slowest = max(
        (min((t.total for t in ways.values() if t.decided), default=0.0) for ways in settings.values()), default=0
    )
    lines.append(
        f"The best way decides every setting, in at most {slowest:.1f} s."
        if not unsolved
        else f"Not decided by any encoding: {', '.join(unsolved)}."
    )
    for base, better in ((BMC, PBMC), (BMC, ORDERED), (CLOCK, CLOCK_P)):
        less: list[str] = []
        more: list[str] = []
        for name, ways in settings.items():
            if base in ways and better in ways and (ways[base].decided or ways[better].decided):
                one, two = ways[base], ways[better]
                gain = not one.decided or (two.decided and two.solving < one.solving)
                (less if gain else more).append(name)
        lines.append(f"{better} against {base}: less solving in {len(less)} of {len(less) + len(more)} settings.")
    faster = [
        name
        for name, ways in settings.items()
        if EXPLICIT in ways
        and ways[EXPLICIT].decided
        and all(ways[EXPLICIT].total < t.total for w, t in ways.items() if w != EXPLICIT and t.decided)
    ]
    if faster:
        lines.append(f"Enumerating all states is faster than any formula in: {', '.join(faster)}.")
    return lines
