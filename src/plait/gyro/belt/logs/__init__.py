"""The durable log of a cluster: all updates of global operations, in one order.

In: entries with an epoch. Out: the accepted entries. Open `log.py` first. `embedded.py` (one machine) and `etcd.py`
(several machines) implement it.
"""
