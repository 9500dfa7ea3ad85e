"""Runs of a program as formulas.

In: a `Program`, a depth and a property. Out: SMT-LIB text, the answer of a solver, and from its model the run. Open
`steps.py` first, then `clock.py`: the two encodings. `symbolic.py` says what an instruction does, `solver.py` alone
knows Z3.
"""
