"""The tables of the papers, measured again: one file per table.

In: whether to measure quickly. Out: a `Table` with the measured and the published values. Open `dbss.py` first.
"""
