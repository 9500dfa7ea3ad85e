"""MariaDB as the DBMS of a server.

In: requests of a node. Out: transactions and their updates. Open `database.py` first. `connection.py` connects, and executes
statements of the application. `rows.py` records and applies updates, `outbox.py` keeps those of local operations, and
`visit.py` runs global operations. `values.py` is what columns store. `limits.py` is what a server and a schema must not
have, and `server.py` starts a MariaDB.
"""
