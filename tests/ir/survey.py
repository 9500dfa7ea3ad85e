"""A long comparison of random functions: `python -m tests.ir.survey 100000 [first seed]`."""

from __future__ import annotations

import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.ir.against_cpython import survey

EACH = 200


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    calls = answered = raised = 0
    bails: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + (count + EACH - 1) // EACH):
            found = survey(seed, EACH, Path(folder))
            calls, answered, raised = calls + found.calls, answered + found.answered, raised + found.raised
            bails += found.bails
            refused += found.refused
            for difference in found.differences:
                print(f"-- seed {seed}\n{difference}", flush=True)
    print(f"{calls} calls: {answered} equal, {raised} raise, {sum(bails.values())} bails")
    print("bails:", *(f"  {n:6} {reason}" for reason, n in bails.most_common(25)), sep="\n")
    print("not lowered:", *(f"  {n:6} {reason}" for reason, n in refused.most_common(25)), sep="\n")


if __name__ == "__main__":
    main()
