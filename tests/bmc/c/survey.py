"""A long run of the random tests: `python -m tests.bmc.c.survey 1000` compares 1000 programs with gcc.

Every tenth program with threads is also given to the native enumeration and to both encodings: they must call an outcome
of gcc possible, and an outcome that no run has impossible. It prints each difference with its source, and at the end how
many programs and runs there were. The second argument is the first seed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from plait.bmc.options import Encoding
from tests.bmc.c.random_programs import Outcome, Sequential, Threaded, compiled, outcomes, reachable, run

ENCODINGS: tuple[Encoding, ...] = ("explicit", "clock", "steps")


def searched(program: Threaded, source: str, folder: Path, outcome: Outcome, possible: set[Outcome]) -> int:
    """Ask all searches about an outcome, and about one that no run has. Returns how many did not decide it in time."""
    undecided = 0
    for encoding in ENCODINGS:
        for asked in (outcome, (outcome[0] ^ 1, *outcome[1:])):
            answer = reachable(source, folder, program.watched, asked, encoding)
            undecided += answer is None
            assert answer in (None, asked in possible), f"{encoding} says {answer} about {asked}\n{source}"
    return undecided


def main(count: int, first: int = 0, runs: int = 10) -> int:
    differences = total = several = undecided = 0
    for seed in range(first, first + count):
        program = (Sequential, Threaded)[seed % 2](seed)
        source = program.source()
        with TemporaryDirectory() as folder:
            possible = outcomes(source, Path(folder), program.watched)
            binary = compiled(source, Path(folder))
            found = {run(binary, n) for n in range(runs if isinstance(program, Threaded) else 1)}
            if isinstance(program, Threaded) and seed % 20 == 1:
                undecided += searched(program, source, Path(folder), min(found), possible)
        total += runs if isinstance(program, Threaded) else 1
        several += len(possible) > 1
        exact = isinstance(program, Threaded) or possible == found
        if not found <= possible or not exact:
            differences += 1
            print(f"seed {seed}: {sorted(found - possible)} is not among {len(possible)} outcomes\n{source}")
    print(f"{count} programs ({several} with several outcomes), {total} runs, {differences} differences")
    print(f"{undecided} questions to searches were not decided in time")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
