"""From the tree to a `Program`: functions come in, the code of each process goes out. Open `translator.py` first.

`translator.py` has functions and variables, `statements.py` statements, `expressions.py` values and `memory.py` objects,
pointers and accesses; `values.py` is what they know about a value. `model.py` has what all processes share. `library.py`,
`pthreads.py` and `threads.py` know the functions of the C library, of SV-COMP and of pthreads.
"""
