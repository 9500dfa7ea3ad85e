"""The DBMS of a server: SQLite, PostgreSQL or MariaDB.

In: requests of a node (`database.py`) and SQL of the functions of the application. Out: transactions, their updates
as data, and connections for the functions. Open `database.py` first. The folders `sqlite`, `postgresql` and `mariadb`
implement it. `dbapi.py` is what functions are given, and `alchemy.py` is the same for SQLAlchemy. `outbox.py` is what
local operations changed, for the log. `values.py` is what columns store, for routing. A server chooses its DBMS in
`plait.gyro.belt.server`.
"""
