"""k-induction: what holds in k states in a row, from whichever state on, holds in the next one.

Together with the base (no violation within k steps, which the search has shown before) that is a proof for runs of any
length. States of the path are pairwise different: a run with a repetition has a shorter one to the same end. What the
analysis of ranges knows is assumed of the first state.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.bmc.expressions import negate
from plait.bmc.program import Expr, Program
from plait.bmc.ranges import ranges
from plait.bmc.smt import Formula, Term
from plait.bmc.solver import Answer
from plait.bmc.steps import StepsEncoding


def holds_inductively(
    program: Program,
    condition: Expr,
    depth: int,
    width: int | None,
    decide: Callable[[Formula, list[Term]], Answer],
) -> Answer:
    """Whether there is no path of `depth` + 1 steps in which only the last state violates the condition: then unsat."""
    known = ranges(program, None, width)
    bits = known.bits if width is None else width
    path = StepsEncoding(program, depth + 1, known, bits, arbitrary=True, exact=True, ordered=False)
    f = path.f
    for moment in path.moments[:-1]:
        f.add(path.evaluate(condition, moment))
    for i, one in enumerate(path.moments):
        for two in path.moments[:i]:
            f.add(path.differs(one, two))
    return decide(f, [path.evaluate(negate(condition))])
