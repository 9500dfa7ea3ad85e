"""Parts of quantified properties.

In: a property, as the syntax tree of a function of the view. Out: whether it is a conjunction or a disjunction over
processes or pairs of processes, and a function of the program for each. Open `quantifiers.py`: it has the rules.
`inlining.py` puts helpers in place first.
"""
