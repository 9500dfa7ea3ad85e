"""The checks that need no property in the program: deadlock, and data races on request."""

from __future__ import annotations

from msgspec import structs

from plait.bmc.analysis.races import racing
from plait.bmc.analysis.waiting import deadlocked
from plait.bmc.program.arithmetic import negate
from plait.bmc.program.definition import DEADLOCK, RACES, Program, Property
from plait.bmc.program.source import Place


def with_checks(program: Program, *, races: bool = False) -> Program:
    """The program with a property against deadlocks, if a step waits, and with `races` one against data races.

    >>> from plait.bmc import parse_program
    >>> program = parse_program("lock a, b; process p { lock(a); lock(b); } process q { lock(b); lock(a); }")
    >>> [p.name for p in with_checks(program).properties]
    ['deadlock']
    """
    properties = list(program.properties)
    waits = any(step.waits for code in program.processes for step in code.instructions)
    if waits and program.find(DEADLOCK) is None:
        properties.append(Property(DEADLOCK, "always", negate(deadlocked(program)), Place(1, 1)))
    if races and program.find(RACES) is None:
        properties.append(Property(RACES, "always", negate(racing(program)), Place(1, 1)))
    return structs.replace(program, properties=tuple(properties))
