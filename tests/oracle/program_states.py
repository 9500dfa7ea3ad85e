"""All states by the interpreter, breadth first: the oracle for the native enumeration and for the encodings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from plait.bmc.execution.interpreter import Interpreter, State
from plait.bmc.program.definition import Expr, Program, Value


class Layer(NamedTuple):
    """The new states at a depth."""

    depth: int
    states: list[State]


class Enumeration:
    """The states of a program, layer by layer, each with the first step that led to it."""

    def __init__(self, program: Program, width: int | None = None) -> None:
        self.interpreter = Interpreter(program, width)
        self.program = program
        self.parents: dict[State, tuple[State, int, tuple[Value, ...]] | None] = {}
        self.transitions = 0

    def layers(self, deadline: float | None = None, most: int | None = None) -> Iterator[Layer]:
        """The layers, until no state is new, the deadline has passed, or there are more than `most` states."""
        frontier = []
        for state in self.interpreter.initial_states():
            if state not in self.parents:
                self.parents[state] = None
                frontier.append(state)
        depth = 0
        while frontier:
            yield Layer(depth, frontier)
            found = []
            for state in frontier:
                for taken in self.interpreter.successors(state):
                    self.transitions += 1
                    if taken.state not in self.parents:
                        self.parents[taken.state] = (state, taken.process, taken.inputs)
                        found.append(taken.state)
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError
            if most is not None and len(self.parents) > most:
                raise MemoryError
            frontier, depth = found, depth + 1

    def path(self, state: State) -> tuple[State, list[tuple[int, tuple[Value, ...]]]]:
        """The initial state and the steps to a state, as processes and inputs."""
        steps: list[tuple[int, tuple[Value, ...]]] = []
        while (parent := self.parents[state]) is not None:
            state, process, inputs = parent
            steps.append((process, inputs))
        return state, steps[::-1]


def reachable_values(
    program: Program, watched: list[Expr], depth: int, width: int | None = None
) -> list[set[tuple[Value, ...]]]:
    """The combinations of values of expressions after at most 0, 1, …, `depth` steps (fewer if no state is new)."""
    enumeration = Enumeration(program, width)
    found: list[set[tuple[Value, ...]]] = []
    for layer in enumeration.layers():
        values = {tuple(enumeration.interpreter.evaluate(e, state) for e in watched) for state in layer.states}
        found.append((found[-1] if found else set()) | values)
        if layer.depth == depth:
            break
    return found


def longest_run(program: Program, limit: int, width: int | None = None) -> int | None:
    """The maximal number of steps of a run. None: some run has more than `limit`."""
    interpreter = Interpreter(program, width)
    layer = set(interpreter.initial_states())
    for depth in range(limit + 1):
        layer = {taken.state for state in layer for taken in interpreter.successors(state)}
        if not layer:
            return depth
    return None
