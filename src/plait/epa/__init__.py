"""Error propagation analysis: recording, sanitizing, reversibility, comparison, fault campaigns (Saissi 2019, ch. 5).

In: C and C++ sources, or recorded traces. Out: a recorded trace, a comparison of two traces, or the table of a
campaign. Open `recording.py` first: all analyses read a recording. `instrumentation/` builds a program that records
itself; `compiler/` does so in the place of clang. `run.py` runs it. `comparison.py` and `reversibility.py` analyse its
traces. `campaign.py` injects the faults of `faults.py`; `oracle.py` decides whether the results of a run (`files.py`:
files that it wrote) are correct. `replay.py` lets a run follow another one. `output/` shows the results.
"""
