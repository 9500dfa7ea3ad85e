"""The comparison of an encoding with the enumeration of all states of a program."""

from __future__ import annotations

import functools
from typing import Any

from plait.bmc.analysis.ranges import Ranges, ranges
from plait.bmc.encoding.clock import ClockEncoding
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.encoding.z3_solver import enumerate_values
from plait.bmc.language.compiler import compile_program
from plait.bmc.language.parser import parse
from plait.bmc.program.arithmetic import is_truth
from plait.bmc.program.definition import Constant, Expr, Program, Read
from tests.bmc.programs import Random
from tests.oracle.program_states import longest_run, reachable_values

DEEPEST = 6
"""Programs with longer runs are compared up to here."""


WAYS: dict[str, Any] = {
    "steps": functools.partial(StepsEncoding, projection="none", ordered=False),
    "steps, projected": functools.partial(StepsEncoding, projection="later"),
    "steps, sliced": functools.partial(StepsEncoding, projection="sliced"),
    "clock": functools.partial(ClockEncoding, projection=False),
    "clock, projected": functools.partial(ClockEncoding, projection=True),
}


def watched(program: Program, names: list[str]) -> list[Expr]:
    """The cells of those names, as far as the program has them."""
    found: list[Expr] = []
    for name in names:
        base, _, index = name.partition("[")
        found += [Read(v, Constant(int(index[:-1])) if index else None) for v in program.variables if v.name == base]
    return found


@functools.lru_cache(maxsize=20)
def _ranges(program: Program, depth: int, width: int | None) -> Ranges:
    """The same for all encodings."""
    return ranges(program, depth, width)


def solved(
    program: Program,
    way: Any,
    exprs: list[Expr],
    depth: int,
    width: int | None = None,
    without: set[tuple[Any, ...]] = frozenset(),  # type: ignore[assignment]
) -> set[tuple[Any, ...]]:
    """The values that an encoding finds for expressions within a depth, besides those that need not be found."""
    known = _ranges(program, depth, width)
    bits = known.bits if width is None else width
    encoding = way(program, depth, known, bits, relevant=exprs)
    f = encoding.f
    names, constants = [], []
    for n, e in enumerate(exprs):
        term = encoding.evaluate(e)
        boolean = is_truth(e)
        constant = f.boolean(f"value {n}") if boolean else f.number(f"value {n}")
        f.add(f.same(constant, term) if boolean else f.equal(constant, term))
        names.append(f"value {n}")
        constants.append((constant, boolean))
    for values in without:
        same = [f.same(c, v) if b else f.equal(c, v) for (c, b), v in zip(constants, values, strict=True)]
        f.add(f.not_(f.all(*same)))

    def signed(value: int | bool) -> int | bool:
        if isinstance(value, bool) or bits is None:
            return value
        return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    return {tuple(signed(model[name]) for name in names) for model in enumerate_values(f.text(), names)}


def compare(random: Random, ways: dict[str, Any], width: int | None = None) -> None:
    """At every depth, what is new there; at the last one, everything."""
    program = compile_program(parse(random.text, "random"))
    compare_program(program, watched(program, random.watched), ways, random.text, width)


def compare_program(
    program: Program,
    exprs: list[Expr],
    ways: dict[str, Any],
    text: str,
    width: int | None = None,
    deepest: int = DEEPEST,
) -> None:
    """The same for a program. The expressions are of its variables, or its properties have them."""
    most = longest_run(program, deepest, width)
    truth = reachable_values(program, exprs, deepest if most is None else most, width)
    for name, way in ways.items():
        for depth in range(len(truth)):
            last = depth == len(truth) - 1
            before = set() if last or depth == 0 else truth[depth - 1]
            assert solved(program, way, exprs, depth, width, before) == truth[depth] - before, (
                f"{name}, depth {depth}:\n{text}"
            )
