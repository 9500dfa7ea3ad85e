"""A round-based protocol as readable Python.

In: the source of a System's handlers. Out: the text of its phase structure (`structure.py`, `plait rounds show`). Open
`upon.py` first: it defines how a handler is described. `plait.rounds.emit` writes the sequential program.
"""
