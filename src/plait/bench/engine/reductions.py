"""How many states reductions remove, and whether they save time. `plait bench dbss` has Table I of DBSS.

With `history="last"`, the state includes the messages that each process consumed last, as in the tools of the papers.
Shares refer to states with history, as in the papers. States without history are listed too, because Plait explores
these by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, get_args

from plait.bench.engine.common import checked, interleaved, median, same_count, same_verdicts
from plait.bench.engine.common import times as ratio_of
from plait.bench.options import Options
from plait.bench.report.cells import times
from plait.bench.table import REMOVED, Cell, Column, Comparison, Table
from plait.check.options import Options as CheckOptions
from plait.check.options import Seeds, Split
from plait.check.reduce.plan import plan
from plait.kernel.errors import ModelError
from plait.model.system import System
from plait.protocols.mcpaxos import mcpaxos
from plait.protocols.paxos import paxos
from plait.protocols.register_paxos import register_paxos
from plait.protocols.regular_register import regular_register
from plait.protocols.two_phase_commit import two_phase_commit

Model = Callable[[], System]
Run = dict[str, Any]

BOTH = "decomposition,por"
WAYS = {"unreduced": "none", "decomposition": "decomposition", "por": "por", "both": BOTH}
FORMS = {"single messages": False, "quorums": True}
COSTS = {"por": 2, "symmetry": 4}
"""The target for the time per state, as a multiple of the time without reduction."""

SINGLE, SINGLE_STATES = "Paxos (3, 3, 1), single messages", 5_545_233
QUORUM, QUORUM_STATES = "Paxos (3, 4, 1), quorums", 9_129_329
HISTORY_STATES = 97_409_709
"""Single-message Paxos (3, 3, 1) with history: about 40 s and 2.5 GiB."""


COLUMNS = [
    Column("states"),
    Column("time"),
    REMOVED,
    Column("faster"),
    Column("per_state", "per state"),
    Column("cost"),
    Column("full"),
    Column("full_cost", "cost, full"),
    Column("operations", "stack operations", shown=False),
    Column("saved"),
]


def measure(options: Options) -> Table:
    """Measure how much reductions remove, their speed, and the effect of their options."""
    table = Table(
        "reductions",
        "Reductions, one worker",
        COLUMNS,
        "reduction",
        "faster: time without reduction / time with it; per state: time / explored states; cost: time per state /"
        " time per state without reduction; full: time per state in a second search, with full tables; saved: share of stack"
        " operations",
    )
    with table.measuring():
        removed(table, options)
        speed(table, options)
        push_on_stack(table, options)
        infeasible(table, options)
        choices(table, options)
        seeds(table, options)
    return table


def seconds(runs: list[Run]) -> float:
    """The median of the search times."""
    return median([run["seconds"] for run in runs])


def counts(run: Mapping[str, Any]) -> dict[str, Any]:
    """States and time of one check, as cells."""
    return {"states": Cell(run["states"]), "time": Cell(run["seconds"], "s")}


# -- how much is removed ----------------------------------------------------------------------------------------------


class Removed(NamedTuple):
    """A Paxos model, and the targets: shares of its states that decomposition, and both reductions, remove."""

    sizes: tuple[int, int, int]
    quorum: bool
    decomposition: float | None = None
    both: float | None = None


def removed(table: Table, options: Options) -> None:
    """Count states with and without history, and the shares that reductions remove."""
    cases = [Removed((2, 3, 1), False, 0.65, 0.95), Removed((2, 3, 1), True), Removed((3, 3, 1), True)]
    if not options.quick:
        cases.insert(2, Removed((3, 3, 1), False, None, 0.97))
    for case in cases:
        form = "quorums" if case.quorum else "single messages"
        name = f"Paxos {case.sizes}, {form}"
        options.tell(f"states with history: {name}")
        system = partial(paxos, case.sizes[0], case.sizes[1], case.sizes[2], quorum=case.quorum)
        runs = {way: checked(system(), history="last", workers=1, reduce=reduce) for way, reduce in WAYS.items()}
        plain = {"none": checked(system(), workers=1), "por": checked(system(), workers=1, reduce="por")}
        same_verdicts(name, runs | {f"{way}, no history": run for way, run in plain.items()})
        if case.sizes == (3, 3, 1) and not case.quorum:
            same_count(name, runs["unreduced"]["states"], HISTORY_STATES)
        table.raw[f"removed: {name}"] = {"history": runs, "no history": plain}
        base = runs["unreduced"]["states"]
        setting = f"States with history: {name}"
        table.add(setting, "unreduced", **counts(runs["unreduced"]))
        for way, least in {"decomposition": case.decomposition, "por": None, "both": case.both}.items():
            share = 1 - runs[way]["states"] / base
            table.add(
                setting,
                "decomposition and por" if way == "both" else way,
                comparisons=[Comparison("unreduced", share)],
                target="" if least is None else f"≥ {least:.0%} removed",
                met=least is None or share >= least,
                **counts(runs[way]),
            )
        without = "without history"
        share = 1 - plain["por"]["states"] / plain["none"]["states"]
        table.add(setting, without, **counts(plain["none"]))
        table.add(setting, f"{without}, por", comparisons=[Comparison(without, share)], **counts(plain["por"]))


# -- how fast ---------------------------------------------------------------------------------------------------------


def speed(table: Table, options: Options) -> None:
    """Compare the time with and without each reduction, also per explored state.

    The models have 10^6 states and more. On the last ones, por removes little: they show its cost in a bad case.
    """
    por, symmetry = {"por": "por"}, {"symmetry": "symmetry", "por and symmetry": "por,symmetry"}
    compare(table, options, SINGLE, lambda: paxos(3, 3, 1, quorum=False), SINGLE_STATES, por, COSTS)
    compare(table, options, QUORUM, lambda: paxos(3, 4, 1), QUORUM_STATES, por | symmetry, COSTS)
    compare(table, options, "Register Paxos, 3 clients", lambda: register_paxos(3), 1_194_428, por)
    if options.quick:
        return
    compare(table, options, "Two-phase commit, 8", lambda: two_phase_commit(8), 1_745_408, por)
    runs = table.raw[f"removed: {SINGLE}"]["history"]
    ratio = runs["unreduced"]["seconds"] / runs["decomposition"]["seconds"]
    setting = f"Speed: {SINGLE}, with history"
    table.add(setting, "unreduced", **counts(runs["unreduced"]))
    table.add(
        setting,
        "decomposition",
        faster=ratio_of(ratio),
        target="faster > 1 x",
        met=ratio > 1,
        **counts(runs["decomposition"]),
    )


def compare(
    table: Table,
    options: Options,
    name: str,
    system: Model,
    states: int,
    reductions: dict[str, str],
    costs: Mapping[str, float] | None = None,
) -> None:
    """Check a model with and without reductions, in turns."""
    options.tell(f"speed: {name}")
    setting = f"Speed: {name}, {states:,} states"
    ways = {"unreduced": "none"} | reductions
    try:
        runs = interleaved(
            options.times, **{way: partial(_fresh, system, reduce=reduce) for way, reduce in ways.items()}
        )
    except ModelError as error:  # A bug, because the models are correct. Report it, and go on.
        table.add(setting, "a check failed", failed=str(error).splitlines()[0])
        table.raw[f"speed: {name}"] = {"failed": str(error)}
        return
    marginals: dict[str, list[Run]] = {}
    if costs and not options.quick:
        marginals = interleaved(
            options.times, **{way: partial(marginal, system, reduce) for way, reduce in ways.items()}
        )
    table.raw[f"speed: {name}"] = {"check": runs, "marginal": marginals}
    same_count(name, runs["unreduced"][0]["states"], states)
    same_verdicts(name, {way: results[0] for way, results in runs.items()})
    cost = {way: seconds(results) / results[0]["states"] for way, results in runs.items()}
    again = {way: seconds(results) / results[0]["states"] for way, results in marginals.items()}
    for way, results in runs.items():
        faster, dearer = seconds(runs["unreduced"]) / seconds(results), cost[way] / cost["unreduced"]
        most = (costs or {}).get(way)
        reduced = way != "unreduced"
        table.add(
            setting,
            way,
            states=Cell(results[0]["states"]),
            time=Cell(seconds(results), "s"),
            faster=ratio_of(faster) if reduced else None,
            per_state=Cell(cost[way] * 1e6, "µs"),
            cost=ratio_of(dearer) if reduced else None,
            full=Cell(again[way] * 1e6, "µs") if again else None,
            full_cost=ratio_of(again[way] / again["unreduced"]) if again and reduced else None,
            target=("faster > 1 x" + (f", cost ≤ {most} x" if most else "")) if reduced else "",
            met=faster > 1 and (most is None or dearer <= most),
        )
    by_cpu = {way: median([run["cpu"] for run in results]) for way, results in runs.items()}
    faster_by_cpu = ", ".join(f"{way} {times(by_cpu['unreduced'] / by_cpu[way])} x" for way in reductions)
    table.summary.append(f"{name}, speed-up by processor time of the whole check: {faster_by_cpu}.")


def _fresh(system: Model, **options: Any) -> Run:
    return checked(system(), workers=1, **options)


def marginal(system: Model, reduce: str) -> Run:
    """A second search with the same engine. It calls no Python, and por learns nothing new."""
    model = system()
    options = CheckOptions(reduce=reduce, workers=1)
    reductions = plan(model, options)
    runner = reductions.runner(model)
    runner.engine.search(options, por=reductions.por)
    again = runner.engine.search(options, por=reductions.por)
    counted = {name: getattr(again.counters, name) for name in ("states", "transitions", "seconds")}
    return counted | {"passes": again.passes}


# -- selective push-on-stack ------------------------------------------------------------------------------------------


def push_on_stack(table: Table, options: Options) -> None:
    """Compare depth-first search with and without selective push-on-stack (SPoS)."""
    setting = f"Selective push-on-stack, dfs: {SINGLE}"
    options.tell(setting)
    ways: dict[str, Run] = {
        "decomposition, states with history": {"reduce": "decomposition", "history": "last"},
        "por": {"reduce": "por"},
    }
    system = partial(paxos, 3, 3, 1, quorum=False)
    for name, way in ways.items():
        runs = interleaved(
            options.times,
            off=partial(_fresh, system, search="dfs", spos=False, **way),
            on=partial(_fresh, system, search="dfs", spos=True, **way),
        )
        table.raw[f"spos: {name}"] = runs
        off, on = runs["off"][0], runs["on"][0]
        same_verdicts(name, {"off": off, "on": on})
        same_count(f"{name}: states with spos", on["states"], off["states"])
        same_count(
            f"{name}: operations and saved ones",
            on["stack_operations"] + on["stack_operations_saved"],
            off["stack_operations"],
        )
        table.summary.append(
            f"Stack operations, {name}: {off['stack_operations']:,} without SPoS, {on['stack_operations']:,} with it."
        )
        for switch, results in runs.items():
            saved = results[0]["stack_operations_saved"] / off["stack_operations"]
            table.add(
                setting,
                f"{name}: {switch}",
                states=Cell(results[0]["states"]),
                time=Cell(seconds(results), "s"),
                operations=Cell(results[0]["stack_operations"]),
                saved=Cell(saved, "share") if switch == "on" else None,
                faster=ratio_of(seconds(runs["off"]) / seconds(results)) if switch == "on" else None,
            )


# -- the settings of the papers ---------------------------------------------------------------------------------------


def infeasible(table: Table, options: Options) -> None:
    """Search all states, without reduction, of settings where the tool of DBSS was stopped after 192 hours."""
    models: dict[str, tuple[Callable[[bool], System], str]] = {
        "Faulty-Paxos2": (lambda quorum: paxos(3, quorum=quorum, faulty="memory"), "violated"),
        "Register, 5 base objects": (lambda quorum: regular_register(5, quorum=quorum), "holds"),
    }
    for name, (model, verdict) in models.items():
        for form, quorum in FORMS.items():
            options.tell(f"every state: {name}, {form}")
            runs = {
                f"{search}{', with history' if history == 'last' else ''}": checked(
                    model(quorum), search=search, workers=1, keep_going=True, history=history
                )
                for search, history in (("bfs", "none"), ("dfs", "none"), ("bfs", "last"))
                # Single-message Faulty-Paxos2 with history has too many states: more than Paxos, which has 97 million.
                if history == "none" or name != "Faulty-Paxos2" or quorum
            }
            same_verdicts(f"{name}, {form}", runs)
            same_count(f"{name}, {form}: dfs", runs["dfs"]["states"], runs["bfs"]["states"])
            table.raw[f"infeasible: {name}, {form}"] = runs
            setting = f"Every state, unreduced (the tool of DBSS was stopped after 192 hours): {name}, {form}"
            for way, run in runs.items():
                table.add(setting, way, target=verdict, met=run["verdict"] == verdict, **counts(run))


# -- the options of partial-order reduction ---------------------------------------------------------------------------


def choices(table: Table, options: Options) -> None:
    """Compare splits and seeds of partial-order reduction, up to the verdict."""
    models: dict[str, Model] = {"Paxos (3, 3, 1), quorums": lambda: paxos(3)}
    if not options.quick:
        models[QUORUM] = lambda: paxos(3, 4, 1)
    ways = {"unreduced": Run(reduce="none")} | {
        f"{split}, {seed}": Run(reduce="por", split=split, seeds=seed)
        for split in get_args(Split)
        for seed in get_args(Seeds)
    }
    for name, system in models.items():
        options.tell(f"splits and seeds of por: {name}")
        runs = interleaved(options.times, **{way: partial(_fresh, system, **given) for way, given in ways.items()})
        table.raw[f"choices: {name}"] = runs
        same_verdicts(name, {way: results[0] for way, results in runs.items()})
        base = runs["unreduced"]
        for way, results in runs.items():
            states, reduced = results[0]["states"], way != "unreduced"
            table.add(
                f"Splits and seeds of por: {name}",
                way,
                states=Cell(states),
                time=Cell(seconds(results), "s"),
                comparisons=[Comparison("unreduced", 1 - states / base[0]["states"])] if reduced else [],
                faster=ratio_of(seconds(base) / seconds(results)) if reduced else None,
            )


def seeds(table: Table, options: Options) -> None:
    """Compare the two ways to choose a seed, on all states."""
    models: dict[str, Callable[[bool], System]] = {
        "Paxos (2, 3, 1)": lambda quorum: paxos(2, quorum=quorum),
        "Paxos (3, 3, 1)": lambda quorum: paxos(3, quorum=quorum),
        "Register, 5 base objects": lambda quorum: regular_register(5, quorum=quorum),
    }
    if not options.quick:
        models["Faulty-Paxos2"] = lambda quorum: paxos(3, quorum=quorum, faulty="memory")
    cases: dict[str, Model] = {
        f"{name}, {form}": partial(model, quorum) for name, model in models.items() for form, quorum in FORMS.items()
    }
    cases |= {"Paxos of TLA+": mcpaxos, "Register Paxos, 2 clients": register_paxos}
    if not options.quick:
        cases |= {QUORUM: lambda: paxos(3, 4, 1), "Register Paxos, 3 clients": lambda: register_paxos(3)}
    for name, system in cases.items():
        options.tell(f"seeds of por: {name}")
        runs = interleaved(
            options.times,
            **{seed: partial(_fresh, system, reduce="por", seeds=seed, keep_going=True) for seed in get_args(Seeds)},
        )
        table.raw[f"seeds: {name}"] = runs
        same_verdicts(name, {seed: results[0] for seed, results in runs.items()})
        first = next(iter(runs))
        for seed, results in runs.items():
            states, base = results[0]["states"], runs[first][0]["states"]
            table.add(
                f"Seeds of por, all states: {name}",
                seed,
                states=Cell(states),
                time=Cell(seconds(results), "s"),
                comparisons=[] if seed == first else [Comparison(first, 1 - states / base)],
                faster=None if seed == first else ratio_of(seconds(runs[first]) / seconds(results)),
            )
