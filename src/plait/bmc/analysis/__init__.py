"""Static analysis: facts about a program that need no solver run per property.

In: a `Program`. Out: ranges of values, the instructions that can influence a property, invariants, projections;
deadlock and data races as expressions. Open `relevance.py` first: it decides which instructions an encoding can omit.
Then `preconditions.py`, for `waiting.py` (deadlock) and `races.py`.
"""
