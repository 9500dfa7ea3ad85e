"""The footprint of SQL: what a statement reads and writes, and in which rows.

In: a schema (DDL) and one SQL statement. Out: entries of attributes with the condition on their row. Open `statements.py`
first; `queries.py` has what it shares with SELECT, `terms.py` the conditions.
"""
