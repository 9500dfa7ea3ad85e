"""The footprint of SQL: what a statement reads and writes, and in which rows.

In: a schema (DDL) and one SQL statement. Out: entries. An entry is a set of attributes with a condition on their row.
Open `statements.py` first. `queries.py` reads SELECT and resolves names, `conditions.py` translates the conditions of all
statements to terms (`terms.py`), `schema.py` reads the DDL, and `kind.py` says which
values of columns can be compared.
"""
