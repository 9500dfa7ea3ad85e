"""Bounded model checking with increasing depth.

The search ends when it decides the property, when the depth covers all runs, or when it reaches a limit.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from plait.bmc.analysis.loops import idle_loop
from plait.bmc.analysis.ranges import Ranges, ranges
from plait.bmc.analysis.relevance import relevance
from plait.bmc.analysis.width import fits
from plait.bmc.encoding.clock import ClockEncoding
from plait.bmc.encoding.induction import Induction
from plait.bmc.encoding.smt import Formula, TooLargeError
from plait.bmc.encoding.solvers import Solver, decide
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.encoding.z3_solver import Answer
from plait.bmc.execution.explicit import Enumeration
from plait.bmc.execution.interpreter import Interpreter
from plait.bmc.execution.tracing import trace
from plait.bmc.execution.walks import walk
from plait.bmc.finding import Finding, Run, steps_text
from plait.bmc.program.definition import (
    Action,
    Branch,
    Constant,
    Expr,
    Operation,
    Program,
    Property,
    Require,
    Value,
    cases,
    ended_in,
    joined,
    variables_of,
)
from plait.kernel.deadline import Deadline, OutOfTimeError
from plait.kernel.errors import Argument, UsageError
from plait.kernel.verdict import FormulaStatistics, PropertyResult, Statistics, Status, Verdict

Encoding = Literal["auto", "steps", "clock", "explicit"]
Projection = Literal["auto", "on", "off"]

_FIRST, _GROWTH = 8, 1.6
"""Iterative deepening: the first depth, and the factor from one depth to the next."""
_WALKS = 20


class Limits(NamedTuple):
    """The limits of time and memory."""

    deadline: float | None = None
    memory: int | None = None

    @property
    def left(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.deadline is None else max(0.05, self.deadline - time.monotonic())

    @property
    def over(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline


def check(
    program: Program,
    *,
    depth: int | None = None,
    encoding: Encoding = "auto",
    projection: Projection = "auto",
    order: bool = True,
    properties: Sequence[str] | None = None,
    width: int | None = None,
    induction: bool = False,
    solver: Solver = "z3",
    timeout: float | None = None,
    memory: int | None = None,
    full: bool = False,
    cover: bool = True,
    seed: int = 0,
    target: str | None = None,
    parameters: Mapping[str, str | Value] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Check the properties of a program.

    Without `cover`, the search does not find out whether longer runs exist. `seed` is the random seed of the solver.

    >>> from plait.bmc import parse_program
    >>> check(parse_program("int x = 0; process p { x = x + 1; } always small: x < 1;")).status
    'violated'
    """
    for name, value, kinds in (
        ("encoding", encoding, Encoding),
        ("projection", projection, Projection),
        ("solver", solver, Solver),
    ):
        if value not in get_args(kinds):
            raise UsageError((Argument(name, value), " does not fit"), hint=f"use one of {', '.join(get_args(kinds))}")
    if depth is not None and depth < 0:
        raise UsageError((Argument("depth", depth), " is negative"), hint="give 0 or more")
    chosen, clock = _chosen(program, properties), Deadline(timeout)
    search = _Search(program, depth, encoding, projection, order, width, induction, solver, progress)
    search.cover, search.seed = cover, seed
    search.limits = Limits(None if timeout is None else time.monotonic() + timeout, memory)
    findings: list[Finding] = []
    try:
        with clock.enforced():
            _prepare(search, chosen)
    except OutOfTimeError:
        findings = [Finding(property_, None, False, None, "timeout") for property_ in chosen]
    for property_ in chosen if not findings else ():
        try:
            with clock.enforced():
                findings.append(search.decide(property_))
        except KeyboardInterrupt:
            findings.append(Finding(property_, None, False, search.reached, "interrupted"))
        except OutOfTimeError:
            findings.append(Finding(property_, None, False, search.reached, "timeout"))
        if findings[-1].bound == "interrupted":
            break
    return search.verdict(findings, chosen, clock.elapsed, target or program.name, parameters or {}, full)


def _prepare(search: _Search, chosen: list[Property]) -> None:
    """Refuse a program that cannot be checked like this."""
    program, depth, induction, encoding = search.program, search.depth, search.induction, search.encoding
    fits(program, search.width)
    endless = depth is None and not induction and encoding != "explicit"
    if endless and (loop := idle_loop(program)) is not None and None in map(search.longest_projection, chosen):
        raise UsageError(
            f"{program.source.name}, line {loop.place.line}: {loop.label} can repeat forever without progress. "
            "So no depth covers all runs",
            hint=(
                "set ",
                Argument("depth", 20),
                ", try ",
                Argument("induction", True),
                " or ",
                Argument("encoding", "explicit"),
                ", or replace the loop by assume(…);",
            ),
        )
    if not search.begins():
        raise UsageError(
            f"{program.name} has no initial state",
            hint="its init conditions contradict each other or the range of a variable: correct one of them",
        )


