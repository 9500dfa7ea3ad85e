"""The zoo: one protocol per module, each a readable model with its properties and, where sensible, its faulty twin.

A module defines processes, messages and a function of the module's own name that returns a `System`; the function's
keyword parameters are the sizes and the faults, and its docstring says what was simplified. The state counts of several
models are published by other checkers (Spin, TLC, Stateright), so the zoo is also what the engine is tested against.
Modules that begin with an underscore are what several protocols share.
"""
