"""Numbers of so many bits: whether those of a program have room in them."""

from __future__ import annotations

import dataclasses

from plait.bmc.language.program import Constant, Domain, Program
from plait.kernel.errors import UsageError


def fits(program: Program, width: int | None) -> None:
    """With so many bits, every constant must have room."""
    if width is None:
        return
    if not 2 <= width <= 64:
        raise UsageError(f"--width {width} does not fit", hint="give 2 to 64 bits")
    most = (1 << (width - 1)) - 1
    lost = [found for found in _constants(program) if not -most - 1 <= found <= most]
    if lost:
        found = max(lost, key=abs)
        raise UsageError(f"the number {found} has no room in {width} bits", hint=f"they hold {-most - 1} to {most}")


def _constants(program: Program) -> list[int]:
    """All numbers of a program, the ends of ranges and the branches of `choose` too."""
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
