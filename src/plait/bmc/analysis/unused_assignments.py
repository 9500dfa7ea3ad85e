"""Unused assignments: the variable is never read, or the local is assigned again before it is read.

They become steps without effect. So the program has the same runs, with the same values of all relevant variables. The
variables that such an assignment reads do not matter any more. So projections are smaller.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from plait.bmc.analysis.failures import failures
from plait.bmc.analysis.ranges import Ranges
from plait.bmc.program.definition import (
    Action,
    Branch,
    Goto,
    ProcessCode,
    Program,
    Set,
    Variable,
    accesses,
    variables_of,
)


def without_unused_assignments(program: Program, ranges: Ranges, relevant: set[Variable]) -> Program:
    """The program without unused assignments, if only the variables of `relevant` matter in the last state."""
    read = set().union(*(accesses(step.body)[0] for code in program.processes for step in code.instructions))
    kept = relevant | {v for v in read if v.process is None}
    processes = tuple(Liveness(code, ranges, kept).cleaned() for code in program.processes)
    return structs.replace(program, processes=processes)


class Liveness:
    """For each location of a process, the variables that its later steps read.

    Without `ranges`, what an unused assignment reads counts too.
    """

    def __init__(self, code: ProcessCode, ranges: Ranges | None = None, kept: Iterable[Variable] = ()) -> None:
        self.code, self.ranges, self.kept = code, ranges, set(kept)
        self.live: list[set[Variable]] = [set() for _ in range(code.stuck + 1)]
        changed = True
        while changed:
            changed = False
            for step in reversed(code.instructions):
                before, _ = self._through(step.body, set())
                if before != self.live[step.location]:
                    self.live[step.location] = before
                    changed = True

    def cleaned(self) -> ProcessCode:
        """The process without unused assignments."""
        steps = tuple(structs.replace(step, body=self._through(step.body, set())[1]) for step in self.code.instructions)
        return structs.replace(self.code, instructions=steps)

    def _at(self, location: int) -> set[Variable]:
        return self.live[location]

    def _through(self, actions: tuple[Action, ...], live: set[Variable]) -> tuple[set[Variable], tuple[Action, ...]]:
        """The live variables before the actions, given those after them; and the actions without unused ones."""
        found: list[Action] = []
        for action in reversed(actions):
            match action:
                case Set(variable, index):
                    if self._unused(action, live):
                        continue
                    if index is None:
                        live = live - {variable}
                    live = live | accesses((action,))[0]
                case Branch(condition, then, otherwise):
                    one, then = self._through(then, live)
                    two, otherwise = self._through(otherwise, live)
                    live = one | two | variables_of(condition)
                    action = Branch(condition, then, otherwise)
                case Goto(location):
                    live = self._at(location)
                case _:
                    live = live | accesses((action,))[0]
            found.append(action)
        return live, tuple(reversed(found))

    def _unused(self, action: Set, live: set[Variable]) -> bool:
        if self.ranges is None or action.variable in self.kept or action.variable in live:
            return False
        return not failures(action, self.ranges)
