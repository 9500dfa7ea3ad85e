"""The small language: programs with shared variables as text, or as Python functions.

In: text (`parser.py`) or functions marked `@thread` (`python.py`). Both make the tree of `syntax.py`. Out: a `Program`.
Open `compiler.py` first: it makes the program. `accesses.py` divides statements into steps of one shared access.
"""
