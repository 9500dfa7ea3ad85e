"""The language of programs with shared variables: from text or Python functions to a `Program`.

In: a `.plait` file or Python source. Out: a `Program` of sequential processes whose instructions are atomic. Open
`program.py` first. Both front ends (`parser.py`, `python.py`) make the tree of `syntax.py`. `compiler.py` checks it and
translates it.
"""
