"""Online change: members, operations and tables of a cluster change while its servers work.

In: a proposal of the operator. Out: entries of the log, at which all servers switch to the new configuration. Open
`configuration.py` first: it has the records, and the rules that decide what an entry does. `changes.py` is the part of
a server, `merge.py` and `follower.py` give a server the rows of the others.
"""
