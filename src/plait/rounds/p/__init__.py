"""P, the language of communicating state machines, translated to Plait models in Python.

In: the text of a P program. Out: the Python source of a model with a function for each test, or its module. Open
`translation.py` first: it translates the tree that `parser.py` makes of the words of `lexer.py`. `machine_class.py` has
machines, `statements.py` functions, `receives.py` functions that wait for events, and `expressions.py` expressions, with the
types of `value_types.py`. `machine.py` has what translated machines have in common at run time. docs/reference/p.md has the
semantics.
"""
