"""Reductions: which ones to apply, and the part of them that is done in Python.

In: a System, its properties, and the reductions that the user asked for. Out: a plan (which reductions apply, and why
the others do not) and a Tabulation that hides auxiliary fields from the engine. Open `plan.py` first.
`decomposition.py` divides fields into relevant and auxiliary ones, by what `plait.check.source` reads in handlers.
`relevance.py` is the Tabulation that leaves the auxiliary fields out. `asymmetry.py` explains why a declared symmetry
is wrong. The native engine does partial-order reduction and symmetry reduction.
"""
