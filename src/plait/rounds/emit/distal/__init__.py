"""The sequential program of a Distal text as a Distal text: one process, in which each variable is a list.

In: a `Description` of a System that was read from a Distal text. Out: the text. `rewriting.py` rewrites the expressions and
statements of the protocol, `program.py` writes Algorithm 1 around them. Open `program.py` first.
"""
