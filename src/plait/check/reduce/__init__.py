"""Reductions: which ones to apply, and the part of them that is done in Python.

In: a System, its properties, and the reductions that the user asked for. Out: a plan (which reductions apply, and why
the others do not) and a Tabulation that hides auxiliary fields from the engine. Open `plan.py` first.
`decomposition.py` sorts fields into relevant and auxiliary ones, `relevance.py` is the Tabulation that leaves the
auxiliary ones out, and `asymmetry.py` explains why a declared symmetry is wrong. Partial-order reduction and symmetry
are applied in the native engine.
"""
