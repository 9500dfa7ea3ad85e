"""From a C file to a tree: the path of a file comes in, functions and variables go out. Open `unit.py` first.

`syntax.py` turns the cursors of libclang (`binding.py`) into the statements and expressions of `tree.py`, with the types
of `types.py`. `usage.py` finds out how functions use their variables; `initialisers.py` which value belongs to which part.
"""
