"""What is known of a program before a solver runs.

In: a `Program`. Out: ranges of values, the instructions that can influence a property, invariants, projections. Open
`relevance.py` first: it decides what an encoding can leave out.
"""
