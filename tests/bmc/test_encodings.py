"""Both encodings, with and without projections, against the enumeration of all states: on random programs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, note, settings

from plait.bmc.clock import ClockEncoding
from plait.bmc.compiler import compile_program
from plait.bmc.explicit import longest_run, reachable_values
from plait.bmc.parser import parse
from plait.bmc.program import Expr, Program, Read
from plait.bmc.ranges import ranges
from plait.bmc.solver import enumerate_values
from plait.bmc.steps import StepsEncoding
from tests.bmc.programs import Random, programs

DEEPEST = 9
"""Programs with longer runs are compared up to here."""

WAYS: dict[str, Any] = {
    "steps": functools.partial(StepsEncoding, projection="none"),
    "steps, not ordered": functools.partial(StepsEncoding, projection="none", ordered=False),
    "steps, later": functools.partial(StepsEncoding, projection="later"),
    "steps, live": functools.partial(StepsEncoding, projection="live"),
    "clock": functools.partial(ClockEncoding, projection=False),
    "clock, projected": functools.partial(ClockEncoding, projection=True),
}


def watched(program: Program, names: list[str]) -> list[Expr]:
    """The cells of those names; and the flags of failed assertions and indices, always."""
    from plait.bmc.program import Constant

    found: list[Expr] = []
    for name in names:
        base, _, index = name.partition("[")
        variable = next(v for v in program.variables if v.name == base)
        found.append(Read(variable, Constant(int(index[:-1])) if index else None))
    return found + [Read(v) for v in program.variables if v.hidden]


def solved(program: Program, way: str, exprs: list[Expr], depth: int, width: int | None = None) -> set[tuple[Any, ...]]:
    """The values that an encoding finds for expressions within a depth."""
    known = ranges(program, depth, width)
    bits = known.bits if width is None else width
    encoding = WAYS[way](program, depth, known, bits, relevant=exprs)
    f = encoding.f
    names = []
    for n, e in enumerate(exprs):
        term = encoding.evaluate(e)
        boolean = isinstance(e, Read) and e.variable.kind == "bool"
        constant = f.boolean(f"value {n}") if boolean else f.number(f"value {n}")
        f.add(f.same(constant, term) if boolean else f.equal(constant, term))
        names.append(f"value {n}")

    def signed(value: int | bool) -> int | bool:
        if isinstance(value, bool) or bits is None:
            return value
        return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    return {tuple(signed(model[name]) for name in names) for model in enumerate_values(f.text(), names)}


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_encodings_agree_with_the_enumeration(random: Random) -> None:
    program = compile_program(parse(random.text, "random"))
    exprs = watched(program, random.watched)
    most = longest_run(program, DEEPEST)
    truth = reachable_values(program, exprs, DEEPEST if most is None else most)
    note(random.text)
    for depth in depths(len(truth) - 1):
        for way in WAYS:
            assert solved(program, way, exprs, depth) == truth[depth], f"{way}, depth {depth}"


def depths(most: int) -> Iterator[int]:
    return iter(range(most + 1))
