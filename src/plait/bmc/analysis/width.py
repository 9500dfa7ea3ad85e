"""Check that the numbers of a program fit in a given number of bits."""

from __future__ import annotations

import dataclasses

from plait.bmc.program.definition import Constant, Domain, Program
from plait.kernel.errors import Argument, UsageError


def fits(program: Program, width: int | None) -> None:
    """Raise an error if a constant does not fit in `width` bits."""
    if width is None:
        return
    if not 2 <= width <= 64:
        raise UsageError((Argument("width", width), " does not fit"), hint="give 2 to 64 bits")
    most = (1 << (width - 1)) - 1
    lost = [found for found in _constants(program) if not -most - 1 <= found <= most]
    if lost:
        found = max(lost, key=abs)
        raise UsageError(
            f"the number {found} does not fit in {width} bits", hint=f"{width} bits hold {-most - 1} to {most}"
        )


def _constants(program: Program) -> list[int]:
    """All numbers of a program, including the ends of ranges and the branches of `choose`."""
    found: list[int] = []

    def walk(node: object) -> None:
        if isinstance(node, Constant):
            found.append(int(node.value))
        elif isinstance(node, Domain):
            found.extend(end for end in (node.low, node.high) if end is not None)
        elif isinstance(node, tuple):
            for part in node:
                walk(part)
        elif dataclasses.is_dataclass(node) and type(node).__module__ == Constant.__module__:
            for field in dataclasses.fields(node):
                if field.name != "variable":
                    walk(getattr(node, field.name))

    for variable in program.variables:
        found += [int(v) for v in (*variable.initial, variable.low, variable.high) if v is not None]
    for code in program.processes:
        for step in code.instructions:
            walk(step.body)
            walk(step.inputs)
    for e in (*program.initial, *(p.condition for p in program.properties)):
        walk(e)
    return found
