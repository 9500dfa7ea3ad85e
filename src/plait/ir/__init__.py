"""Python functions, lowered to one small representation.

In: the functions that a user wrote (handlers, guards, properties, monitors), read from their source. Out: a `Program`
(`nodes.py`), which the virtual machine executes without Python (`rust/src/vm/`), and for each function that cannot be
lowered the construct, the file and the line. Open `nodes.py` first, then `lower.py`. `program.py` has the table of
functions, `classes.py` that of classes. One function is lowered by `statements.py`, `patterns.py`, `calls.py`,
`effects.py` and `expressions.py`, on the names of `frame.py` and `scope.py`. `builtins.py` lists what the virtual machine
knows of the standard library. `definition.py` finds the syntax tree of a function.
"""
