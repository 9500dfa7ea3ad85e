"""Which reductions to apply: the requested ones that are sound here, and why not the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from plait.check.cover.recorder import Recorder
from plait.check.live.search import assumed, engine_fairness
from plait.check.options import Options, ReductionName
from plait.check.reduce.decomposition import Decomposition, decompose
from plait.check.runner import Runner
from plait.kernel.errors import Argument, UsageError
from plait.kernel.verdict import Reduction
from plait.model.process import Process
from plait.model.system import System
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

MOST_IMAGES = 5040
"""The permutations of seven processes. More permutations cost more time than they save."""


class Plan(NamedTuple):
    """The reductions of one check."""

    decomposition: Decomposition | None
    por: bool
    symmetry: list[list[int]]
    """Positions of processes that may be permuted, per class."""
    dpor: bool
    history: bool
    """Whether each process remembers the messages of its last step. Decomposition drops them: nothing depends on them."""
    reductions: list[Reduction]

    @property
    def images(self) -> int:
        """The number of images of a state under the permutations."""
        return _images(self.symmetry)

    def outcome(self, given_up: str | None) -> list[Reduction]:
        """The reductions that were applied: the engine switches partial-order reduction off if it gains nothing."""
        if given_up is None:
            return self.reductions
        return [Reduction("por", False, given_up) if r.name == "por" else r for r in self.reductions]

    def runner(self, system: System, recorder: Recorder | None = None) -> Runner:
        """A runner of the System with these reductions."""
        runner = Runner(system, self.decomposition, history=self.history, symmetry=self.symmetry, recorder=recorder)
        runner.tabulation.foresee(self.por)
        return runner


def plan(system: System, options: Options, temporal: Sequence[Temporal] = ()) -> Plan:
    """Decide which reductions to apply. If a named reduction cannot be applied, raise a UsageError with the reason.

    `temporal` are the temporal properties.
    """
    search, history = options.search, options.history
    asked, automatic = options.reductions
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
        if unable is not None and not automatic:
            raise UsageError((Argument("reduce", name), f": {unable}"), hint=hint)
        decided.append(Reduction(name, unable is None, applied if unable is None else unable))
        return unable is None

    decomposition = None
    if "decomposition" in asked and search in _SUITS["decomposition"]:
        decomposition = decompose(system, options.decomposition)
    summary = [decomposition.summary] if decomposition else []
    summary += ["the last messages of each process are dropped"] if history == "last" else []
    nothing = "every field is relevant (to see why: plait show, option decomposition)"
    if options.decomposition == "declared":
        nothing = "no field is declared aux(…)"
    if not decide("decomposition", None if summary else nothing, "; ".join(summary)):
        decomposition = None
    por = decide("por", _keeps_orders_apart(system, temporal), "stubborn sets over transition classes")
    symmetry = _symmetric(system)
    images = _images(symmetry)
    roles = ", ".join(f"{len(positions)} {system.classes[positions[0]].__name__}" for positions in symmetry)
    unable = None if symmetry else "no role with two processes is declared symmetric: System(..., symmetric=[Role])"
    if decomposition is not None and decomposition.audited:
        unable = "some aux fields are not proven, and the audit of these fields "
        unable += "does not support symmetry"
    if symmetry and unable is None:
        unable = _keeps_names_apart(system, temporal, symmetry)
    if images > MOST_IMAGES:
        unable = f"a state has {images:,} images ({roles}), more than {MOST_IMAGES:,}"
    if not decide("symmetry", unable, f"{images:,} permutations of {roles}"):
        symmetry = []
    dpor = decide("dpor", None, "persistent sets and sleep sets")
    dropped = any(r.name == "decomposition" and r.applied for r in decided)
    return Plan(decomposition, por, symmetry, dpor, history == "last" and not dropped, decided)


def _keeps_orders_apart(system: System, temporal: Sequence[Temporal]) -> str | None:
    """Why a temporal property needs all orders of steps, or None if it does not (docs/guides/liveness.md)."""
    for prop in temporal:
        if _has_next(prop.formula):
            return f"{prop.name} uses X (next), and the reduction changes which step is next"
        for one in assumed(system, prop):
            return f"{prop.name} assumes {one}, and the reduction may leave out the fair run"
    return None


def _has_next(formula: Formula) -> bool:
    return isinstance(formula, Next) or any(_has_next(part) for part in formula.parts)


def _keeps_names_apart(system: System, temporal: Sequence[Temporal], symmetry: list[list[int]]) -> str | None:
    """Why a temporal property must distinguish the processes, or None if it need not."""
    permuted = {position for positions in symmetry for position in positions}
    for prop in temporal:
        for one in assumed(system, prop):
            places = [position for _, some, _ in engine_fairness(system, [one]) for position, _ in some]
            if one.by_message:
                return f"{prop.name} assumes {one} for each message, and the reduction exchanges messages"
            if permuted & set(places):
                role = system.classes[min(permuted & set(places))].__name__
                return f"{prop.name} assumes {one} for each {role}, and the reduction exchanges them"
    return None


def _images(symmetry: list[list[int]]) -> int:
    return math.prod(math.factorial(len(positions)) for positions in symmetry)


def _symmetric(system: System) -> list[list[int]]:
    """The processes that may be permuted, by class. Processes of one role may differ in class, if one is faulty."""
    alike: dict[type[Process], list[int]] = {}
    for role in system.symmetric:
        for position in system.members(role):
            members = alike.setdefault(system.classes[position], [])
            if position not in members:
                members.append(position)
    return [members for members in alike.values() if len(members) > 1]
