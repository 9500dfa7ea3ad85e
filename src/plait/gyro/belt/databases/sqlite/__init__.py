"""SQLite as the DBMS of a server.

In: requests of a node. Out: transactions and their updates. Open `database.py` first. `visit.py` is the transaction of a
visit, `connection.py` executes statements of the application, `changeset.py` records what they change, `outbox.py` keeps
the updates of local operations, `changes.py` follows changes of the configuration, and `values.py` is what columns store.
"""
