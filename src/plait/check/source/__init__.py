"""Static analysis of a model's source text.

In: the handlers, guards and properties of a System, as syntax trees. Out: a graph that says which fields, tests and
effects depend on which fields. It shows why a field is relevant. Open `dependence.py` first: it has the graph and the
proof. `dataflow.py` walks one handler; `statements.py`, `expressions.py` and `calls.py` do the parts. `purity.py` lists
the operations that neither raise nor change their arguments. `definition.py` finds the syntax tree of a function and
the values of its names.
"""
