"""Python's own threads: ordinary code with `threading`, `queue` or `asyncio` becomes a Program.

In comes a function of a Python file: open `load.py` first. The module is imported, and the source of the function and
of all that it calls is translated. All functions are inlined, so each thread is one process. Types are inferred:
`translation.py` is one pass over the program, and passes are repeated until nothing is new. `values.py` has
the types, `heap.py` the objects. The translation of one thread is a class in layers: `code.py` (variables, exceptions),
`library/` (what Python offers), `objects.py`, `calls.py`, `expressions.py`, `statements.py`. `liveness.py` then resets
variables that are not needed any more. `assignment.py` finds local variables that may be read before they are assigned.

A step is what CPython's global lock guarantees: one read or write of an attribute, a global variable, a variable of a
closure or an item, or one call of a method of a built-in object.
"""
