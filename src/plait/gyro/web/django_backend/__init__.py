"""A database backend of Django that uses the connection of the current operation. Django imports its file `base`.

In: statements of Django's ORM, as for SQLite. Out: their execution in the transaction of the server. Outside of requests,
it uses a scratch database (`plait.gyro.web.engine`). Open `base.py` first.
"""
