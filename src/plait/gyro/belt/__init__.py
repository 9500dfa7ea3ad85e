"""Conveyor Belt: servers with a DBMS each that run one SQL application, serializably (Saissi 2019, sections 2.4 to 2.6).

In: an application and its Classification. Out: servers that answer calls over HTTP. Open `node.py` first: it is Algorithm 2.
`databases/` has what a node asks of its DBMS, `logs/` the durable log, `server.py` is the process, `supervisor.py` starts
several, `client.py` calls them.
"""
