"""Checking by rounds for any number of phases: some phases are searched, and the rest is proven."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Unpack

import msgspec

from plait.check.options import Changes, Options, options_from
from plait.check.progress import Progress
from plait.kernel.deadline import Deadline
from plait.kernel.errors import Argument, UsageError
from plait.kernel.verdict import PropertyResult, Reduction, Verdict
from plait.model.system import System, selected, with_properties
from plait.rounds.check import check_rounds
from plait.rounds.sequential import PHASES
from plait.rounds.unbounded.proof import Proof, prove


def check_any_phases(
    system: System,
    options: Options | None = None,
    *,
    assume: str = "none",
    progress: Callable[[Progress], None] | None = None,
    **changes: Unpack[Changes],
) -> Verdict:
    """Check a System by rounds, for any number of phases.

    First, a few phases are searched. If they violate nothing, a proof is looked for that no number of phases does. Without
    a proof the verdict is that of the phases that were searched, and says why there is none.
    """
    options = options_from(changes, options, "check_any_phases()")
    if assume != "none":
        raise UsageError(
            (
                Argument("assume", assume),
                ": a proof for any number of phases needs a network that may lose any message",
            ),
            hint=("leave ", Argument("assume"), " out, or give ", Argument("phases"), " a number"),
        )
    clock = Deadline(options.timeout)
    system = with_properties(system, selected(system, options.properties))
    options = dataclasses.replace(options, properties=None)
    searched = check_rounds(system, options, phases=PHASES, progress=progress)
    claims = any(r.kind == "always" and r.status == "holds" for r in searched.properties)
    if searched.status == "violated" or searched.bound is None or not claims:
        return searched
    if searched.message is not None or searched.bound.startswith("an undecided condition"):
        return searched
    proof = prove(system, timeout=clock.left)
    told = Reduction("phases", proof.why_not is None, _told(proof))
    reductions = [*searched.statistics.reductions, told]
    searched = msgspec.structs.replace(
        searched, statistics=msgspec.structs.replace(searched.statistics, reductions=reductions)
    )
    if proof.why_not is not None:
        return searched
    results = [_unbounded(result) for result in searched.properties]
    decided = all(r.status != "inconclusive" for r in results)
    return msgspec.structs.replace(
        searched,
        properties=results,
        status="holds" if decided else "inconclusive",
        bound=None if decided else searched.bound,
    )


def _told(proof: Proof) -> str:
    if proof.why_not is not None:
        return f"not shown for any number of phases: {proof.why_not}"
    return f"any number of phases: {proof.states:,} states between rounds, up to the numbers of the phases"


def _unbounded(result: PropertyResult) -> PropertyResult:
    if result.kind != "always":
        return result
    return msgspec.structs.replace(result, note="in any number of phases")
