"""The sequential program as plain Python, which imports nothing of Plait.

In: a `Description`. Out: a Python file with the protocol's own code (`definitions.py` cuts it out of its modules) between
two fixed texts: `language.txt` has what the protocol is written with, `algorithm.txt` has Algorithm 1 and a search of all
its runs. Open `program.py` first.
"""
