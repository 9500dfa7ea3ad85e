"""Error propagation analysis: recording, sanitizing, reversibility, comparison, fault campaigns (Saissi 2019, ch. 5).

In: C and C++ sources, or recorded traces. Out: a recorded trace, a comparison of two traces, or the table of a campaign.
Open `recording.py` first: a recording is what all analyses read. `instrumentation/` makes a program record itself, `run.py`
runs it, `comparison.py` and `reversibility.py` analyse it, `campaign.py` injects `faults.py`, `output/` shows the results.
"""
