"""k-induction: if a condition holds in k consecutive states, starting at any state, it holds in the next state.

The base case is that no violation occurs within k steps; the search has shown it before. Both together are a proof for
runs of any length. The states of the path are pairwise different: a run that repeats a state has a shorter run to the
same end. The first state satisfies the known facts about all reachable states: ranges of numbers, and invariants.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.bmc.analysis.invariants import invariants
from plait.bmc.analysis.ranges import ranges
from plait.bmc.encoding.smt import Formula, Term, TooLargeError
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.encoding.z3_solver import Answer
from plait.bmc.program.arithmetic import negate
from plait.bmc.program.definition import Expr, Program

Decide = Callable[[Formula, list[Term]], Answer]


class Induction:
    """Proofs about one program."""

    def __init__(self, program: Program, width: int | None, decide: Decide, timeout: float | None) -> None:
        self.program, self.decide = program, decide
        self.known = ranges(program, None, width)
        self.bits = self.known.bits if width is None else width
        self.invariants = invariants(program, self.known, self.bits, width, timeout)

    def holds(self, condition: Expr, depth: int) -> Answer:
        """unsat, if no path of `depth` + 1 steps exists in which only the last state violates the condition."""
        try:
            f, goal = self._path(condition, depth)
        except TooLargeError as error:
            return Answer("unknown", {}, 0.0, str(error) or "a formula that is too large")
        return self.decide(f, [goal])

    def _path(self, condition: Expr, depth: int) -> tuple[Formula, Term]:
        path = StepsEncoding(self.program, depth + 1, self.known, self.bits, arbitrary=True, exact=True, ordered=False)
        f = path.f
        for guess in self.invariants:
            f.add(guess.term(f, path.moments[0]))
        for moment in path.moments[:-1]:
            f.add(path.evaluate(condition, moment))
        for i, one in enumerate(path.moments):
            for two in path.moments[:i]:
                f.add(path.differs(one, two))
        return f, path.evaluate(negate(condition))
