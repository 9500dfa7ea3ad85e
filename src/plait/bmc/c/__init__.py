"""C with POSIX threads: a `.c` or preprocessed `.i` file comes in, a `Program` goes out. Open `load.py` first.

`unit.py` and `syntax.py` read the file with libclang into the tree of `tree.py`, whose expressions have the types of
`types.py`; `usage.py` finds out how functions use their variables. `translator.py` (statements and functions),
`expressions.py` and `memory.py` (objects and pointers) write the code of each process. `library.py`, `pthreads.py` and
`threads.py` know the functions of the C library, of SV-COMP and of pthreads. `headers/` has the headers that programs
include, so that the result does not depend on those of the machine.
"""
