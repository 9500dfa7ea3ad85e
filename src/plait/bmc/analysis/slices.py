"""List the projections of a program on variables (Saissi 2019, section 4.2).

Runs that differ only in the order of independent steps have the same projections, up to this order. So one run of each
class is enough. Sleep sets omit the others: a process whose step was tried before sleeps until a dependent step occurs.
The runs are complete runs, or runs up to the given depth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.bmc.analysis.dependence import conflict, projection
from plait.bmc.analysis.relevance import exclusive
from plait.bmc.analysis.width import fits
from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.program.definition import Program
from plait.kernel.errors import Argument, UsageError

MOST = 200_000
"""The maximal number of runs."""
LONGEST = 2_000
"""A run with more steps counts as endless."""


class Slices(NamedTuple):
    """The projections of a program."""

    names: list[str]
    runs: int
    """The number of runs, with all orders of steps."""
    projections: list[tuple[list[tuple[str, str]], dict[str, Any]]]
    """Each projection: its steps (process and statement), and the final values of the variables."""

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "variables": self.names,
            "runs": self.runs,
            "projections": [
                {"steps": [{"process": p, "statement": label} for p, label in steps], "values": values}
                for steps, values in self.projections
            ],
        }


def slices(program: Program, names: list[str], depth: int | None = None, width: int | None = None) -> Slices:
    """Enumerate the projections on these variables.

    >>> from plait.bmc import parse_program
    >>> found = slices(parse_program("int x = 0, y = 0; process p { x = 1; } process q { y = 1; }"), ["y"])
    >>> found.runs, found.projections
    (2, [([('q', 'y = 1;')], {'y': 1})])
    """
    if any(exclusive(program)):
        raise UsageError(
            f"{program.name} has an atomic section of several steps, so it has no projections",
            hint="use an atomic section without loops",
        )
    interpreter = Interpreter(program, width)
    variables = []
    for name in names:
        found = next((v for v in program.variables if v.name == name and not v.hidden), None)
        if found is None:
            known = ", ".join(v.name for v in program.variables if not v.hidden)
            raise UsageError(f"{program.name} has no variable {name!r}", hint=f"its variables are: {known}")
        variables.append(found)
    fits(program, width)
    offsets = list(program.offsets.items())
    cells: list[Cell] = [(v, k) for v in variables for k in range(v.cells)]
    kinds: dict[Any, tuple[list[tuple[str, str]], dict[str, Any]]] = {}
    search = _Runs(interpreter, depth)
    for start in interpreter.initial_states():
        for run in search.representatives(start):
            kept = [run[i] for i in projection(run, cells)]
            matter = set(cells).union(*(step.reads for step in kept))
            values = [
                (v.name, k, start.values[at + k]) for v, at in offsets for k in range(v.cells) if (v, k) in matter
            ]
            key = (tuple(values), _canonical(kept))
            if key not in kinds:
                steps = [
                    (program.processes[t.process].name, program.processes[t.process].instructions[t.location].label)
                    for t in kept
                ]
                end = run[-1].state if run else start
                kinds[key] = (steps, {v.name: interpreter.shown(end, v) for v in variables})
    ordered = sorted(kinds.values(), key=lambda found: (len(found[0]), found[0]))
    return Slices(names, search.count(), ordered)


def _canonical(steps: list[Step]) -> frozenset[tuple[Any, ...]]:
    """A projection without the order of independent steps: each step with the earlier steps in conflict with it."""
    position: dict[int, int] = {}
    labels: list[tuple[Any, ...]] = []
    for step in steps:
        position[step.process] = position.get(step.process, 0) + 1
        labels.append((step.process, position[step.process], step.location, step.inputs))
    return frozenset(
        (labels[i], frozenset(labels[j] for j in range(i) if conflict(steps[j], steps[i]))) for i in range(len(steps))
    )


class _Runs:
    def __init__(self, interpreter: Interpreter, depth: int | None) -> None:
        self.interpreter, self.depth = interpreter, depth
        self.seen = 0

    def representatives(self, start: State) -> list[list[Step]]:
        """One run for each order of dependent steps."""
        found: list[list[Step]] = []
        stack: list[tuple[State, list[Step], dict[int, list[Step]]]] = [(start, [], {})]
        while stack:
            state, run, asleep = stack.pop()
            options: dict[int, list[Step]] = {}
            if self.depth is None or len(run) < self.depth:
                for taken in self.interpreter.successors(state):
                    options.setdefault(taken.process, []).append(taken)
            if not options:
                found.append(run)
                self.seen += 1
            if self.seen + len(stack) > MOST or len(run) > LONGEST:
                raise UsageError(
                    f"the program has more than {MOST:,} runs, or runs of more than {LONGEST:,} steps",
                    hint=("set ", Argument("depth", 20), ", or use fewer processes"),
                )
            tried: dict[int, list[Step]] = {}
            for process, moves in options.items():
                # With a depth, runs that are cut off can consist of different steps: no process may sleep.
                if process in asleep and self.depth is None:
                    continue
                for taken in moves:
                    resting = {
                        p: m for p, m in (asleep | tried).items() if p != process and not any(conflict(taken, o) for o in m)
                    }  # fmt: skip
                    stack.append((taken.state, [*run, taken], resting))
                tried[process] = moves
        return found

    def count(self) -> int:
        """The number of runs. They are not listed."""
        memo: dict[tuple[State, int], int] = {}

        def runs(state: State, left: int) -> int:
            todo: list[tuple[State, int]] = [(state, left)]
            while todo:
                here, more = todo[-1]
                if (here, more) in memo:
                    todo.pop()
                    continue
                after = [] if more == 0 else [(t.state, more - 1) for t in self.interpreter.successors(here)]
                missing = [a for a in after if a not in memo]
                if missing:
                    todo += missing
                    continue
                memo[here, more] = sum(memo[a] for a in after) or 1
                todo.pop()
            return memo[state, left]

        most = -1 if self.depth is None else self.depth
        return sum(runs(start, most) for start in self.interpreter.initial_states())
