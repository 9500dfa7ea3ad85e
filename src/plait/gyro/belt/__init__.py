"""Conveyor Belt: several servers, each with its own DBMS, run one SQL application (Saissi 2019, sections 2.4 to 2.6).

In: an application and its Classification. Out: servers that answer calls over HTTP; executions are serializable. Open
`node.py` first: it is Algorithm 2. `databases/` has the DBMSs, `logs/` the durable log, `replication/` what is done about
lost disks. `server.py` is a server process, `supervisor.py` starts several, `client.py` calls them. `routing.py` and
`keys.py` decide where an operation executes. `version.py` and `identity.py` decide what belongs together.
"""
