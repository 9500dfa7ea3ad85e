"""What operators need around a server: certificates, health, limits, log lines, private files, the
lifetime of processes, and locks on folders.

In: the settings of a cluster, and the node of a server. Out: parts that server processes and their supervisor use. Open
`health.py` first: it says when a server can do its work.
"""
