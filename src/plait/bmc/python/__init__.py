"""Threads of Python: from a function that uses threading to a Program."""
