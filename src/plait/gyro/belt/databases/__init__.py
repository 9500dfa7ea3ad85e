"""The DBMS of a server: SQLite or PostgreSQL.

In: requests of a node (`database.py`) and SQL of the functions of the application. Out: transactions, their updates as
data, and connections for the functions. Open `database.py` first. `sqlite.py` and `postgresql.py` implement it.
`dbapi.py` is what functions are given, `sqlite_connection.py` and `postgresql_connection.py` execute its statements, and
`alchemy.py` is the same for SQLAlchemy. `postgresql_server.py` starts a server of PostgreSQL. A server chooses its DBMS in
`plait.gyro.belt.server`. `plait.bench.gyro.mariadb` is a third implementation, which is only measured.
"""
