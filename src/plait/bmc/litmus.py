"""Litmus tests with random instructions, for benchmarks (Saissi 2019, section 4.6). A seed determines the program."""

from __future__ import annotations

import random

SHARED = ("a", "b", "c", "d", "e", "f")
INSTRUCTIONS = 8
SEED = 2019

_SOMETIMES = {4: (3, 4), 5: (11, 6), 6: (2, 12), 7: (10, 5), 8: (2, 3)}
"""By number of processes: values of a and b that few random runs of 20 steps reach."""
_NEVER = {5: (15, 14, 15)}
"""Values of a, b and d that never occur in the same state, although each value occurs."""


def litmus(processes: int, seed: int = SEED) -> str:
    """A program of N processes. Each one has a few random accesses to shared variables and to a shared array."""
    dice = random.Random(seed * 100 + processes)
    lines = [
        f"// Random accesses of {processes} processes: litmus({processes}), seed {seed} (Saissi 2019, section 4.6).",
        "atomic statements;",
        f"int {', '.join(f'{name} = 0' for name in SHARED)};",
        "int B[4] = 0;",
    ]
    for p in range(processes):
        lines += ["", f"process p{p} {{", "  int r = 0;"]
        lines += [f"  {_instruction(dice)}" for _ in range(INSTRUCTIONS)]
        lines.append("}")
    if seed == SEED and processes in _SOMETIMES:
        a, b = _SOMETIMES[processes]
        lines += ["", f"reachable sometimes: a == {a} && b == {b};"]
    if seed == SEED and processes in _NEVER:
        a, b, d = _NEVER[processes]
        lines += [f"always never: !(a == {a} && b == {b} && d == {d});"]
    return "\n".join(lines) + "\n"


def _instruction(dice: random.Random) -> str:
    shared, other, number = dice.choice(SHARED), dice.choice(SHARED), dice.randint(1, 7)
    return dice.choice([
        f"r = {shared};",
        f"{shared} = (r + {number}) % 16;",
        f"{shared} = {number};",
        f"{shared} = ({other} + r) % 16;",
        f"B[{shared} % 4] = (r + {number}) % 16;",
        f"r = B[{shared} % 4];",
        f"r = (r + {shared}) % 16;",
    ])  # fmt: skip
