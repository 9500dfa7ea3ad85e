"""Distal, the language of protocols in Sequentialization (Fig. 1 and Fig. 6), translated to Plait models in Python.

In: a Distal text. Out: the Python source of a model, or its module. Open `translation.py` first: it translates the tree
that `parser.py` makes; `expressions.py` translates expressions and checks their types. docs/reference/distal.md has the
semantics.
"""
