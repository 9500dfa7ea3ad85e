"""Static relevance: the steps that can be in a projection (Saissi 2019, section 4.4.2), known before solving.

The analysis starts at the end of a path. The last step writes a cell of F. Every earlier step writes a cell of F, or
comes before a kept step of the same process, or writes a variable that a later kept step reads. The last step of each
process writes a cell of F, or a variable that another process reads. The constraint C_F says the same, but one step at
a time.

A step has two outcomes: it continues, or it fails (an assertion, an index out of range) and its process is stuck. A
step that fails writes a flag. It does not read the array whose index is out of range, and skips the rest of its
actions.

Projections are not defined for programs with atomic sections of several steps: a step that leaves a section must not
be omitted. All their steps are kept. If a step reads the program counter of a process, all steps of it are kept too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import structs

from plait.bmc.analysis.failures import expressions, fails_inside, failures, reads_of
from plait.bmc.analysis.ranges import Ranges
from plait.bmc.analysis.unused_assignments import without_unused_assignments
from plait.bmc.program.definition import (
    NEVER,
    Action,
    Branch,
    Ensure,
    Instruction,
    Program,
    Require,
    Set,
    Variable,
    accesses,
    distances,
    ended_in,
)

Place = tuple[int, int]
"""A process and a location."""
_FAR = 1 << 30


class Way(NamedTuple):
    """A step at a location with its outcome: it continues, or it fails."""

    process: int
    location: int
    fails: bool


def relevance(program: Program, ranges: Ranges, relevant: set[Variable], watched: set[int]) -> Relevance:
    """Analyse a program, and remove steps that are in no projection and assignments whose values are never used.

    Processes, locations and variables do not change: a run of the reduced program is a run of the program.
    """
    processes = watched_processes(program, watched)
    while True:
        found = Relevance(program, ranges, relevant, processes)
        smaller = without_unused_assignments(found.sliced(), ranges, relevant)
        if _bodies(smaller) == _bodies(program):
            return found
        program = smaller


def watched_processes(program: Program, counters: set[int]) -> set[int]:
    """The processes of which every step matters, if a property reads these program counters."""
    return set(range(len(program.processes))) if any(exclusive(program)) else counters | counted(program)


def exclusive(program: Program) -> list[frozenset[int]]:
    """For each process, its locations inside of atomic sections of several steps."""
    return [frozenset(step.location for step in code.instructions if step.exclusive) for code in program.processes]


def counted(program: Program) -> set[int]:
    """The processes whose program counters are read by steps."""
    return set().union(*(_counted(step.body) for code in program.processes for step in code.instructions))


def _counted(actions: tuple[Action, ...]) -> set[int]:
    found: set[int] = set()
    for action in actions:
        found = found.union(*map(ended_in, expressions(action)))
        if isinstance(action, Branch):
            found |= _counted(action.then) | _counted(action.otherwise)
    return found


def _bodies(program: Program) -> list[list[tuple[Action, ...]]]:
    return [[step.body for step in code.instructions] for code in program.processes]


class Relevance:
    """Possible reads and writes of the steps of a program, for variables F and processes whose counters are in F."""

    def __init__(self, program: Program, ranges: Ranges, relevant: set[Variable], watched: set[int]) -> None:
        self.program, self.ranges, self.relevant, self.watched = program, ranges, relevant, watched
        self.reads: dict[Way, set[Variable]] = {}
        self.writes: dict[Way, set[Variable]] = {}
        for p, code in enumerate(program.processes):
            for step in code.instructions:
                going, failing = Way(p, step.location, False), Way(p, step.location, True)
                if NEVER not in step.body:
                    self.reads[going], self.writes[going] = accesses(step.body)
                if any(failures(action, ranges) for action in step.body):
                    self.reads[failing], self.writes[failing] = self._failing(step)

    def _failing(self, step: Instruction) -> tuple[set[Variable], set[Variable]]:
        """The variables that a failing step can read and write."""
        reads: set[Variable] = set()
        writes: set[Variable] = set()
        for n, action in enumerate(step.body):
            flags = failures(action, self.ranges)
            if not flags:
                continue
            read, written = accesses(step.body[:n])
            own_reads, own_writes = accesses((action,))
            if not fails_inside(action, self.ranges):
                own_reads, own_writes = own_reads - self._missed(action), set()
            reads |= read | own_reads
            writes |= written | own_writes | {v for v in self.program.variables if v.hidden and v.name in flags}
        return reads, writes

    def _missed(self, action: Action) -> set[Variable]:
        """The array that a failing action does not read: the one of its only access that can be out of range."""
        if isinstance(action, Ensure) or (isinstance(action, Set) and not self.ranges.safe(action)):
            return set()
        reads = [read for e in expressions(action) for read in reads_of(e)]
        loose = [read for read in reads if not self.ranges.safe(read)]
        if len(loose) == 1 and sum(read.variable is loose[0].variable for read in reads) == 1:
            return {loose[0].variable}
        return set()

    def _matters(self, way: Way, read: set[Variable]) -> bool:
        return way.process in self.watched or not self.writes[way].isdisjoint(self.relevant | read)

    def _earlier(self, later: set[Way]) -> set[Way]:
        """The steps with their outcomes that can come before steps of `later`, together with `later`."""
        read = set().union(*(self.reads[way] for way in later))
        places = {way[:2] for way in later}
        return later | {
            way
            for way in self.writes
            if self._matters(way, read)
            or (not way.fails and any((way.process, t) in places for t in self._step(way).targets))
        }

    def possible(self, depth: int) -> list[set[Place]]:
        """For each step of a path, the possible processes and locations."""
        near: set[Place] = set()
        for p, code in enumerate(self.program.processes):
            latest = self.latest(p, depth)
            near |= {(p, place) for place, far in distances(code).items() if place < code.end and far <= latest[place]}
        found: list[set[Place]] = []
        later: set[Way] = set()
        for _ in range(depth):
            later = {way for way in self._earlier(later) if way[:2] in near}
            found.append({way[:2] for way in later})
        return found[::-1]

    def never_last(self, process: int, places: Iterable[int]) -> list[int]:
        """The locations among `places` where a process cannot end, because its last step would not matter."""
        ends = self.ends(process)
        return [] if ends is None else [place for place in places if place not in ends]

    def ends(self, process: int) -> set[int] | None:
        """The locations where a process can end. None: all of them."""
        return None if process in self.watched else {0} | self._stops(process, self._read_by_others(process))

    def latest(self, process: int, depth: int) -> dict[int, int]:
        """For each location, the maximal number of earlier steps of the process, in paths of `depth` steps.

        After the step at the location, the process must reach a location where it can end. If its last step does not
        write a cell of F, a step of another process does. That process needs steps to get there too.
        """
        last = self._costs(process, self._stops(process, set()))
        other = self._costs(process, self._stops(process, self._read_by_others(process)))
        others = min((self._least(q) for q in range(len(self.program.processes)) if q != process), default=depth)
        code = self.program.processes[process]
        return {n: depth - min(last[n], other[n] + others) for n in range(code.end)}

    def _read_by_others(self, process: int) -> set[Variable]:
        return set().union(*(reads for way, reads in self.reads.items() if way.process != process))

    def _stops(self, process: int, read: set[Variable]) -> set[int]:
        """The locations of a process after steps that matter, if later steps read the variables of `read`."""
        return {
            t for way in self.writes if way.process == process and self._matters(way, read) for t in self._targets(way)
        }

    def _least(self, process: int) -> int:
        """The minimal number of steps until a process writes a cell of F."""
        far = distances(self.program.processes[process])
        mine = [way for way in self.writes if way.process == process and self._matters(way, set())]
        return min((far[way.location] + 1 for way in mine if way.location in far), default=_FAR)

    def _costs(self, process: int, stops: set[int]) -> list[int]:
        """For each location, the minimal number of steps to one of `stops`."""
        mine = [way for way in self.writes if way.process == process]
        found = [_FAR] * (self.program.processes[process].stuck + 1)
        for _ in mine:
            before = list(found)
            for way in mine:
                after = min((0 if t in stops else found[t] for t in self._targets(way)), default=_FAR)
                found[way.location] = min(found[way.location], after + 1)
            if found == before:
                break
        return found

    def _targets(self, way: Way) -> tuple[int, ...]:
        return (self.program.processes[way.process].stuck,) if way.fails else self._step(way).targets

    def sliced(self) -> Program:
        """The program without the steps that are in no projection."""
        kept: set[Way] = set()
        while (more := self._earlier(kept)) != kept:
            kept = more
        return structs.replace(
            self.program,
            processes=tuple(
                structs.replace(code, instructions=tuple(self._kept(step, kept) for step in code.instructions))
                for code in self.program.processes
            ),
        )

    def _kept(self, step: Instruction, kept: set[Way]) -> Instruction:
        if Way(step.process, step.location, False) in kept:
            return step
        failing = Way(step.process, step.location, True) in kept
        if failing and any(fails_inside(action, self.ranges) for action in step.body):
            return step
        body: list[Action] = []
        if failing:
            last = max(n for n, action in enumerate(step.body) if failures(action, self.ranges))
            action = step.body[last]
            body = [*step.body[:last], Require(action.condition) if isinstance(action, Branch) else action]
        return structs.replace(step, body=(*body, NEVER), targets=())

    def _step(self, way: Way) -> Instruction:
        return self.program.processes[way.process].instructions[way.location]
