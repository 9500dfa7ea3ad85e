"""What executing handlers costs: native execution against CPython, cold searches against warm ones, two workers against one.

A *cold* search starts with empty tables, and asks the model for each distinct step once. A *warm* search is the next one in
the same process: it finds almost all answers in the tables. Models with many distinct local states spend most of a cold
search on questions, so native execution matters most there. In the last model, one process has the whole state, and each
state is a distinct local state. It is compared with a plain search in Python.

Each figure is the best of the repetitions, each in its own process. The processes of a model take turns. Two workers share
the memory and the caches of the machine, and so do two independent searches at the same time: their speed-up is what the
machine allows. The share of CPython is the number of its calls, compared with the search in which it answers all questions.
With a version of Plait that does not have the option `native`, everything is executed by CPython, and columns about native
execution stay empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from plait.bench.engine.common import interleaved, same_count, times
from plait.bench.engine.native_search import SIZES, Model, Native, measured, switches
from plait.bench.options import Options
from plait.bench.report.cells import number
from plait.bench.report.cells import times as ratio
from plait.bench.table import Cell, Column, Table

COLUMNS = [
    Column("states"),
    Column("transitions", shown=False),
    Column("cold", "native"),
    Column("cold_off", "CPython"),
    Column("faster", "ratio"),
    Column("warm"),
    Column("tables", "cold/warm"),
    Column("two_cold", "2 workers"),
    Column("two_warm", "2, warm"),
    Column("two_searches", "2 searches"),
    Column("calls", "Python calls", shown=False),
    Column("share", "asked CPython"),
    Column("memory", "memory"),
    Column("local", "B/local"),
    Column("plain", "plain Python", shown=False),
    Column("against", "plain / cold", shown=False),
]
Runs = dict[str, list[dict[str, Any]]]


def measure(options: Options) -> Table:
    """Search each model cold and warm, with native execution and without, with one worker and with two."""
    table = Table("native", "Native execution: cold and warm searches", COLUMNS, "model")
    table.conditions = (
        f"cold searches unless said otherwise, best of {options.times}, each in its own process; "
        "2 workers, or 2 searches at the same time: speed-up"
    )
    size = "quick" if options.quick else "full"
    with table.measuring():
        for number, (name, model) in enumerate(SIZES[size].items(), 1):
            options.tell(f"{number}/{len(SIZES[size])}  {name}")
            runs = _runs(size, name, model, options.times)
            table.raw[name] = runs
            _check(name, model, runs)
            _add(table, name, model, runs)
    if not switches():
        table.summary.append("This version of Plait has no native execution: CPython answered all questions.")
    return table


def _runs(size: str, name: str, model: Model, repeats: int) -> Runs:
    """All runs of a model, by name. `off` is always among them; `two` has the same execution as the main search."""
    main: Native = "auto" if switches() else "off"
    searches = {"off": lambda: measured(size, name, "off")}
    if main == "auto":
        searches["auto"] = lambda: measured(size, name, "auto")
    searches["two"] = lambda: measured(size, name, main, workers=2)
    searches["both"] = lambda: _at_once(size, name, main)
    if model.plain is not None:
        searches["plain"] = lambda: measured(size, name, "plain")
    return interleaved(repeats, **searches)


def _at_once(size: str, name: str, how: Native) -> dict[str, Any]:
    """Two independent searches at the same time: the figures of the slower one."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: measured(size, name, how), range(2)))
    return max(found, key=lambda run: float(run["cold"]["seconds"]))


def _check(name: str, model: Model, runs: Runs) -> None:
    """Raise a `DifferenceError` unless all searches count the same. With two workers, a limit is not met exactly."""
    expected: int | None = None
    for how, results in runs.items():
        searches = results if how == "plain" else [run[key] for run in results for key in ("cold", "warm")]
        if how == "two" and model.limited:
            continue
        for found in searches:
            same_count(f"{name}, {how}: states", found["states"], model.states)
            expected = found["transitions"] if expected is None else expected
            same_count(f"{name}, {how}: transitions", found["transitions"], expected)


def _best(runs: Sequence[dict[str, Any]], key: str) -> float:
    return min(float(run[key]["seconds"]) for run in runs)


def _add(table: Table, name: str, model: Model, runs: Runs) -> None:
    main = runs.get("auto", runs["off"])
    cold, warm, off = _best(main, "cold"), _best(main, "warm"), _best(runs["off"], "cold")
    two_cold, two_warm = _best(runs["two"], "cold"), _best(runs["two"], "warm")
    first, native = main[0]["cold"], "auto" in runs
    plain = min((float(run["seconds"]) for run in runs.get("plain", [])), default=None)
    table.add(
        "the first states" if model.limited else "every state",
        name,
        states=Cell(first["states"], expected=model.states),
        transitions=Cell(first["transitions"]),
        cold=Cell(cold, "s") if native else None,
        cold_off=Cell(off, "s"),
        faster=times(off / cold) if native else None,
        warm=Cell(warm, "s"),
        tables=times(cold / warm),
        two_cold=times(cold / two_cold),
        two_warm=times(warm / two_warm),
        two_searches=times(2 * cold / _best(runs["both"], "cold")),
        calls=Cell(first["python_calls"]),
        share=Cell(first["python_calls"] / runs["off"][0]["cold"]["python_calls"], "share") if native else None,
        memory=Cell(main[0]["peak_rss_bytes"], "B"),
        local=Cell(round(first["local_bytes"] / first["local_states"])) if first["local_states"] else None,
        plain=Cell(plain, "s") if plain is not None else None,
        against=times(plain / cold) if plain is not None else None,
    )
    if plain is not None:
        table.summary.append(
            f"{name}: a plain search in Python takes {number(plain, 's')}, "
            f"the cold search {ratio(cold / plain)} times as long."
        )
