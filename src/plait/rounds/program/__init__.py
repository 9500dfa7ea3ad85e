"""The parts of a sequential program.

In: the handlers of a System, and the mail of a round. Out: the steps of one process in one round, with what they send.
Open `turn.py` first: a turn is one process's share of Algorithm 1. It runs the user's handlers through `protocol.py`.
"""
