"""The DBMS of a server: SQLite or PostgreSQL.

In: requests of a node (`database.py`) and SQL of the functions of the application. Out: transactions, their updates as
data, and connections for the functions. Open `database.py` first. `sqlite.py` and `postgresql.py` implement it.
"""
