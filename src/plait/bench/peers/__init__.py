"""Compares Plait with Spin, Stateright and TLC on the same protocols.

In: `Options`. Out: a `Table` with a row per checker. Open `table.py` first. `models/` has the protocols in the
languages of the other checkers, with the same processes, messages and steps as in the zoo. So a search without
reduction must find exactly the same states. `checker.py` is the interface of a checker. `spin.py`, `stateright.py`,
`tlc.py` and `own.py` (Plait) implement it. `cbmc.py` compares with CBMC on C programs, in `models/c`. Each checker runs in
its own process: `process.py` starts it, and `watch.py` measures it.
"""
