"""The same protocols for other model checkers, to compare with: Spin, Stateright and TLC.

`models/` states them, each just as the zoo does: the same processes, messages and steps, so that a search without
reduction must find exactly the same states. Every checker runs in a process of its own, Plait too.
"""
