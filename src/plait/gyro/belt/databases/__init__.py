"""A server's DBMS: SQLite or PostgreSQL.

In: what a node asks (`database.py`) and the SQL of the application's functions. Out: transactions, their updates as
data, and connections that the functions can use. Open `database.py` first; `sqlite.py` and `postgresql.py` implement
it.
"""
