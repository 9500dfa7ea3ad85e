"""The zoo: one protocol per module, each with its properties and a faulty twin.

A module defines messages, processes and one function that has the module's name and returns a `System`. The keyword
parameters of this function are the sizes and the faults. The module docstring says what the protocol does, what was
simplified, and which faults can be planted. To add a protocol, open `paxos.py` first, then "Adding a protocol to the
zoo" in CONTRIBUTING.md. Other checkers (Spin, TLC, Stateright) publish state counts for several of these models, so
the zoo is also a test of the engine. Modules whose names begin with an underscore are shared by several protocols.
"""
