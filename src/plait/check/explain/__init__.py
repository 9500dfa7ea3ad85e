"""From transitions of the engine to something that a person can read.

In: transitions that a search found, or a saved Trace. Out: a Trace that was executed on the model, short, with the
reasons for its violation. Open `tracing.py` first: it makes the Trace. `lifting.py` gives runs of a reduced search the
real values of all fields, `tidy.py` leaves steps out and reorders them, `why.py` finds the reasons, `replay.py`
executes a saved Trace again, `execute.py` executes a run that another analysis found, and `graph.py` lists the states
and transitions of a small model.
"""
