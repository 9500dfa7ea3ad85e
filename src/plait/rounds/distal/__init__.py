"""Distal, the language of protocols in Sequentialization (Fig. 1 and Fig. 6), translated to Plait models in Python.

In: a Distal text. Out: the Python source of a model, or its module. Open `translation.py` first: it writes the module.
`parser.py` makes a tree, `declarations.py` reads its declarations, `expressions.py`, `scope.py`, `statements.py` and
`upons.py` translate. `positions.py` finds the places of errors at run time, `layout.py` formats a text.
docs/reference/distal.md has the semantics.
"""
