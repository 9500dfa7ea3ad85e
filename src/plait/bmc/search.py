"""The search by a solver, with increasing depth.

It ends when it decides the property, when the depth covers all runs, or when it reaches a limit. `portfolio.py` runs
several of these searches beside the enumeration of states.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import structs

from plait.bmc.analysis.ranges import Ranges, ranges
from plait.bmc.analysis.relevance import relevance
from plait.bmc.encoding.clock import ClockEncoding, supports
from plait.bmc.encoding.induction import Induction
from plait.bmc.encoding.smt import Formula, TooLargeError
from plait.bmc.encoding.solvers import decide
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.encoding.z3_solver import Answer
from plait.bmc.execution.interpreter import Interpreter
from plait.bmc.execution.walks import walk
from plait.bmc.finding import NO_RUN_ENDS, Costs, Finding, Run, steps_text
from plait.bmc.options import Limits, Options
from plait.bmc.program.definition import (
    Action,
    Branch,
    Constant,
    Ended,
    Expr,
    Operation,
    Program,
    Property,
    Require,
    cases,
    ended_in,
    joined,
    variables_of,
)

_FIRST, _GROWTH = 8, 1.6
"""Iterative deepening: the first depth, and the factor from one depth to the next."""
_WALKS = 20


class SolverSearch:
    """Decides properties with a solver, one at a time."""

    def __init__(
        self, program: Program, options: Options, limits: Limits, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self.program, self.options, self.limits, self.tell = program, options, limits, progress
        self.width = options.width
        self.projection = (
            "off" if any(i.exclusive for c in program.processes for i in c.instructions) else options.projection
        )
        """Projections of runs with atomic sections are not runs: a section could be cut off in the middle."""
        self.interpreter = Interpreter(program, options.width)
        self.total = program.longest
        self.reached: int | None = None
        """The largest depth that is decided for the current property."""
        self.covering: dict[int, bool | None] = {}
        self.longest: dict[Property, int | None] = {}
        self.costs = Costs()

    def begins(self) -> bool:
        """Whether an initial state exists. If this is not known, the answer is yes."""
        if not self.program.initial:
            return True
        known, bits = self._numbers(0)
        try:
            start = StepsEncoding(self.program, 0, known, bits)
        except TooLargeError:
            return True
        return self._decide(start.f, []).outcome != "unsat"

    def decide(self, property_: Property) -> Finding:
        """Look for a run that decides a property, with increasing depth."""
        self.reached = None
        for depth in self._depths():
            self.tell(f"{property_.name}: depth {depth}")
            answer, run = self.query(property_, depth)
            if answer.outcome not in ("sat", "unsat"):
                bound = answer.reason if answer.outcome == "unknown" else answer.outcome
                return Finding(property_, None, False, self.reached, bound or "the solver gave up")
            before: int | None = self.reached
            self.reached = depth
            self.costs.depth = max(self.costs.depth, depth)
            if run is not None:
                if self.options.shortest:
                    run = self._shortest(property_, run, before or 0)
                return Finding(property_, run, False, depth, None)
            if self._covered(depth):
                return Finding(property_, None, True, depth, None, self._vacuous(property_, depth))
            if self.options.cover and (most := self.longest_projection(property_)) is not None and most <= depth:
                note = f"in all runs: projections have at most {steps_text(most)}" if most else "no step can change it"
                return Finding(property_, None, True, depth, None, note)
            if self.options.induction and (property_.kind != "reachable"):
                self.tell(f"{property_.name}: induction at depth {depth}")
                proof = self._induction.holds(property_.condition, depth)
                if proof.outcome == "unsat":
                    return Finding(property_, None, True, depth, None, f"by induction over {steps_text(depth)}")
            if self.limits.over:
                return Finding(property_, None, False, depth, "timeout")
        return Finding(property_, None, False, self.options.depth or 0, f"depth {self.options.depth}")

    def _shortest(self, property_: Property, run: Run, decided: int) -> Run:
        """A shortest run, given one, and a depth at which there is none."""
        low, high = decided, len(run.steps)
        while low + 1 < high and not self.limits.over:
            middle = (low + high) // 2
            self.tell(f"{property_.name}: shorter than {steps_text(high)}")
            answer, shorter = self.query(property_, middle)
            if shorter is not None:
                run, high = shorter, len(shorter.steps)
            elif answer.outcome == "unsat":
                low = middle
            else:
                break
        return run

    def _vacuous(self, property_: Property, depth: int) -> str:
        """For a `final` property that holds in all runs: a note if no run ends."""
        if property_.kind != "final":
            return ""
        done: Expr = joined([Ended(p) for p in range(len(self.program.processes))], functools.partial(Operation, "&&"))
        answer, _ = self._query(structs.replace(property_, kind="reachable", condition=done), done, depth)
        return NO_RUN_ENDS if answer.outcome == "unsat" else ""

    def _depths(self) -> Sequence[int] | _Deeper:
        if self.options.depth is not None:
            return (
                [self.options.depth]
                if not self.options.induction
                else [*range(1, self.options.depth), self.options.depth]
            )
        return _Deeper(self.total, self.options.induction)

    @functools.cached_property
    def _induction(self) -> Induction:
        return Induction(self.program, self.width, self._decide, self.limits.left)

    # -- queries -------------------------------------------------------------------------------------------------------

    def encode(self, relevant: Expr, depth: int, *, exact: bool = False) -> StepsEncoding | ClockEncoding:
        """The formula of runs of at most `depth` steps; with `exact`, of exactly `depth` steps."""
        known, bits = self._numbers(depth)
        self.costs.bits.add(bits)
        projected = self.projection != "off" and not exact
        kind = self.options.encoding if self.options.encoding in ("steps", "clock") else automatic(self.program)
        self.costs.encodings.add(kind)
        if kind == "clock":
            return ClockEncoding(
                self.program, depth, known, bits, relevant=[relevant], projection=projected, exact=exact
            )
        return StepsEncoding(
            self.program,
            depth,
            known,
            bits,
            relevant=[relevant],
            projection="none" if not projected else "later" if self.projection == "on" else "sliced",
            ordered=self.options.order and not exact,
            exact=exact,
        )

    def _numbers(self, depth: int) -> tuple[Ranges, int | None]:
        """The ranges of numbers within a depth, and the number of bits for them in the formula."""
        known = ranges(self.program, depth, self.width)
        return known, known.bits if self.width is None else self.width

    def query(self, property_: Property, depth: int) -> tuple[Answer, Run | None]:
        """Whether a run of at most `depth` steps decides a property, and the run.

        Projections on fewer variables are smaller. So if the property has several cases, the first case has a query of
        its own: if the processes are alike, this case represents all cases. The other cases follow in one more query.
        """
        if self.projection == "off":
            return self._query(property_, property_.bad, depth)
        first, *others = cases(property_.bad)
        answer, run = self._query(property_, first, depth)
        if not others or answer.outcome != "unsat":
            return answer, run
        return self._query(property_, joined(others, functools.partial(Operation, "||")), depth)

    def _query(self, property_: Property, case: Expr, depth: int) -> tuple[Answer, Run | None]:
        start = time.process_time()
        try:
            encoding = self.encode(case, depth)
            goal = encoding.evaluate(case)
        except TooLargeError as error:
            other = "a smaller depth" if "steps" in self.costs.encodings else "the encoding steps"
            return Answer("unknown", {}, 0.0, str(error) or f"a formula that is too large (try {other})"), None
        finally:
            self.costs.build += time.process_time() - start
        if goal is False:
            return Answer("unsat", {}, 0.0), None  # known without a solver
        answer = self._decide(encoding.f, [goal])
        if answer.outcome != "sat":
            return answer, None
        first, steps = encoding.decode(answer.model).run(self.interpreter)
        if not self.interpreter.evaluate(property_.bad, steps[-1].state if steps else first):
            raise AssertionError(f"the solver's run does not decide {property_.name}")
        return answer, Run(first, steps)

    def _decide(self, f: Formula, goal: list[str | bool | int]) -> Answer:
        text = f.text(goal)
        self.costs.queries += 1
        self.costs.assertions = max(self.costs.assertions, f.assertions)
        answer = decide(
            text, self.options.solver, timeout=self.limits.left, memory=self.limits.memory, seed=self.options.seed
        )
        self.costs.build += answer.reading
        self.costs.solve += answer.seconds - answer.reading
        self.costs.work += answer.work
        return answer

    def _covered(self, depth: int) -> bool:
        """Whether no run has more than `depth` steps."""
        if self.total is not None and depth >= self.total:
            return True
        if not self.options.cover:
            return False
        if depth not in self.covering:
            self.covering[depth] = self._no_longer_run(depth)
        return bool(self.covering[depth])

    def _no_longer_run(self, depth: int) -> bool:
        dice = random.Random(0)
        for _ in range(_WALKS):
            # In most cases a random walk finds a longer run. Then no query is necessary.
            if sum(1 for _ in walk(self.interpreter, dice, depth + 1)) > depth + 1:
                return False
        start = time.process_time()
        try:
            encoding = self.encode(Constant(True), depth + 1, exact=True)
        except TooLargeError:
            return False
        self.costs.build += time.process_time() - start
        return self._decide(encoding.f, []).outcome == "unsat"

    def longest_projection(self, property_: Property) -> int | None:
        """The maximal length of a projection on the variables of a property, in runs of any length. None: not known."""
        if self.projection == "off":
            return None
        if property_ not in self.longest:
            lengths = [self._left(case).longest for case in cases(property_.bad)]
            known = [n for n in lengths if n is not None]
            self.longest[property_] = max(known) if len(known) == len(lengths) else None
        return self.longest[property_]

    def _left(self, case: Expr) -> Program:
        """The relevant part of the program for one case, for runs of any length (with failures beyond the depth)."""
        return relevance(self.program, self._unbounded, variables_of(case), ended_in(case)).program

    @functools.cached_property
    def _unbounded(self) -> Ranges:
        return ranges(self.program, None, self.width)


class _Deeper:
    """Increasing depths. If `total` is given, it is the last one, and covers all runs."""

    def __init__(self, total: int | None, every: bool) -> None:
        self.total, self.every = total, every

    def __iter__(self) -> Iterator[int]:
        depth = 1 if self.every else _FIRST
        while self.total is None or depth < self.total:
            yield depth
            depth = depth + 1 if self.every else int(depth * _GROWTH)
        yield self.total


def automatic(program: Program) -> Literal["steps", "clock"]:
    """The encoding that was faster in measurements: `steps` if processes wait for each other, else `clock`."""
    waits = any(_waits(step.body) for code in program.processes for step in code.instructions)
    return "steps" if waits or not supports(program) else "clock"


def _waits(actions: Sequence[Action]) -> bool:
    return any(
        isinstance(a, Require) or (isinstance(a, Branch) and (_waits(a.then) or _waits(a.otherwise))) for a in actions
    )
