"""Liveness: temporal properties under fairness.

In: temporal formulas, fairness assumptions, and a runner of the model. Out: for each formula a fair run that violates
it, as a lasso (a stem and a loop), or none. Open `search.py` first. `buchi.py` turns a formula into an automaton.
`lasso.py` shortens a lasso and defines when its loop is fair. `repetition.py` decides whether a saved run still repeats
fairly on another model.
"""
