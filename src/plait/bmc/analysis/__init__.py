"""Static analysis: facts about a program that need no solver run per property.

In: a `Program`. Out: ranges of values, the instructions that can influence a property, invariants, projections. Open
`relevance.py` first: it decides which instructions an encoding can omit.
"""
