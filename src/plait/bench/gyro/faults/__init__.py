"""Servers under faults: randomised runs, each checked for serializability, and for what was acknowledged and is lost.

In: a number of runs. Out: a table with one row per combination of faults. Open `run.py` first. `cluster.py` starts real
servers, `nemesis.py` has the faults, `network.py` the links that it cuts. `board.py` is the application, `workload.py`
calls it at random and judges a run, `history.py` has the judges.
"""
