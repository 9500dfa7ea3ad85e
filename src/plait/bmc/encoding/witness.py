"""From a model of the solver to a run.

The model gives the initial values, the process of each step and the choices of the environment. The interpreter
calculates all other values.
"""

from __future__ import annotations

from typing import NamedTuple

from plait.bmc.execution.interpreter import Interpreter, State, Step
from plait.bmc.program.definition import Value, Variable

Model = dict[str, Value]
"""The values of constants, by name."""


def cell_name(variable: Variable, k: int) -> str:
    """The constant for the initial value of a cell."""
    return f"{variable.name}@0" if variable.size is None else f"{variable.name}[{k}]@0"


def input_name(process: int, moment: int, location: int, number: int) -> str:
    """The constant for an input of a step."""
    return f"in{number} of {process}@{moment} at {location}"


class Witness(NamedTuple):
    """A run, as the model of a solver describes it."""

    model: Model
    schedule: list[tuple[int, int]]
    """The process of each step, and the number in the names of its inputs."""
    bits: int | None
    """The number of bits of numbers in the model. None: they are integers."""

    def _value(self, name: str, default: Value) -> Value:
        value = self.model.get(name, default)
        if self.bits is None or isinstance(value, bool):
            return value
        half = 1 << (self.bits - 1)
        return (value + half) % (2 * half) - half

    def run(self, interpreter: Interpreter) -> tuple[State, list[Step]]:
        """Execute the run. A step that is not enabled is a bug in an encoding."""
        values: dict[Variable, list[Value]] = {}
        for variable in interpreter.program.variables:
            free: Value = False if variable.kind == "bool" else (variable.low or 0)
            values[variable] = [
                self._value(cell_name(variable, k), free) if value is None else value
                for k, value in enumerate(variable.initial)
            ]
        start = state = interpreter.initial(values)
        if not interpreter.starts(state):
            raise AssertionError("the solver's initial state is not an initial state of the program")
        taken: list[Step] = []
        for process, moment in self.schedule:
            location = state.locations[process]
            inputs: list[Value] = []
            if interpreter.ready(state, process):
                for number, domain in enumerate(interpreter.program.processes[process].instructions[location].inputs):
                    default: Value = False if domain.kind == "bool" else (domain.low or 0)
                    inputs.append(self._value(input_name(process, moment, location, number), default))
            step = interpreter.step(state, process, inputs)
            if step is None:
                raise AssertionError(f"step {len(taken) + 1} of the solver's run is not enabled")
            taken.append(step)
            state = step.state
        return start, taken
