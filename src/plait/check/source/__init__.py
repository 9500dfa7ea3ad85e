"""What can be read from the source text of a model, without running it.

In: the handlers, guards and properties of a System, as syntax trees. Out: a graph that says which fields, tests and
effects depend on which fields, and so why a field is relevant. Open `dependence.py` first: it has the graph and the
proof. `dataflow.py` walks one handler with the help of `statements.py`, `expressions.py` and `calls.py`; `purity.py`
lists the operations that can neither raise nor change their arguments; `definition.py` finds the syntax tree of a
function and what its names stand for.
"""
