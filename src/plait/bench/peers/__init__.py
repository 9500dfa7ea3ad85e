"""Compares Plait with Spin, Stateright and TLC on the same protocols.

In: `Options`. Out: a `Table` with a row per checker. Open `table.py` first. `models/` has the protocols in the
languages of the other checkers, with the same processes, messages and steps as in the zoo. So a search without
reduction must find exactly the same states. `checker.py` is the interface of a checker. Each checker runs in its own
process, Plait too.
"""
