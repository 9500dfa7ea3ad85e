"""The portfolio: several searches for the same properties, and the first conclusive answer counts.

Enumeration of all states is first: it decides most programs in less than a second, whether their loops end or not. If
it needs longer, others join it: the enumeration of only those steps that can influence a property, and solvers, each in
a process of its own: the encodings `clock` and `steps`, and induction. So a program with few states and long runs is
enumerated, and one with many values of inputs is solved.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from plait.bmc.analysis.ranges import ranges
from plait.bmc.analysis.relevance import relevance
from plait.bmc.execution.interpreter import Interpreter, State, Step
from plait.bmc.execution.native import Enumerated, Enumeration
from plait.bmc.finding import NO_RUN_ENDS, Answer, Costs, Finding, Run, Schedule
from plait.bmc.options import Limits, Options
from plait.bmc.program.definition import DEADLOCK, NEVER, RACES, Program, Property, ended_in, variables_of
from plait.kernel.errors import PlaitError

if TYPE_CHECKING:
    from plait.bmc.worker import SolverProcess

_SLICES, _SOLVERS = 0.3, 1.5
"""Seconds until other searches join the enumeration: of parts of the program, and by solvers."""
_MEMORY = 4 << 30
"""The memory of an enumeration in bytes, without a limit of the user."""
_TURN = 0.1

Progress = Callable[[str], None]


class Portfolio:
    """Decides properties by several searches at the same time."""

    def __init__(self, program: Program, options: Options, limits: Limits, progress: Progress) -> None:
        self.program, self.options, self.limits, self.tell = program, options, limits, progress
        self.interpreter = Interpreter(program, options.width)
        self.costs = Costs()
        self.share = 0.5
        """The largest share of the steps of a program that is enumerated beside the whole program."""
        self.findings: dict[str, Finding] = {}
        """The best finding so far, by property."""
        self.events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.solvers: list[SolverProcess] = []
        self.threads: list[threading.Thread] = []
        self.refusals: list[PlaitError] = []
        """Why searches could not begin: a package that is not installed, for example."""
        self.stopped = threading.Event()

    def decide(self, properties: Sequence[Property]) -> list[Finding]:
        """A finding for each property. Ctrl-C ends the search with what was found so far."""
        self.properties = list(properties)
        try:
            if self.options.encoding == "explicit":
                found = self._enumerate()
                if found.stopped == "inputs":
                    self.interpreter.enumerable()
                self._take_enumeration(found)
            elif self.options.encoding != "auto" or self.options.induction or self.options.solver != "z3":
                self._solve()
            else:
                self._race()
        except KeyboardInterrupt:
            self._give_up("interrupted")
        finally:
            self.stopped.set()
            self._end_solvers()
        self._give_up("timeout" if self.limits.over else "no search decided it")
        return [self.findings[p.name] for p in self.properties]

    def _open(self) -> list[Property]:
        """The properties that are not decided yet, up to the depth that was asked for."""
        return [p for p in self.properties if not self._settled(p)]

    def _settled(self, property_: Property) -> bool:
        finding = self.findings.get(property_.name)
        if finding is None:
            return False
        return finding.conclusive() or (
            self.options.depth is not None and finding.bound == f"depth {self.options.depth}"
        )

    def _give_up(self, bound: str) -> None:
        for property_ in self.properties:
            self.findings.setdefault(property_.name, Finding(property_, None, False, None, bound))

    def _keep(self, finding: Finding) -> None:
        """Keep the better one of two findings for a property: a conclusive one, or the one with the larger depth."""
        old = self.findings.get(finding.property.name)
        if old is not None and (
            old.conclusive() or (not finding.conclusive() and (finding.depth or -1) <= (old.depth or -1))
        ):
            return
        self.findings[finding.property.name] = finding

    # -- all searches --------------------------------------------------------------------------------------------------

    def _race(self) -> None:
        """Enumerate; after a while, start the solvers too."""
        running = self._start(self._enumerate_whole, "explicit")
        started = time.monotonic()
        slicing = solving = False
        while (running or not solving) and self._open() and not self.limits.over:
            waited = time.monotonic() - started
            if not slicing and (not running or waited > _SLICES):
                running |= self._start(self._enumerate_slices, "sliced")
                slicing = True
            if not solving and (not running or waited > _SOLVERS):
                running |= self._start_solvers()
                solving = True
            try:
                source, event = self.events.get(timeout=_TURN)
            except queue.Empty:
                continue
            if event is None:
                running.discard(source)
            else:
                self._take(source, event)
        if self._open() and self.refusals:
            raise self.refusals[0]
        self.stopped.set()
        for thread in self.threads:
            thread.join(1.0)
        while not self.events.empty():  # what the enumeration found at the deadline
            source, event = self.events.get()
            if isinstance(event, Enumerated | Sliced):
                self._take(source, event)

    def _take(self, source: str, event: Any) -> None:
        """Use what a search sent. An exception is a fault of a search, unless it says what the user can do."""
        if isinstance(event, PlaitError):
            self.refusals.append(event)
        elif isinstance(event, BaseException):
            raise event
        elif isinstance(event, Enumerated):
            self._take_enumeration(event)
        elif isinstance(event, Sliced):
            self._take_slice(event)
        elif isinstance(event, Costs):
            self.costs.add(event)
        elif isinstance(event, Answer):
            property_ = next(p for p in self.properties if p.name == event.property)
            run = None if event.run is None else self._executed(event.run)
            self._keep(Finding(property_, run, event.covered, event.depth, event.bound, event.note, source))
        elif isinstance(event, str):
            self.tell(f"{source}: {event}")

    def _start_solvers(self) -> set[str]:
        from plait.bmc.worker import Request, SolverProcess

        base = structs.replace(self.options, encoding="clock")
        strategies = {
            "clock": base,
            "steps": structs.replace(base, encoding="steps"),
            "induction": structs.replace(base, encoding="steps", induction=True),
        }
        names = [p.name for p in self._open()]
        started: set[str] = set()
        for name, options in strategies.items():
            request = Request(self.program, names, options, self.limits.left, self.limits.memory)
            try:
                self.solvers.append(SolverProcess(request, functools.partial(self._receive, name)))
            except RecursionError:
                self._give_up("an expression that is too deep for the solvers")
                return set()
            started.add(name)
        return started

    def _end_solvers(self) -> None:
        for solver in self.solvers:
            solver.end()

    def _receive(self, source: str, event: Any) -> None:
        self.events.put((source, event))

    def _executed(self, schedule: Schedule) -> Run:
        """The run of a schedule, executed by the interpreter. A step that is not enabled is a bug in a search."""
        values, moves = schedule
        start = state = State(tuple(values), (0,) * len(self.program.processes))
        steps: list[Step] = []
        for process, inputs in moves:
            taken = self.interpreter.step(state, process, inputs)
            if taken is None:
                raise AssertionError(f"step {len(steps) + 1} of a run is not enabled")
            steps.append(taken)
            state = taken.state
        return Run(start, steps)

    # -- one search ----------------------------------------------------------------------------------------------------

    def _solve(self) -> None:
        """One search by a solver, in this process."""
        from plait.bmc.search import SolverSearch
        from plait.kernel.deadline import Deadline, OutOfTimeError

        search = SolverSearch(self.program, self.options, self.limits, self.tell)
        for property_ in self.properties:
            try:
                with Deadline(self.limits.left).enforced():
                    self._keep(search.decide(property_)._replace(by=self.options.encoding))
            except OutOfTimeError:
                self._keep(Finding(property_, None, False, search.reached, "timeout"))
            except KeyboardInterrupt:
                self._keep(Finding(property_, None, False, search.reached, "interrupted"))
                break
            finally:
                self.costs.add(search.costs)
                search.costs = Costs()

    def _start(self, search: Callable[[], None], name: str) -> set[str]:
        """Run an enumeration in a thread: native code needs no lock of the interpreter."""

        def work() -> None:
            try:
                search()
            except _Stopped:
                pass
            except BaseException as error:
                self.events.put((name, error))
            finally:
                self.events.put((name, None))

        self.threads.append(threading.Thread(target=work, daemon=True))
        self.threads[-1].start()
        return {name}

    def _enumerate_whole(self) -> None:
        self.events.put(("explicit", self._enumerate()))

    def _enumerate(self) -> Enumerated:
        def told(states: int, depth: int) -> None:
            self.costs.states, self.costs.depth = states, max(self.costs.depth, depth)
            self._go_on(f"enumeration: {states:,} states, depth {depth}")

        names = {p.name for p in self.properties}
        enumeration = Enumeration(
            self.program,
            self.options.width,
            watched=[p.bad for p in self._watched()],
            deadlock=DEADLOCK in names,
            races=RACES in names,
        )
        return self._run(enumeration, told)

    def _go_on(self, progress: str) -> None:
        if self.stopped.is_set():
            raise _Stopped
        self.tell(progress)

    def _run(self, enumeration: Enumeration, told: Callable[[int, int], None]) -> Enumerated:
        return enumeration.run(
            deadline=self.limits.deadline,
            memory=self.limits.memory or _MEMORY,
            depth=self.options.depth,
            progress=told,
        )

    def _enumerate_slices(self) -> None:
        """Enumerate only the steps that can influence a property, if these are at most half of the program.

        A run of these steps is a run of the program, and every violation has one (Saissi 2019, Theorem 5). This is how
        projections pay: threads and work at the end of threads that do not matter cost no states.
        """
        known = ranges(self.program, None, self.options.width)
        for property_ in self._open():
            part = relevance(self.program, known, variables_of(property_.bad), ended_in(property_.bad)).program
            if _size(part) > _size(self.program) * self.share:
                continue

            def told(states: int, depth: int, name: str = property_.name) -> None:
                self._go_on(f"enumeration of what influences {name}: {states:,} states, depth {depth}")

            found = self._run(Enumeration(part, self.options.width, watched=[property_.bad]), told)
            self.events.put(("sliced", Sliced(property_, found)))

    def _take_slice(self, found: Sliced) -> None:
        property_, result = found
        run = result.found[0]
        if run is not None:
            executed = self._executed((run.start.values, run.steps))
            self._keep(Finding(property_, executed, False, len(run.steps), None, by="sliced"))
        elif result.stopped is None:
            note = f"in all {result.states:,} states of the steps that can influence it"
            self._keep(Finding(property_, None, True, result.depth, None, note, "sliced"))

    def _watched(self) -> list[Property]:
        """The properties that are conditions on single states."""
        return [p for p in self.properties if p.name not in (DEADLOCK, RACES)]

    def _take_enumeration(self, found: Enumerated) -> None:
        """Use the result of the enumeration."""
        costs = self.costs
        costs.encodings.add("explicit")
        costs.states, costs.transitions, costs.final_states = found.states, found.transitions, found.ended
        costs.depth = max(costs.depth, found.depth)
        runs = {p.name: run for p, run in zip(self._watched(), found.found, strict=True)}
        runs[DEADLOCK], runs[RACES] = found.deadlock, None if found.race is None else found.race.run
        for property_ in self.properties:
            run = runs[property_.name]
            if run is not None:
                executed = self._executed((run.start.values, run.steps))
                self._keep(Finding(property_, executed, False, len(run.steps), None, by="explicit"))
            elif found.stopped is None:
                vacuous = property_.kind == "final" and not found.ended
                note = NO_RUN_ENDS if vacuous else f"in all {found.states:,} states"
                self._keep(Finding(property_, None, True, found.depth, None, note, "explicit"))
            else:
                bound = f"depth {self.options.depth}" if found.stopped == "depth" else STOPPED[found.stopped]
                self._keep(Finding(property_, None, False, found.depth, bound, by="explicit"))


STOPPED = {
    "timeout": "timeout",
    "memory": "memory",
    "states": "the limit of states",
    "numbers": "a number that does not fit in 64 bits",
    "inputs": "an input with too many values to enumerate",
    "condition": "a property with an index out of range",
}
"""Why an enumeration ended before all states were found."""


class Sliced(NamedTuple):
    """The enumeration of the steps that can influence a property."""

    property: Property
    found: Enumerated


def _size(program: Program) -> int:
    """The number of steps that can be taken."""
    return sum(NEVER not in step.body for code in program.processes for step in code.instructions)


class _Stopped(Exception):  # noqa: N818 - it is no error
    """The enumeration is not needed any more."""
