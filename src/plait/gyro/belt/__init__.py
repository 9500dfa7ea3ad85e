"""Conveyor Belt: several servers, each with its own DBMS, run one SQL application (Saissi 2019, sections 2.4 to 2.6).

In: an application and its Classification. Out: servers that answer calls over HTTP; executions are serializable. Open
`node.py` first: it is Algorithm 2. `databases/` has the DBMSs, `logs/` the durable log. `server.py` is a server
process, `supervisor.py` starts several, `client.py` calls them.
"""
