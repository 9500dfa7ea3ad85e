"""Rounds: the round structure of an asynchronous protocol, and its sequential form (paper 002)."""
