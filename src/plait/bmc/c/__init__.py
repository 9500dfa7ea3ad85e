"""C with POSIX threads: a `.c` or preprocessed `.i` file comes in, a `Program` goes out. Open `load.py` first.

`reading/` reads the file with libclang into a tree whose expressions have types. `translation/` writes the code of each
process. `headers/` has the headers that programs include, so that the result does not depend on those of the machine.
"""
