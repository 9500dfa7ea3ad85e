"""Speed and memory of the engine, compared with targets. One benchmark per file.

In: `Options`. Out: a `Table` with targets. Open `throughput.py` first; `common.py` has the shared functions. Ratios
compare runs of the same session. A missed target is reported but is not an error, because machines differ. Different
counts or verdicts are an error.
"""
