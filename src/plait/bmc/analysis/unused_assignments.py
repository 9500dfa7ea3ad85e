"""Assignments whose values nobody uses: a local that is assigned again before it is read, a variable that nobody reads.

They stay as steps that do nothing. Every run is still a run, with the same values of everything that is looked at; but
what such an assignment would read no longer matters, and so projections are smaller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from plait.bmc.analysis.failures import failures
from plait.bmc.analysis.ranges import Ranges
from plait.bmc.language.program import Action, ProcessCode, Program, Set, Variable, accesses


def without_unused_assignments(program: Program, ranges: Ranges, relevant: set[Variable]) -> Program:
    """The program without dead assignments, if this is all that is looked at in the end."""
    read = set().union(*(accesses(step.body)[0] for code in program.processes for step in code.instructions))
    kept = relevant | {v for v in read if v.process is None}
    processes = tuple(_Liveness(code, ranges, kept).cleaned() for code in program.processes)
    return dataclasses.replace(program, processes=processes)


class _Liveness:
    """Which locals of a process are read later, at each of its locations."""

    def __init__(self, code: ProcessCode, ranges: Ranges, kept: set[Variable]) -> None:
        self.code, self.ranges, self.kept = code, ranges, kept
        self.live: list[set[Variable]] = [set() for _ in range(code.stuck + 1)]
        changed = True
        while changed:
            changed = False
            for step in reversed(code.instructions):
                before, _ = self._through(step.body, self._after(step.targets))
                if before != self.live[step.location]:
                    self.live[step.location] = before
                    changed = True

    def cleaned(self) -> ProcessCode:
        """The process without dead assignments."""
        steps = tuple(
            dataclasses.replace(step, body=self._through(step.body, self._after(step.targets))[1])
            for step in self.code.instructions
        )
        return dataclasses.replace(self.code, instructions=steps)

    def _after(self, targets: Iterable[int]) -> set[Variable]:
        return set().union(*(self.live[t] for t in targets))

    def _through(self, actions: tuple[Action, ...], live: set[Variable]) -> tuple[set[Variable], tuple[Action, ...]]:
        """What is live before actions, if this is behind them; and those of them that are not dead."""
        found: list[Action] = []
        for action in reversed(actions):
            if isinstance(action, Set) and self._dead(action, live):
                continue
            found.append(action)
            if isinstance(action, Set) and action.index is None:
                live = live - {action.variable}
            live = live | accesses((action,))[0]
        return live, tuple(reversed(found))

    def _dead(self, action: Set, live: set[Variable]) -> bool:
        return action.variable not in self.kept | live and not failures(action, self.ranges)
