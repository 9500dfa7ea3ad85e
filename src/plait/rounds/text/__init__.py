"""A round-based protocol as readable Python.

In: the source of a System's handlers. Out: the text of its phase structure (`structure.py`, `plait rounds show`) and of its
sequential program (`program.py`, `plait rounds emit`). Open `upon.py` first: it defines how a handler is described.
"""
