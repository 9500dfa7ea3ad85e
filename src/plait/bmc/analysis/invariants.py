"""Invariants: facts that hold in every reachable state. They are guessed from runs, then proved, for k-induction.

k-induction starts from any state, so it needs facts about the reachable ones. A guess has one of two forms: "while two
processes are at these locations, a cell has one of these values", or "two processes are never at these locations at the
same time". Random runs do not contradict the guesses. A solver removes each guess that does not hold initially, or that
one step from a state with all guesses can violate. It repeats this until it removes nothing (the Houdini algorithm of
Flanagan and Leino, FME 2001). The remaining guesses are invariants.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import NamedTuple

from plait.bmc.analysis.ranges import Ranges
from plait.bmc.encoding.smt import Formula, Term, TooLargeError
from plait.bmc.encoding.steps import Moment, StepsEncoding
from plait.bmc.encoding.z3_solver import consecution
from plait.bmc.execution.interpreter import Interpreter, State
from plait.bmc.execution.walks import walk
from plait.bmc.program.definition import Program, Value, Variable

_WALKS, _LENGTH, _SEED = 300, 60, 1
_FEW = 4
"""There is no guess about a cell that has more values than this at two locations."""
_MOST = 20_000
"""The maximal number of guesses."""

Places = tuple[tuple[int, int], ...]
"""Processes and their locations."""


class Guess(NamedTuple):
    """While processes are at these places, the cell has one of the values. No cell: they are never there together."""

    places: Places
    variable: Variable | None = None
    cell: int = 0
    values: tuple[Value, ...] = ()

    def term(self, f: Formula, moment: Moment) -> Term:
        """The guess as a term about a state of a path."""
        there = f.all(*(moment.at[p].get(place, False) for p, place in self.places))
        if self.variable is None:
            return f.not_(there)
        cell = moment.cells[self.variable][self.cell]
        same = f.same if self.variable.kind == "bool" else f.equal
        return f.implies(there, f.any(*(same(cell, value) for value in self.values)))


def invariants(
    program: Program, ranges: Ranges, bits: int | None, width: int | None, timeout: float | None = None
) -> list[Guess]:
    """The proved guesses; none after a timeout, or if a formula is too large.

    >>> from plait.bmc import parse_program
    >>> from plait.bmc.analysis.ranges import ranges
    >>> program = parse_program("int x = 0; process p { while (true) { x = 1; x = 0; } } always t: true;")
    >>> found = invariants(program, ranges(program, None), None, None)
    >>> [(guess.places, guess.values) for guess in found if guess.places == ((0, 2),)]
    [(((0, 2),), (1,))]
    """
    guesses = list(_guesses(program, _states(program, width), width))
    if not guesses or len(guesses) > _MOST:
        return []
    try:
        return _proved(program, ranges, bits, guesses, timeout)
    except TooLargeError:
        return []


def _proved(
    program: Program, ranges: Ranges, bits: int | None, guesses: list[Guess], timeout: float | None
) -> list[Guess]:
    start = StepsEncoding(program, 0, ranges, bits)
    for n, guess in enumerate(guesses):
        _name(start.f, f"after {n}", guess.term(start.f, start.moments[0]))
    kept = consecution(start.f.text(), range(len(guesses)), timeout)
    step = StepsEncoding(program, 1, ranges, bits, arbitrary=True, exact=True, ordered=False)
    for n in kept:
        for name, moment in zip(("before", "after"), step.moments, strict=True):
            _name(step.f, f"{name} {n}", guesses[n].term(step.f, moment))
    return [guesses[n] for n in consecution(step.f.text(), kept, timeout)]


def _name(f: Formula, name: str, term: Term) -> None:
    f.add(f.same(f.boolean(name), term))


def _states(program: Program, width: int | None) -> Iterable[State]:
    interpreter, dice = Interpreter(program, width), random.Random(_SEED)
    for _ in range(_WALKS):
        yield from walk(interpreter, dice, _LENGTH)


def _guesses(program: Program, states: Iterable[State], width: int | None) -> Iterable[Guess]:
    seen: dict[Places, list[set[Value]]] = {}
    cells = [(v, k) for v in program.variables for k in range(v.cells)]
    processes = range(len(program.processes))
    groups = list(itertools.combinations(processes, min(2, len(processes))))
    for state in set(states):
        for group in groups:
            places = tuple((p, state.locations[p]) for p in group)
            for values, value in zip(seen.setdefault(places, [set() for _ in cells]), state.values, strict=True):
                values.add(value)
    for group in groups:
        ends = [range(program.processes[p].stuck + 1) for p in group]
        for locations in itertools.product(*ends):
            places = tuple(zip(group, locations, strict=True))
            if places not in seen:
                yield Guess(places)
                continue
            for (variable, k), values in zip(cells, seen[places], strict=True):
                if len(values) <= (1 if variable.kind == "bool" else _FEW):
                    yield Guess(places, variable, k, tuple(sorted(values)))
