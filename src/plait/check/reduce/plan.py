"""Which reductions to apply: the requested ones that are sound here, and why not the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from plait.check.cover.recorder import Recorder
from plait.check.live.search import assumed, engine_fairness
from plait.check.options import Native, Options, ReductionName
from plait.check.reduce.asymmetry import AsymmetryError
from plait.check.reduce.decomposition import Decomposition, decompose
from plait.check.runner import Runner
from plait.kernel.errors import Argument, UsageError
from plait.kernel.verdict import Reduction
from plait.model.clock import tick
from plait.model.fairness import Fairness
from plait.model.process import Process, Recovery
from plait.model.refinement import Refinement
from plait.model.system import System, plays
from plait.model.temporal import Formula, Next, Temporal

_SUITS = {
    "decomposition": ("bfs", "dfs"),
    "por": ("bfs", "dfs"),
    "symmetry": ("bfs", "dfs"),
    "dpor": ("stateless",),
}
"""The searches that a reduction can be applied to."""
_NEEDS = {
    "decomposition": "it merges states in the visited set",
    "por": "its cycle proviso needs the visited set; the stateless search has dpor instead",
    "symmetry": "it merges states in the visited set",
    "dpor": "it is the partial-order reduction of the stateless search; bfs and dfs have por instead",
}
_STEPS = {
    "decomposition": "the reduction merges states that the mapping may tell apart",
    "por": "the reduction leaves out steps",
    "symmetry": "the reduction exchanges processes, and the mapping may tell them apart",
    "dpor": "the reduction leaves out steps",
}
"""Why a reduction is not applied to a refinement."""

MOST_PERMUTED = 5040
"""The permutations of seven processes. With more, partial-order reduction would tabulate too many images of local states."""


_MAILBOX = "the network is a mailbox: two messages that are sent to one process do not commute"
"""Why models with mailboxes are searched without partial-order reduction."""
_NO_DPOR = "the model has clocks, and a tick depends on the steps of all processes"
"""Why models with clocks are searched without dynamic partial-order reduction."""


class Plan(NamedTuple):
    """The reductions of one check."""

    decomposition: Decomposition | None
    por: bool
    symmetry: list[list[int]]
    """Positions of processes that may be permuted, per class."""
    rotations: list[list[int]]
    """Positions of processes that form rings."""
    dpor: bool
    history: bool
    """Whether each process remembers the messages of its last step. Decomposition drops them: nothing depends on them."""
    reductions: list[Reduction]
    native: Native = "auto"
    """Whether the model runs as native code."""

    def outcome(self, given_up: str | None, sampled: bool) -> list[Reduction]:
        """The reductions that were applied, from what the engine says.

        It switches partial-order reduction off if it gains nothing, and verifies a symmetry with very many images in part.
        """
        found = {r.name: r for r in self.reductions}
        if given_up is not None:
            found["por"] = Reduction("por", False, given_up)
        if sampled and "symmetry" in found:
            reason = f"{found['symmetry'].reason}; verified on a sample of images, because there are too many"
            found["symmetry"] = Reduction("symmetry", True, reason)
        return list(found.values())

    def runner(self, system: System, recorder: Recorder | None = None) -> Runner:
        """A runner of the System with these reductions."""
        return Runner(
            system,
            self.decomposition,
            history=self.history,
            symmetry=self.symmetry,
            rotations=self.rotations,
            recorder=recorder,
            foresee=self.por,
            native=self.native,
        )


def plan(
    system: System,
    options: Options,
    temporal: Sequence[Temporal] = (),
    refinements: Sequence[Refinement] = (),
    *,
    asymmetry: AsymmetryError | None = None,
) -> Plan:
    """Decide which reductions to apply. If a named reduction cannot be applied, raise a UsageError with the reason.

    `temporal` and `refinements` are the properties of these kinds. `asymmetry` is what an earlier search with these
    options has found: then symmetry is not applied if it was only considered, and else the error is raised again.
    """
    search, history = options.search, options.history
    asked, automatic = options.reductions
    if asymmetry is not None and not automatic:
        raise asymmetry
    decided: list[Reduction] = []

    def decide(name: ReductionName, unable: str | None, applied: str) -> bool:
        rival = {"por": "dpor", "dpor": "por"}.get(name, "")
        if name not in asked or (automatic and search not in _SUITS[name] and search in _SUITS.get(rival, ())):
            return False
        hint: tuple[Any, ...] = ("leave it out, or use ", Argument("reduce", "auto"))
        if search not in _SUITS[name]:
            if name == "dpor":
                hint = ("use ", Argument("search", "stateless"), ", or leave it out")
            elif search in _SUITS.get(rival, ()):
                hint = ("use ", Argument("reduce", rival), ", or leave it out")
            unable = f"cannot be used with the {search} search: {_NEEDS[name]}"
        elif refinements:
            unable = f"{refinements[0].name} is a refinement, which is about each step: {_STEPS[name]}"
        if unable is not None and not automatic:
            raise UsageError((Argument("reduce", name), f": {unable}"), hint=hint)
        decided.append(Reduction(name, unable is None, applied if unable is None else unable))
        return unable is None

    decomposition = None
    if "decomposition" in asked and not refinements and search in _SUITS["decomposition"]:
        decomposition = decompose(system, options.decomposition)
    summary = [decomposition.summary] if decomposition else []
    summary += ["the last messages of each process are dropped"] if history == "last" else []
    nothing = "every field is relevant (to see why: plait show, option decomposition)"
    if options.decomposition == "declared":
        nothing = "no field is declared aux(…)"
    if decomposition and options.native == "only":
        summary, nothing = [], "cannot be used if the model runs natively only: it keeps auxiliary fields in Python"
    if not decide("decomposition", None if summary else nothing, "; ".join(summary)):
        decomposition = None
    symmetry, rotations = _symmetric(system), [system.members(role) for role in system.rotations]
    permutations = math.prod(math.factorial(len(positions)) for positions in symmetry)
    turns = math.prod(map(len, rotations))
    unable = None
    if not symmetry and not rotations:
        unable = "no role with two processes is declared symmetric: System(..., symmetric=[Role])"
    if decomposition is not None and decomposition.audited:
        unable = "some aux fields are not proven, and the audit of these fields "
        unable += "does not support symmetry"
    mailbox = system.network.kind == "mailbox"
    if mailbox:
        unable = unable or "the network is a mailbox, which symmetry does not support"
    if unable is None:
        unable = _keeps_names_apart(system, temporal, symmetry + rotations)
    if unable is None and asymmetry is not None:
        unable = asymmetry.message
    parts = [f"{permutations:,} permutations of {_listed(system, symmetry)}"] if symmetry else []
    parts += [f"{turns:,} rotations of {_listed(system, rotations)}"] if rotations else []
    orders = _keeps_time_apart(system, temporal) or _keeps_orders_apart(system, temporal)
    if "symmetry" in asked and unable is None and search in _SUITS["symmetry"] and permutations * turns > MOST_PERMUTED:
        orders = (
            orders or f"symmetry is applied, with more than {MOST_PERMUTED:,} permutations, which por does not support"
        )
    por = decide("por", _MAILBOX if mailbox else orders, "stubborn sets over transition classes")
    if not decide("symmetry", unable, ", ".join(parts)):
        symmetry, rotations = [], []
    bounded = f"the System has the bound {system.within.name}, which dpor does not support" if system.within else None
    unable = _NO_DPOR if system.ticking else _MAILBOX if mailbox else bounded
    dpor = decide("dpor", unable, "persistent sets and sleep sets")
    dropped = any(r.name == "decomposition" and r.applied for r in decided)
    return Plan(
        decomposition, por, symmetry, rotations, dpor, history == "last" and not dropped, decided, options.native
    )


def _keeps_time_apart(system: System, temporal: Sequence[Temporal]) -> str | None:
    """Why the clocks of a model keep partial-order reduction from being applied (docs/internals/time.md)."""
    if not system.ticking:
        return None
    if temporal:
        return (
            f"the model has clocks, and {temporal[0].name} is about whole runs: the reduction is proven for states only"
        )
    if not any(handler.urgent for cls in system.classes for handler in cls.__plait_handlers__):
        return (
            "the model has clocks and no urgent step: a tick is possible in every state, and depends on all processes"
        )
    return None


def _keeps_orders_apart(system: System, temporal: Sequence[Temporal]) -> str | None:
    """Why a temporal property needs all orders of steps, or None if it does not (docs/internals/liveness.md)."""
    for prop in temporal:
        if _has_next(prop.formula):
            return f"{prop.name} uses X (next), and the reduction changes which step is next"
        given = assumed(system, prop)
        if given and (reason := _needs_fair_order(system, given)):
            return f"{prop.name} assumes {reason}"
    return None


def _needs_fair_order(system: System, given: Sequence[Fairness]) -> str | None:
    """Why the reduction may leave out all fair runs, as the rest of a sentence; None if it does not.

    Fairness of whole processes does not depend on the order of independent steps: a process that can act stays able to,
    until it acts. All processes must be fair, so that the reduction adds no steps to a run.
    """
    lost = "and the reduction may leave out the fair run"
    for one in given:
        if one.role is None:
            return f"{one}, {lost}: it keeps fairness of whole processes only, such as weak(everybody)"
    if system.network.lossy and system.network.losses is None:
        return f"{given[0]} on a network that loses any number of messages, {lost}: a loss can disable a process"
    if system.network.capacity is not None:
        return f"{given[0]} on a network with a capacity, {lost}: a full channel can disable a process"
    if system.cells:
        return f"{given[0]} in a system with shared state, {lost}: a step can disable the steps of another process"
    if any(system.spare.values()):
        return f"{given[0]} in a system with spare slots, {lost}: a process that spawns can disable another"
    roles = [one.role for one in given if one.role is not None and not isinstance(one.of, Recovery)]
    for cls, pid in zip(system.classes, system.pids, strict=True):
        acts = any(handler.kind in ("action", "message") for handler in cls.__plait_handlers__)
        if acts and not any(plays(cls, role) for role in roles):
            return f"{given[0]}, but no fairness of {pid!r}, {lost}: all processes must be fair, as in weak(everybody)"
    return None


def _has_next(formula: Formula) -> bool:
    return isinstance(formula, Next) or any(_has_next(part) for part in formula.parts)


def _keeps_names_apart(system: System, temporal: Sequence[Temporal], symmetry: list[list[int]]) -> str | None:
    """Why a temporal property must distinguish the processes, or None if it need not."""
    permuted = {position for positions in symmetry for position in positions}
    for prop in temporal:
        for one in assumed(system, prop):
            if one.of is tick and not system.drift:
                continue  # permutations do not change the one tick of all processes
            places = [position for _, some, _ in engine_fairness(system, [one]) for position, _ in some]
            if one.by_message:
                return f"{prop.name} assumes {one} for each message, and the reduction exchanges messages"
            if permuted & set(places):
                role = system.classes[min(permuted & set(places))].__name__
                return f"{prop.name} assumes {one} for each {role}, and the reduction exchanges them"
    return None


def _listed(system: System, together: list[list[int]]) -> str:
    return ", ".join(f"{len(positions)} {system.classes[positions[0]].__name__}" for positions in together)


def _symmetric(system: System) -> list[list[int]]:
    """The processes that may be permuted, by class. Processes of one role may differ in class, if one is faulty."""
    alike: dict[type[Process], list[int]] = {}
    for role in system.symmetric:
        for position in system.members(role):
            members = alike.setdefault(system.classes[position], [])
            if position not in members:
                members.append(position)
    return [members for members in alike.values() if len(members) > 1]
