"""Static analysis of a model's source text.

In: the handlers, guards and properties of a System, as syntax trees. Out: a graph that says which fields, tests and
effects depend on which fields. It shows why a field is relevant. Open `dependence.py` first: it has the graph and the
proof. `dataflow.py` walks one handler and states the laws; `statements.py`, `expressions.py` and `calls.py` do the parts.
`purity.py` is the white list of operators and callees. `inference.py` finds types, `classes.py` the classes of all values.
`plait.ir.definition` finds the syntax tree of a function and the values of its names.
"""
