"""k-induction: what holds in k states in a row, from whichever state on, holds in the next one.

Together with the base (no violation within k steps, which the search has shown before) that is a proof for runs of any
length. States of the path are pairwise different: a run with a repetition has a shorter one to the same end. What is known
of every reachable state is assumed of the first one: ranges of numbers, and invariants.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.bmc.analysis.invariants import invariants
from plait.bmc.analysis.ranges import ranges
from plait.bmc.encoding.smt import Formula, Term
from plait.bmc.encoding.solver import Answer
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.language.expressions import negate
from plait.bmc.language.program import Expr, Program

Decide = Callable[[Formula, list[Term]], Answer]


class Induction:
    """Proofs about one program."""

    def __init__(self, program: Program, width: int | None, decide: Decide, timeout: float | None) -> None:
        self.program, self.decide = program, decide
        self.known = ranges(program, None, width)
        self.bits = self.known.bits if width is None else width
        self.invariants = invariants(program, self.known, self.bits, width, timeout)

    def holds(self, condition: Expr, depth: int) -> Answer:
        """Whether there is no path of `depth` + 1 steps in which only the last state violates the condition: then unsat."""
        path = StepsEncoding(self.program, depth + 1, self.known, self.bits, arbitrary=True, exact=True, ordered=False)
        f = path.f
        for guess in self.invariants:
            f.add(guess.term(f, path.moments[0]))
        for moment in path.moments[:-1]:
            f.add(path.evaluate(condition, moment))
        for i, one in enumerate(path.moments):
            for two in path.moments[:i]:
                f.add(path.differs(one, two))
        return self.decide(f, [path.evaluate(negate(condition))])