def formula(
    program: Program,
    depth: int,
    property_name: str | None = None,
    encoding: Encoding = "auto",
    projection: Projection = "auto",
    order: bool = True,
    width: int | None = None,
) -> str:
    """The formula as SMT-LIB text. It is satisfiable if a run of at most `depth` steps decides the property."""
    chosen = _chosen(program, None if property_name is None else [property_name])[0]
    fits(program, width)
    search = _Search(program, depth, encoding, projection, order, width, False, "z3", lambda _: None)
    built = search.encode(chosen.condition, depth)
    return built.f.text([built.evaluate(chosen.bad)])


def _chosen(program: Program, names: Sequence[str] | None) -> list[Property]:
    known = ", ".join(p.name for p in program.properties) or "none"
    for name in names or ():
        if program.find(name) is None:
            raise UsageError(f"{program.name} has no property {name!r}", hint=f"its properties are: {known}")
    chosen = [p for p in program.properties if not names or p.name in names]
    if not chosen:
        raise UsageError(f"{program.name} has no property", hint="add always name: condition; or assert(condition);")
    return chosen


class _Search:
    """Decides the properties, one at a time."""

    def __init__(
        self,
        program: Program,
        depth: int | None,
        encoding: Encoding,
        projection: Projection,
        order: bool,
        width: int | None,
        induction: bool,
        solver: Solver,
        progress: Callable[[str], None],
    ) -> None:
        self.program, self.depth, self.encoding, self.projection = program, depth, encoding, projection
        self.order, self.width, self.induction, self.solver, self.tell = order, width, induction, solver, progress
        self.interpreter = Interpreter(program, width)
        self.limits = Limits()
        self.total = program.longest
        self.reached: int | None = None
        """The largest depth that is decided for the current property."""
        self.cover = True
        """Whether to find out if longer runs exist."""
        self.seed = 0
        self.covering: dict[int, bool | None] = {}
        self.longest: dict[Property, int | None] = {}
        self.build = self.solve = 0.0
        self.work = self.queries = self.size = self.states = self.transitions = self.deepest = 0
        self.used: set[str] = set()
        self.bits: set[int | None] = set()

    def begins(self) -> bool:
        """Whether an initial state exists. After a timeout, the answer is yes."""
        if not self.program.initial:
            return True
        known, bits = self._numbers(0)
        start = StepsEncoding(self.program, 0, known, bits)
        return self._decide(start.f, []).outcome != "unsat"

    def decide(self, property_: Property) -> Finding:
        """Look for a run that decides a property, with increasing depth."""
        self.reached = None
        if self.encoding == "explicit":
            return self._explicit(property_)
        for depth in self._depths():
            self.tell(f"{property_.name}: depth {depth}")
            answer, run = self.query(property_, depth)
            if answer.outcome not in ("sat", "unsat"):
                bound = answer.reason if answer.outcome == "unknown" else answer.outcome
                return Finding(property_, None, False, self.reached, bound or "the solver gave up")
            self.reached = depth
            self.deepest = max(self.deepest, depth)
            if run is not None:
                return Finding(property_, run, False, depth, None)
            if self._covered(depth):
                return Finding(property_, None, True, depth, None)
            if self.cover and (most := self.longest_projection(property_)) is not None and most <= depth:
                note = f"in all runs: projections have at most {steps_text(most)}" if most else "no step can change it"
                return Finding(property_, None, True, depth, None, note)
            if self.induction and (property_.kind != "reachable"):
                self.tell(f"{property_.name}: induction at depth {depth}")
                proof = self._induction.holds(property_.condition, depth)
                if proof.outcome == "unsat":
                    return Finding(property_, None, True, depth, None, f"by induction over {steps_text(depth)}")
            if self.limits.over:
                return Finding(property_, None, False, depth, "timeout")
        return Finding(property_, None, False, self.depth or 0, f"depth {self.depth}")

    def _depths(self) -> Sequence[int] | _Deeper:
        if self.depth is not None:
            return [self.depth] if not self.induction else [*range(1, self.depth), self.depth]
        return _Deeper(self.total, self.induction)

    @functools.cached_property
    def _induction(self) -> Induction:
        return Induction(self.program, self.width, self._decide, self.limits.left)

    # -- queries -------------------------------------------------------------------------------------------------------

    def encode(self, relevant: Expr, depth: int, *, exact: bool = False) -> StepsEncoding | ClockEncoding:
        """The formula of runs of at most `depth` steps; with `exact`, of exactly `depth` steps."""
        known, bits = self._numbers(depth)
        self.bits.add(bits)
        projected = self.projection != "off" and not exact
        kind = self.encoding if self.encoding != "auto" else automatic(self.program)
        self.used.add(kind)
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
            ordered=self.order and not exact,
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
        except TooLargeError:
            other = "a smaller depth" if "steps" in self.used else "the encoding steps"
            return Answer("unknown", {}, 0.0, f"a formula that is too large (try {other})"), None
        finally:
            self.build += time.process_time() - start
        goal = encoding.evaluate(case)
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
        self.queries += 1
        self.size = max(self.size, f.assertions)
        answer = decide(text, self.solver, timeout=self.limits.left, memory=self.limits.memory, seed=self.seed)
        self.build += answer.reading
        self.solve += answer.seconds - answer.reading
        self.work += answer.work
        return answer

    def _covered(self, depth: int) -> bool:
        """Whether no run has more than `depth` steps."""
        if self.total is not None and depth >= self.total:
            return True
        if not self.cover:
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
        self.build += time.process_time() - start
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

    def _explicit(self, property_: Property) -> Finding:
        enumeration = Enumeration(self.program, self.width)
        self.used.add("explicit")
        start = time.process_time()
        try:
            for layer in enumeration.layers(self.limits.deadline, None):
                self.reached = layer.depth
                for state in layer.states:
                    if self.interpreter.evaluate(property_.bad, state):
                        first, moves = enumeration.path(state)
                        steps, now = [], first
                        for process, inputs in moves:
                            taken = self.interpreter.step(now, process, inputs)
                            assert taken is not None
                            steps.append(taken)
                            now = taken.state
                        return Finding(property_, Run(first, steps), False, self.reached, None)
                if layer.depth == self.depth:
                    more = any(True for s in layer.states for _ in self.interpreter.successors(s))
                    return Finding(property_, None, not more, self.reached, f"depth {self.depth}" if more else None)
            return Finding(property_, None, True, self.reached, None, f"in all {len(enumeration.parents):,} states")
        except TimeoutError:
            return Finding(property_, None, False, self.reached, "timeout")
        finally:
            self.states = max(self.states, len(enumeration.parents))
            self.transitions = max(self.transitions, enumeration.transitions)
            self.deepest = max(self.deepest, self.reached or 0)
            self.solve += time.process_time() - start

    # -- the verdict ---------------------------------------------------------------------------------------------------

    def verdict(
        self,
        findings: list[Finding],
        chosen: list[Property],
        seconds: float,
        target: str,
        parameters: Mapping[str, str | Value],
        full: bool,
    ) -> Verdict:
        results: list[PropertyResult] = []
        for finding in findings:
            shown, length = None, 0
            if finding.run is not None:
                start, steps = finding.run
                shown = trace(self.interpreter, target, parameters, finding.property, start, steps, full=full)
                length = len(steps) if full else len(shown)
            name, kind = finding.property.name, finding.property.kind
            results.append(PropertyResult(name, kind, finding.status(), finding.text(length), shown))
        undecided = [p for p in chosen if p.name not in {r.name for r in results}]
        results += [PropertyResult(p.name, p.kind, "inconclusive", "not checked") for p in undecided]
        bad = next((r for r in results if r.status == "violated"), None)
        bounds = [f.bound for f in findings if f.bound]
        bound = next((b for b in bounds if not b.startswith("depth")), bounds[0] if bounds else None)
        status: Status = "violated" if bad else "inconclusive" if any(r.status != "holds" for r in results) else "holds"
        first = bad or next((r for r in results if r.trace is not None), None)
        return Verdict(
            status=status,
            statistics=self._statistics(seconds),
            properties=results,
            model=target,
            property=bad.name if bad else None,
            message=f"{bad.name} is violated" if bad else self._message(findings, status),
            bound=None if status == "holds" else bound,
            trace=first.trace if first else None,
        )

    def _message(self, findings: list[Finding], status: Status) -> str | None:
        if status != "inconclusive":
            return None
        depths = [f.depth for f in findings if f.status() == "inconclusive"]
        if None in depths or not depths:
            return "not all properties were checked"
        least = min(depth for depth in depths if depth is not None)
        return f"all runs of at most {steps_text(least)} were checked; longer runs may exist"

    def _statistics(self, seconds: float) -> Statistics:
        width = f"{self.width} bits, wrapping around"
        if self.width is None:
            widest = max((b for b in self.bits if b is not None), default=None)
            fit = f"all fit in {widest} bits" if widest is not None and None not in self.bits else "of any size"
            width = f"mathematical ({fit})" if self.bits else "mathematical"
        explicit = self.encoding == "explicit"
        return Statistics(
            states=self.states,
            transitions=self.transitions,
            terminal_states=0,
            depth=self.deepest,
            seconds=seconds,
            python_calls=0,
            search="bmc",
            workers=1,
            formula=FormulaStatistics(
                encoding=", ".join(sorted(self.used)) or self.encoding,
                projection=self.projection != "off" and not explicit,
                integers=width,
                solver="none" if explicit else self.solver,
                queries=self.queries,
                assertions=self.size,
                build_seconds=self.build,
                solve_seconds=self.solve,
                work=self.work,
            ),
        )


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
    return "steps" if any(_waits(step.body) for code in program.processes for step in code.instructions) else "clock"


def _waits(actions: Sequence[Action]) -> bool:
    return any(
        isinstance(a, Require) or (isinstance(a, Branch) and (_waits(a.then) or _waits(a.otherwise))) for a in actions
    )
