"""Check that the numbers of a program fit in a given number of bits."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from plait.bmc.program.definition import Constant, Domain, Program, Wrap
from plait.kernel.errors import Argument, UsageError


def fits(program: Program, width: int | None) -> None:
    """Raise an error if a constant does not fit in `width` bits."""
    if width is None:
        return
    if not 2 <= width <= 64:
        raise UsageError((Argument("width", width), " does not fit"), hint="give 2 to 64 bits")
    if typed(program):
        raise UsageError(
            (Argument("width", width), f" does not fit: the numbers of {program.name} have types with a width"),
            hint="leave it out",
        )
    most = (1 << (width - 1)) - 1
    lost = [found for found in _constants(program) if not -most - 1 <= found <= most]
    if lost:
        found = max(lost, key=abs)
        raise UsageError(
            f"the number {found} does not fit in {width} bits", hint=f"{width} bits hold {-most - 1} to {most}"
        )


def typed(program: Program) -> bool:
    """Whether a number of a program has a type with a number of bits."""
    return any(v.bits is not None for v in program.variables) or any(isinstance(n, Wrap) for n in _nodes(program))


def _constants(program: Program) -> list[int]:
    """All numbers of a program, including the ends of ranges and the branches of `choose`."""
    found: list[int] = []
    for variable in program.variables:
        found += [int(v) for v in (*variable.initial, variable.low, variable.high) if v is not None]
    for node in _nodes(program):
        if isinstance(node, Constant):
            found.append(int(node.value))
        elif isinstance(node, Domain):
            found += [end for end in (node.low, node.high) if end is not None]
    return found


def _nodes(program: Program) -> Iterator[object]:
    """All actions, expressions and domains of a program."""
    steps = [step for code in program.processes for step in code.instructions]
    stack: list[object] = [part for step in steps for part in (step.body, step.inputs)]
    stack += [*program.initial, *(p.condition for p in program.properties)]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack += node
        elif isinstance(node, msgspec.Struct):
            yield node
            stack += [getattr(node, field) for field in node.__struct_fields__ if field != "variable"]
