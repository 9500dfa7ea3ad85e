"""Local updates in the log: a server whose disk is lost is rebuilt from it, and a cluster is backed up.

In: the outbox of a DBMS, and the log. Out: streams of local updates, rebuilt databases, files with a consistent cut. Open
`shipper.py` first. `rebuild.py` and `backup.py` read what it has shipped.
"""
