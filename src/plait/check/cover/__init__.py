"""Coverage: which parts of a model a search exercised.

In: the calls of handlers, guards and properties during a search. Out: a `plait.kernel.coverage.Coverage`, and a verdict
that warns about properties that hold vacuously. Open `recorder.py` first: it listens to the calls. `conditions.py`
rewrites functions so that they record the values of their conditions. `summary.py` adds the result to the verdict.
"""
