"""The native enumeration: all states of a program, breadth first, so a run that it finds is a shortest one (`rust/src/bmc`).

It executes steps as the interpreter does, millions per second. It never wraps a number silently: if one does not fit in
64 bits in a state (128 bits within a step), the search stops.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

from plait._native import BmcProgram, BmcReport
from plait.bmc.execution.interpreter import Interpreter, State
from plait.bmc.execution.lowering import lowered
from plait.bmc.program.definition import Expr, Program, Value

Stop = Literal["timeout", "memory", "states", "depth", "numbers", "inputs", "condition", "found"]
"""Why an enumeration ended before it had seen all states.

- `timeout`, `memory`, `states`, `depth`: the limits of the caller;
- `numbers`: a number does not fit, or an operation has no result;
- `inputs`: a free variable or an input has more than 2^16 values, or several together have;
- `condition`: a property or the initial condition reads an array at an index out of range;
- `found`: all that the caller looked for was found, or the first of it if the caller wanted only that.
"""
_Row = tuple[list[int], list[tuple[int, list[int]]]]


class NativeRun(NamedTuple):
    """A run: its initial state, and the process and the inputs of each step. `Interpreter.step` executes it."""

    start: State
    steps: list[tuple[int, tuple[Value, ...]]]


class Race(NamedTuple):
    """A run to a state in which two processes can access the same cell, and the two processes."""

    run: NativeRun
    processes: tuple[int, int]


class Enumerated(NamedTuple):
    """The result of an enumeration."""

    states: int
    transitions: int
    depth: int
    """All states within this number of steps were seen."""
    ended: int
    """The number of states in which all processes have ended."""
    stopped: Stop | None
    """None: all states were seen."""
    found: tuple[NativeRun | None, ...]
    """For each condition that was looked for: a shortest run to a state in which it holds."""
    deadlock: NativeRun | None
    race: Race | None
    memory: int
    """Bytes of the states that were seen."""

    @property
    def complete(self) -> bool:
        """Whether all states were seen."""
        return self.stopped is None


class Enumeration:
    """The states of a program. `watched` are the conditions to look for, for example `Property.bad`.

    With a `width`, numbers have that number of bits and wrap around. `liveness`: locals that no later step reads are 0
    in the states. So there are fewer states; their number is not that of the interpreter.

    >>> from plait.bmc.load import parse_program
    >>> program = parse_program("int x = 0; process p { x = 1; } process q { x = 2; } reachable two: x == 2;")
    >>> result = Enumeration(program, watched=[p.bad for p in program.properties]).run()
    >>> result.found[0].steps
    [(1, ())]
    """

    def __init__(
        self,
        program: Program,
        width: int | None = None,
        *,
        watched: Sequence[Expr] = (),
        deadlock: bool = False,
        races: bool = False,
        liveness: bool = True,
    ) -> None:
        self.program, self.watched, self.deadlock, self.races = program, tuple(watched), deadlock, races
        self.interpreter = Interpreter(program, width)
        self.native: BmcProgram | None = None
        """None: a constant does not fit in 128 bits."""
        with contextlib.suppress(OverflowError):
            self.native = lowered(program, width, self.watched, liveness)

    def run(
        self,
        *,
        deadline: float | None = None,
        states: int | None = None,
        memory: int | None = None,
        depth: int | None = None,
        first: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Enumerated:
        """Search until all that is looked for is found, all states were seen, or a limit is reached.

        `deadline` is a time of `time.monotonic()`; `memory` is in bytes; `depth` is the maximal number of steps of a run.
        `first`: stop at the first discovery. `progress` hears the number of states and the current depth now and then.
        """
        if self.native is None:
            return Enumerated(0, 0, 0, 0, "numbers", (None,) * len(self.watched), None, None, 0)
        report: BmcReport = self.native.enumerate(
            deadlock=self.deadlock,
            races=self.races,
            first=first,
            seconds=None if deadline is None else deadline - time.monotonic(),
            states=states,
            memory=memory,
            depth=depth,
            progress=progress,
        )
        race = report.race
        return Enumerated(
            report.states,
            report.transitions,
            report.depth,
            report.ended,
            cast("Stop | None", report.stopped),
            tuple(None if row is None else self._run(row) for row in report.found),
            None if report.deadlock is None else self._run(report.deadlock),
            None if race is None else Race(self._run(race[0]), (race[1], race[2])),
            report.bytes,
        )

    def _run(self, row: _Row) -> NativeRun:
        """A run with truth values where the program has some. The interpreter executes it."""
        kinds = [variable.kind for variable in self.program.variables for _ in range(variable.cells)]
        values = tuple(bool(v) if kind == "bool" else v for v, kind in zip(row[0], kinds, strict=True))
        start = state = State(values, (0,) * len(self.program.processes))
        steps = []
        for process, numbers in row[1]:
            step = self.program.processes[process].instructions[state.locations[process]]
            inputs = tuple(bool(v) if d.kind == "bool" else v for v, d in zip(numbers, step.inputs, strict=True))
            taken = self.interpreter.step(state, process, inputs)
            assert taken is not None, "the interpreter and the native enumeration differ"
            state = taken.state
            steps.append((process, inputs))
        return NativeRun(start, steps)
