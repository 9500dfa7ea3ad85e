"""Conveyor Belt: servers with a DBMS each that run one SQL application, serializably (thesis 004, sections 2.4 to 2.6).

`node.py` and `visit.py` are Algorithm 2. Around them: `database.py` says what is asked of a DBMS, `sqlite.py` and
`postgresql.py` answer; `log.py` says what is asked of the durable log, `embedded.py` and `etcd.py` answer; `server.py` is
the process, `supervisor.py` starts several, `client.py` calls them.
"""
