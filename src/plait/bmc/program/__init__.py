"""Programs: what every front end produces and every analysis reads.

In: declarations, and code of processes with labels and jumps (`builder.py`), from the small language, C or Python. Out:
a `Program` of variables and sequential processes of atomic steps. Open `definition.py` first.
"""
