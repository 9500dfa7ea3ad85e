"""What test files of more than one folder import: models to try, ways to run a check, and comparisons.

Nothing here is a test. Start with `agreement.py`, the comparison of a verdict with the oracle (`tests/oracle/`).
"""
