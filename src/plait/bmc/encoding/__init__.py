"""Encodings: runs of a program as formulas.

In: a `Program`, a depth and a property. Out: SMT-LIB text, the answer of a solver, and the run from its model. Open
`steps.py` first, then `clock.py`: the two encodings. `symbolic.py` defines the effect of an instruction. `solvers.py`
chooses the solver and calls bitwuzla and cvc5. `z3_solver.py` is the only file that uses Z3.
"""
