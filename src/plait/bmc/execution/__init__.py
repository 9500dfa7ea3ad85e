"""Execution of programs.

In: a `Program`. Out: its steps and states, one by one or all of them, and Traces. Open `interpreter.py` first: it
defines the semantics of a program.
"""
