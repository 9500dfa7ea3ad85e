"""Execution of programs.

In: a `Program`. Out: its steps and states, one by one or all of them, Traces with an explanation, and witnesses. Open
`interpreter.py` first: it defines the semantics of a program. `tracing.py` makes a Trace of a run.
"""
