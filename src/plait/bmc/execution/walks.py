"""Random runs: a cheap way to find out what a program does, before a solver runs."""

from __future__ import annotations

import random
from collections.abc import Iterator

from plait.bmc.execution.interpreter import Interpreter, State
from plait.bmc.program.definition import Value


def walk(interpreter: Interpreter, dice: random.Random, most: int) -> Iterator[State]:
    """The states of a random run of at most `most` steps; none, if the random values are not an initial state."""
    program = interpreter.program
    values = {}
    for v in program.variables:
        free = [False, True] if v.kind == "bool" else [0 if v.low is None else v.low, 1 if v.high is None else v.high]
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
        step = interpreter.program.processes[process].instructions[state.locations[process]]
        inputs: list[Value] = [
            dice.choice([False, True])
            if d.kind == "bool"
            else dice.randint(0 if d.low is None else d.low, 1 if d.high is None else d.high)
            for d in step.inputs
        ]
        taken = interpreter.step(state, process, inputs)
        if taken is not None:
            return taken.state
    return None
