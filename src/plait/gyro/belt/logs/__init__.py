"""The durable log of a cluster: the updates of global operations in one order.

In: entries with an epoch. Out: the entries that were accepted. Open `log.py` first; `embedded.py` (one machine) and
`etcd.py` (several machines) implement it.
"""
