"""From transitions of the engine to traces that people can read.

In: the report of a search, with the states that violate properties, or a saved Trace. Out: a Verdict, with short Traces
that were executed on the model and the reasons for their violations. Open `verdicts.py` first: it makes the Verdict
from the report. `counterexample.py` makes the Trace of a violation with the next four files. `tracing.py` turns
transitions into a Trace. `lifting.py` adds the values of all fields to runs of a reduced search. `tidy.py` leaves steps
out and reorders them. `why.py` finds the reasons, `waiting.py` says who waits for what in a deadlock. `replay.py` executes a
saved Trace again. `execute.py` executes a run
that another analysis found. `graph.py` lists the states and transitions of a small model.
"""
