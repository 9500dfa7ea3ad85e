"""Speed and memory of the engine against targets, as ratios taken in one run: one benchmark per file.

In: `Options`. Out: a `Table` with targets. Open `throughput.py` first; `common.py` has what the benchmarks share. Missing a
target is reported, not an error: machines differ. Counts or verdicts that differ are an error.
"""
