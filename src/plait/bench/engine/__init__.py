"""Benchmarks of the engine: one file per section, each with `run(settings)`, which returns a Section.

In: which sections, and how much to measure. Out: tables of figures, and all raw figures as JSON. Open `run.py` first;
`common.py` has what the sections share.
"""
