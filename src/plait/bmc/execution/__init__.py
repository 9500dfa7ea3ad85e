"""Runs of a program, executed.

In: a `Program`. Out: its steps and states, one by one or all of them, and Traces. Open `interpreter.py` first: it
defines what a program means.
"""
