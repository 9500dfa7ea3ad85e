"""What reductions remove, what they cost, and whether they are faster. (`plait bench dbss` has Table I of paper 000.)

`history="last"` makes what each process consumed last part of the state, as the papers' tool does. It is the base there,
so it is the base of the shares here; the states without it stand beside, because that is what Plait explores by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, get_args

from plait.bench.engine.common import (
    MILLION,
    Section,
    Settings,
    checked,
    interleaved,
    median,
    same_count,
    same_verdicts,
    times,
)
from plait.check.options import Options, Seeds, Split
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
"""The most that a state may cost, as a multiple of one without reduction."""

SINGLE, SINGLE_STATES = "Paxos (3, 3, 1), single messages", 5_545_233
QUORUM, QUORUM_STATES = "Paxos (3, 4, 1), quorums", 9_129_329
HISTORY_STATES = 97_409_709
"""Single-message Paxos (3, 3, 1) with history: some 40 s and 2.5 GiB."""


def run(settings: Settings) -> Section:
    section = Section("Reductions: one worker")
    removed(section, settings)
    speed(section, settings)
    push_on_stack(section, settings)
    infeasible(section, settings)
    choices(section, settings)
    seeds(section, settings)
    return section


def heading(section: Section, text: str) -> None:
    section.add(f"[bold]{text}[/]", "")


def share(states: int, base: int) -> str:
    return f"{1 - states / base:.1%} removed"


def with_seconds(run: Mapping[str, Any]) -> str:
    return f"{run['states']:,} states, {run['seconds']:.2f} s"


def seconds(runs: list[Run]) -> float:
    return median([run["seconds"] for run in runs])


# -- how much is removed ----------------------------------------------------------------------------------------------


class Removed(NamedTuple):
    """A Paxos, and the shares of its states that decomposition and both reductions have to remove."""

    sizes: tuple[int, int, int]
    quorum: bool
    decomposition: float | None = None
    both: float | None = None


def removed(section: Section, settings: Settings) -> None:
    cases = [Removed((2, 3, 1), False, 0.65, 0.95), Removed((2, 3, 1), True), Removed((3, 3, 1), True)]
    if not settings.quick:
        cases.insert(2, Removed((3, 3, 1), False, None, 0.97))
    heading(section, "States with history")
    for case in cases:
        form = "quorums" if case.quorum else "single messages"
        name = f"Paxos {case.sizes}, {form}"
        system = partial(paxos, case.sizes[0], case.sizes[1], case.sizes[2], quorum=case.quorum)
        runs = {way: checked(system(), history="last", workers=1, reduce=reduce) for way, reduce in WAYS.items()}
        plain = {"none": checked(system(), workers=1), "por": checked(system(), workers=1, reduce="por")}
        same_verdicts(name, runs | {f"{way}, no history": run for way, run in plain.items()})
        if case.sizes == (3, 3, 1) and not case.quorum:
            same_count(name, runs["unreduced"]["states"], HISTORY_STATES)
        section.raw[f"removed: {name}"] = {"history": runs, "no history": plain}
        base = runs["unreduced"]["states"]
        section.add(name, with_seconds(runs["unreduced"]))
        for way, least in {"decomposition": case.decomposition, "por": None, "both": case.both}.items():
            states = runs[way]["states"]
            section.add(
                f"  {'decomposition and por' if way == 'both' else way}",
                with_seconds(runs[way]),
                ratio=share(states, base),
                target="" if least is None else f"≥ {least:.0%}",
                met=None if least is None else 1 - states / base >= least,
            )
        without = plain["none"]["states"]
        section.add("  without history", with_seconds(plain["none"]))
        section.add("    por", with_seconds(plain["por"]), ratio=share(plain["por"]["states"], without))


# -- how fast ---------------------------------------------------------------------------------------------------------


def speed(section: Section, settings: Settings) -> None:
    """Each reduction against none, and the time for a state that it explores against that of a state without it.

    The models are of 10^6 states and more. On the last ones por has little to remove: they show what it costs then.
    """
    por, symmetry = {"por": "por"}, {"symmetry": "symmetry", "por and symmetry": "por,symmetry"}
    compare(section, settings, SINGLE, lambda: paxos(3, 3, 1, quorum=False), SINGLE_STATES, por, COSTS)
    compare(section, settings, QUORUM, lambda: paxos(3, 4, 1), QUORUM_STATES, por | symmetry, COSTS)
    compare(section, settings, "Register Paxos, 3 clients", lambda: register_paxos(3), 1_194_428, por)
    if settings.quick:
        return
    compare(section, settings, "Two-phase commit, 8", lambda: two_phase_commit(8), 1_745_408, por)
    runs = section.raw[f"removed: {SINGLE}"]["history"]
    ratio = runs["unreduced"]["seconds"] / runs["decomposition"]["seconds"]
    heading(section, f"{SINGLE}, with history")
    section.add("unreduced", with_seconds(runs["unreduced"]))
    section.add("decomposition", with_seconds(runs["decomposition"]), ratio=times(ratio), target="> 1 x", met=ratio > 1)


def compare(
    section: Section,
    settings: Settings,
    name: str,
    system: Model,
    states: int,
    reductions: dict[str, str],
    costs: Mapping[str, float] | None = None,
) -> None:
    ways = {"unreduced": "none"} | reductions
    try:
        runs = interleaved(
            settings.repeats,
            **{way: lambda reduce=reduce: checked(system(), workers=1, reduce=reduce) for way, reduce in ways.items()},
        )
    except ModelError as error:  # Of these models none is at fault: the row says what happened, and the others go on.
        heading(section, f"{name}, {states:,} states")
        section.add("a check failed", str(error).splitlines()[0], target="> 1 x", met=False)
        section.raw[f"speed: {name}"] = {"failed": str(error)}
        return
    marginals: dict[str, list[Run]] = {}
    if costs and not settings.quick:
        marginals = interleaved(
            settings.repeats, **{way: lambda reduce=reduce: marginal(system(), reduce) for way, reduce in ways.items()}
        )
    section.raw[f"speed: {name}"] = {"check": runs, "marginal": marginals}
    same_count(name, runs["unreduced"][0]["states"], states)
    same_verdicts(name, {way: results[0] for way, results in runs.items()})
    cost = {way: seconds(results) / results[0]["states"] for way, results in runs.items()}
    heading(section, f"{name}, {states:,} states")
    base = seconds(runs["unreduced"])
    section.add("unreduced", f"{base:.2f} s, {cost['unreduced'] * MILLION:.2f} µs a state")
    for way in reductions:
        found, taken = runs[way][0]["states"], seconds(runs[way])
        ratio = base / taken
        section.add(way, f"{found:,} states, {taken:.2f} s", ratio=times(ratio), target="> 1 x", met=ratio > 1)
        most = (costs or {}).get(way)
        ratio = cost[way] / cost["unreduced"]
        section.add(
            "  time for a state it explores",
            f"{cost[way] * MILLION:.2f} µs",
            ratio=times(ratio),
            target="" if most is None else f"≤ {most} x",
            met=None if most is None else ratio <= most,
        )
        if marginals:
            again = {each: seconds(marginals[each]) / marginals[each][0]["states"] for each in ("unreduced", way)}
            ratio = again[way] / again["unreduced"]
            section.add("    when the tables are full", f"{again[way] * MILLION:.2f} µs", ratio=times(ratio))
    by_cpu = {way: median([run["cpu"] for run in results]) for way, results in runs.items()}
    faster = ", ".join(f"{way} {times(by_cpu['unreduced'] / by_cpu[way])}" for way in reductions)
    section.notes.append(f"{name}, by processor time of the whole check, against unreduced: {faster}.")


def marginal(system: System, reduce: str) -> Run:
    """A second search with the same engine: Python is not asked again, and por has nothing left to learn."""
    options = Options(reduce=reduce, workers=1)
    reductions = plan(system, options)
    runner = reductions.runner(system)
    runner.search(options, por=reductions.por)
    found = runner.search(options, por=reductions.por)
    return {name: found[name] for name in ("states", "transitions", "seconds", "passes")}


# -- selective push-on-stack ------------------------------------------------------------------------------------------


def push_on_stack(section: Section, settings: Settings) -> None:
    heading(section, f"Selective push-on-stack, dfs: {SINGLE}")
    options: dict[str, Run] = {
        "decomposition, of states with history": {"reduce": "decomposition", "history": "last"},
        "por": {"reduce": "por"},
    }
    for name, option in options.items():
        runs = interleaved(
            settings.repeats,
            off=partial(checked, paxos(3, 3, 1, quorum=False), search="dfs", workers=1, spos=False, **option),
            on=partial(checked, paxos(3, 3, 1, quorum=False), search="dfs", workers=1, spos=True, **option),
        )
        section.raw[f"spos: {name}"] = runs
        off, on = runs["off"][0], runs["on"][0]
        same_verdicts(name, {"off": off, "on": on})
        same_count(f"{name}: states with spos", on["states"], off["states"])
        same_count(
            f"{name}: operations and saved ones",
            on["stack_operations"] + on["stack_operations_saved"],
            off["stack_operations"],
        )
        section.add(f"{name}: off", f"{off['stack_operations']:,} operations, {seconds(runs['off']):.2f} s")
        saved = on["stack_operations_saved"] / off["stack_operations"]
        section.add(
            "  on",
            f"{on['stack_operations']:,} operations, {seconds(runs['on']):.2f} s",
            ratio=f"{saved:.1%} saved, {times(seconds(runs['off']) / seconds(runs['on']))}",
        )


# -- the settings of the papers ---------------------------------------------------------------------------------------


def infeasible(section: Section, settings: Settings) -> None:
    """Where the tool of paper 000 was stopped after 192 hours: every state, no reduction."""
    heading(section, "Every state, unreduced, where the tool of paper 000 was stopped after 192 hours")
    models: dict[str, tuple[Callable[[bool], System], str]] = {
        "Faulty-Paxos2": (lambda quorum: paxos(3, quorum=quorum, faulty="memory"), "violated"),
        "Register, 5 base objects": (lambda quorum: regular_register(5, quorum=quorum), "holds"),
    }
    for name, (model, verdict) in models.items():
        for form, quorum in FORMS.items():
            runs = {
                f"{search}{', with history' if history == 'last' else ''}": checked(
                    model(quorum), search=search, workers=1, keep_going=True, history=history
                )
                for search, history in (("bfs", "none"), ("dfs", "none"), ("bfs", "last"))
                # Single-message Faulty-Paxos2 with history has more states than Paxos, which has 97 million.
                if history == "none" or name != "Faulty-Paxos2" or quorum
            }
            same_verdicts(f"{name}, {form}", runs)
            same_count(f"{name}, {form}: dfs", runs["dfs"]["states"], runs["bfs"]["states"])
            section.raw[f"infeasible: {name}, {form}"] = runs
            for way, found in runs.items():
                met = found["verdict"] == verdict
                section.add(f"{name}, {form}: {way}", with_seconds(found), target=verdict, met=met)


# -- the options of partial-order reduction ---------------------------------------------------------------------------


def choices(section: Section, settings: Settings) -> None:
    models: dict[str, Model] = {"Paxos (3, 3, 1), quorums": lambda: paxos(3)}
    if not settings.quick:
        models[QUORUM] = lambda: paxos(3, 4, 1)
    ways = {"unreduced": Run(reduce="none")} | {
        f"{split}, {seed}": Run(reduce="por", split=split, seeds=seed)
        for split in get_args(Split)
        for seed in get_args(Seeds)
    }
    for name, system in models.items():
        heading(section, f"Splits and seeds of por: {name}")
        runs = interleaved(
            settings.repeats,
            **{
                way: lambda option=option, system=system: checked(system(), workers=1, **option)
                for way, option in ways.items()
            },
        )
        section.raw[f"choices: {name}"] = runs
        same_verdicts(name, {way: results[0] for way, results in runs.items()})
        base = runs["unreduced"]
        for way, results in runs.items():
            found, taken = results[0]["states"], seconds(results)
            ratio = f"{share(found, base[0]['states'])}, {times(seconds(base) / taken)}"
            section.add(way, f"{found:,} states, {taken:.2f} s", ratio="" if way == "unreduced" else ratio)


def seeds(section: Section, settings: Settings) -> None:
    heading(section, "Seeds of por, all states: fewest / instance")
    models: dict[str, Callable[[bool], System]] = {
        "Paxos (2, 3, 1)": lambda quorum: paxos(2, quorum=quorum),
        "Paxos (3, 3, 1)": lambda quorum: paxos(3, quorum=quorum),
        "Register, 5 base objects": lambda quorum: regular_register(5, quorum=quorum),
    }
    if not settings.quick:
        models["Faulty-Paxos2"] = lambda quorum: paxos(3, quorum=quorum, faulty="memory")
    cases: dict[str, Model] = {
        f"{name}, {form}": lambda model=model, quorum=quorum: model(quorum)  # type: ignore[misc]
        for name, model in models.items()
        for form, quorum in FORMS.items()
    }
    cases |= {"Paxos of TLA+": mcpaxos, "Register Paxos, 2 clients": register_paxos}
    if not settings.quick:
        cases |= {QUORUM: lambda: paxos(3, 4, 1), "Register Paxos, 3 clients": lambda: register_paxos(3)}
    for name, system in cases.items():
        runs = interleaved(
            settings.repeats,
            **{
                seed: lambda seed=seed, system=system: checked(
                    system(), workers=1, reduce="por", seeds=seed, keep_going=True
                )
                for seed in get_args(Seeds)
            },
        )
        section.raw[f"seeds: {name}"] = runs
        fewest, instance = runs["fewest"], runs["instance"]
        same_verdicts(name, {"fewest": fewest[0], "instance": instance[0]})
        states = instance[0]["states"] / fewest[0]["states"]
        section.add(
            name,
            " / ".join(f"{results[0]['states']:,} in {seconds(results):.2f} s" for results in (fewest, instance)),
            ratio=f"states {times(states)}, time {times(seconds(instance) / seconds(fewest))}",
        )
