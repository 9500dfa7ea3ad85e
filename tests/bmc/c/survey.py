"""A long run of the random tests: `python -m tests.bmc.c.survey 1000` compares 1000 programs with gcc.

It prints each difference with its source, and at the end how many programs and runs there were. The second argument is
the first seed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bmc.c.random_programs import Sequential, Threaded, compiled, outcomes, run


def main(count: int, first: int = 0, runs: int = 10) -> int:
    differences = total = several = 0
    for seed in range(first, first + count):
        program = (Sequential, Threaded)[seed % 2](seed)
        source = program.source()
        with TemporaryDirectory() as folder:
            possible = outcomes(source, Path(folder), program.watched)
            binary = compiled(source, Path(folder))
            found = {run(binary, n) for n in range(runs if isinstance(program, Threaded) else 1)}
        total += runs if isinstance(program, Threaded) else 1
        several += len(possible) > 1
        exact = isinstance(program, Threaded) or possible == found
        if not found <= possible or not exact:
            differences += 1
            print(f"seed {seed}: {sorted(found - possible)} is not among {len(possible)} outcomes\n{source}")
    print(f"{count} programs ({several} with several outcomes), {total} runs, {differences} differences")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
