"""PostgreSQL as the DBMS of a server.

In: requests of a node. Out: transactions and their updates. Open `database.py` first. `connection.py` executes statements of
the application, `rows.py` records and applies updates, `outbox.py` keeps those of local operations, and `group.py` runs
global operations at the same time. `values.py` is what columns store. `role.py` is what the server may do, and
`server.py` starts a PostgreSQL.
"""
