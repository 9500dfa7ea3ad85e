"""The durable log of a cluster: all updates of global operations in one order, and the local updates of each server.

In: entries with an epoch, local updates with an incarnation. Out: the accepted ones. Open `log.py` first.
`embedded.py` (one machine), `etcd.py` and `nats.py` (several machines) implement it. `address.py` reads where they are,
`etcd_client.py` and `jetstream.py` talk to the engines, `journal.py` is a stream with compare-and-append.
"""
