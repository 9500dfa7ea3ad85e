"""Tests of `plait.check`. The folder is flat: most tests check a whole system, and so pass through every folder of the room.

A test of one file has the name of that file (`test_buchi.py`, `test_tidy.py`); the others are named for what they check.
"""
