"""From transitions of the engine to traces that people can read.

In: transitions that a search found, or a saved Trace. Out: a short Trace that was executed on the model, with the
reasons for its violation. Open `tracing.py` first: it makes the Trace. `lifting.py` adds the values of all fields to
runs of a reduced search. `tidy.py` leaves steps out and reorders them. `why.py` finds the reasons. `replay.py` executes
a saved Trace again. `execute.py` executes a run that another analysis found. `graph.py` lists the states and
transitions of a small model.
"""
