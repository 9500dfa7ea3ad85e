"""The sequential program of a Distal text as a P program: one machine, in which each variable is a sequence.

In: a `Description` of a System that was read from a Distal text. Out: the text. `program.py` takes the Distal text of
`--to distal` and writes the machine around the expressions that `translation.py` translates. Open `program.py` first.
"""
