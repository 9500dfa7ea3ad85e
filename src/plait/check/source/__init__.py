"""Static analysis of a model's source text.

In: the handlers, guards and properties of a System. Out: a graph that says which fields, tests and effects depend on which
fields. It shows why a field is relevant. `plait.ir` reads the source: the analysis walks the intermediate representation
(`plait.ir.nodes`), in which names and calls are resolved. Open `dependence.py` first: it has the graph and the proof.
`dataflow.py` follows one handler and states the laws; `statements.py`, `expressions.py` and `calls.py` do the parts.
`purity.py` is the white list of operators and callees. `inference.py` finds types, `classes.py` the classes of all values.
"""
