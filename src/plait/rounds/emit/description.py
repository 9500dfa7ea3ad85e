"""What all targets of `plait rounds emit` know about a sequential program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from plait.kernel.pid import Pid
from plait.model.process import Process
from plait.model.system import System, plays
from plait.rounds.assumptions import Assumption
from plait.rounds.calendar import Calendar
from plait.rounds.sequential import phases_text, program_of


@dataclasses.dataclass(frozen=True)
class Description:
    """A protocol, the number of its phases and what the network delivers."""

    system: System
    phases: int
    assumed: Assumption

    @property
    def rounds(self) -> list[str]:
        """The rounds of a phase, in order."""
        return self.system.rounds

    @property
    def last(self) -> int:
        """The number of the last round, counted through all phases from 1."""
        return self.phases * len(self.rounds)

    @property
    def processes(self) -> tuple[Pid, ...]:
        """The processes that exist from the beginning."""
        return tuple(self.system.pids[: len(self.system.processes)])

    @property
    def classes(self) -> list[type[Process]]:
        """The classes of all processes, each once."""
        return list(dict.fromkeys(self.system.classes))

    @property
    def grows(self) -> bool:
        """Whether processes may be created."""
        return any(self.system.spare.values())

    def faults(self) -> list[tuple[int, list[Pid]]]:
        """For each fault the number of crashes, and the processes that it may crash."""
        return [
            (
                fault.budget,
                [
                    pid
                    for pid, cls in zip(self.system.pids, self.system.classes, strict=True)
                    if not fault.roles or any(plays(cls, role) for role in fault.roles)
                ],
            )
            for fault in self.system.faults
        ]

    @property
    def title(self) -> str:
        """The first line of the text."""
        count = len(self.processes)
        processes = "1 process" if count == 1 else f"{count} processes"
        bounds = f"{processes}, {phases_text(self.phases)}, network assumption {self.assumed}"
        return f"The sequential program of {self.system.name}: {bounds}."

    @property
    def origin(self) -> str:
        """The target of the protocol."""
        return self.system.target or self.system.name


def describe(system: System, *, phases: int, assume: str) -> Description:
    """The description of a program. Raises the errors of `plait check --rounds`: a System that has no rounds, and so on."""
    Calendar(system)
    program = program_of(system, phases=phases, assume=assume)
    return Description(system, phases, program.assumed)


Emitter = Callable[[Description], str]
"""A target: writes the text of a program."""
