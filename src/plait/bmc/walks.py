"""Random runs: a cheap look at what a program does, before a solver is asked."""

from __future__ import annotations

import random
from collections.abc import Iterator

from plait.bmc.interpreter import Interpreter, State
from plait.bmc.program import Value


def walk(interpreter: Interpreter, dice: random.Random, most: int) -> Iterator[State]:
    """The states of a random run of at most so many steps; none, if what the dice give is no initial state."""
    program = interpreter.program
    values = {}
    for v in program.variables:
        free = [False, True] if v.kind == "bool" else [v.low or 0, v.high or 1]
        values[v] = [dice.choice(free) if value is None else value for value in v.initial]
    state = interpreter.initial(values)
    if not interpreter.starts(state):
        return
    yield state
    for _ in range(most):
        after = _step(interpreter, dice, state)
        if after is None:
            return
        yield after
        state = after


def _step(interpreter: Interpreter, dice: random.Random, state: State) -> State | None:
    options = list(range(len(interpreter.program.processes)))
    dice.shuffle(options)
    for process in options:
        if not interpreter.ready(state, process):
            continue
        step = interpreter.program.processes[process].steps[state.locations[process]]
        inputs: list[Value] = [
            dice.choice([False, True]) if d.kind == "bool" else dice.randint(d.low or 0, d.high or 1)
            for d in step.inputs
        ]
        taken = interpreter.step(state, process, inputs)
        if taken is not None:
            return taken.state
    return None
