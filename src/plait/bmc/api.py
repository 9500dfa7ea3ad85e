"""Check a program: which properties, which searches, and the verdict. `portfolio.py` has the searches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from plait.bmc.checks import with_checks
from plait.bmc.execution.interpreter import Interpreter
from plait.bmc.finding import Finding
from plait.bmc.options import Encoding, Limits, Options, Projection, Solver
from plait.bmc.portfolio import Portfolio
from plait.bmc.program.definition import LIMITS, Program, Property, Value
from plait.bmc.verdict import verdict_of
from plait.kernel.deadline import Deadline, OutOfTimeError
from plait.kernel.errors import Argument, UsageError
from plait.kernel.verdict import Verdict


def check(
    program: Program,
    *,
    depth: int | None = None,
    encoding: Encoding = "auto",
    projection: Projection = "auto",
    order: bool = True,
    properties: Sequence[str] | None = None,
    width: int | None = None,
    induction: bool = False,
    solver: Solver = "z3",
    timeout: float | None = None,
    memory: int | None = None,
    full: bool = False,
    cover: bool = True,
    seed: int = 0,
    races: bool = False,
    shortest: bool = False,
    target: str | None = None,
    parameters: Mapping[str, str | Value] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Check the properties of a program.

    By default, several searches run at the same time, and the first conclusive answer counts. Without `cover`, a solver
    does not find out whether longer runs exist. `seed` is the random seed of the solver. `races` also looks for data
    races. With `shortest`, a counterexample of a solver is a shortest one too; that of the enumeration always is.

    >>> from plait.bmc import parse_program
    >>> check(parse_program("int x = 0; process p { x = x + 1; } always small: x < 1;")).status
    'violated'
    """
    for name, value, kinds in (
        ("encoding", encoding, Encoding),
        ("projection", projection, Projection),
        ("solver", solver, Solver),
    ):
        if value not in get_args(kinds):
            raise UsageError((Argument(name, value), " does not fit"), hint=f"use one of {', '.join(get_args(kinds))}")
    if depth is not None and depth < 0:
        raise UsageError((Argument("depth", depth), " is negative"), hint="give 0 or more")
    clock = Deadline(timeout)
    limits = Limits(None if timeout is None else time.monotonic() + timeout, memory)
    options = Options(depth, encoding, projection, order, width, induction, solver, cover, seed, shortest)
    program = with_checks(program, races=races)
    chosen = _chosen(program, properties)
    portfolio = Portfolio(program, options, limits, progress)
    try:
        with clock.enforced():
            _prepare(program, options)
    except OutOfTimeError:
        findings = [Finding(p, None, False, None, "timeout") for p in chosen]
    else:
        findings = portfolio.decide(chosen)
    interpreter = Interpreter(program, width)
    return verdict_of(
        interpreter,
        findings,
        set(properties or ()),
        portfolio.costs,
        options,
        clock.elapsed,
        target or program.name,
        parameters or {},
        full,
    )


def _prepare(program: Program, options: Options) -> None:
    """Refuse a program that cannot be checked like this."""
    from plait.bmc.analysis.width import fits

    fits(program, options.width)
    if program.initial:
        from plait.bmc.search import SolverSearch

        if not SolverSearch(program, options, Limits()).begins():
            raise UsageError(
                f"{program.name} has no initial state",
                hint="its init conditions contradict each other or the range of a variable: correct one of them",
            )


def formula(
    program: Program,
    depth: int,
    property_name: str | None = None,
    encoding: Encoding = "auto",
    projection: Projection = "auto",
    order: bool = True,
    width: int | None = None,
) -> str:
    """The formula as SMT-LIB text. It is satisfiable if a run of at most `depth` steps decides the property."""
    from plait.bmc.analysis.width import fits
    from plait.bmc.search import SolverSearch

    program = with_checks(program)
    chosen = _chosen(program, None if property_name is None else [property_name])[0]
    fits(program, width)
    search = SolverSearch(program, Options(depth, encoding, projection, order, width), Limits())
    built = search.encode(chosen.condition, depth)
    return built.f.text([built.evaluate(chosen.bad)])


def _chosen(program: Program, names: Sequence[str] | None) -> list[Property]:
    known = ", ".join(p.name for p in program.properties if p.name != LIMITS) or "none"
    for name in names or ():
        if program.find(name) is None:
            raise UsageError(f"{program.name} has no property {name!r}", hint=f"its properties are: {known}")
    # A thread stops where a check fails, so the other checks matter for what holds after it.
    checks = {v.name for v in program.variables if v.hidden and program.undefined}
    chosen = [p for p in program.properties if not names or p.name in names or p.name in checks]
    if not chosen:
        raise UsageError(
            f"{program.name} has no property, and nothing in it can fail",
            hint=("add an assertion, or look for data races with ", Argument("races", True)),
        )
    return chosen
