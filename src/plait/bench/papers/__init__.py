"""The tables of the papers, measured again. One file per benchmark.

In: `Options`. Out: a `Table` with the measured and the published values. Open `dbss.py` first; `search.py` runs the
checks of `dbss.py` and `quorum.py`. `projections.py` adds programs to the table of `bmc.py`: those where projections pay.
`epa_speed.py` adds the speed of recording and reading to the table of `epa.py`.
"""
