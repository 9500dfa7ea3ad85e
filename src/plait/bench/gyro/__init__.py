"""Latency and throughput of `plait gyro serve`, compared with a central server, Galera, and partitioned data.

In: which figures to measure. Out: a `Table` with a row per configuration. Open `table.py` first; `deployment.py` starts
servers and clients, `workloads.py` defines the operations of clients, `galera.py` and `mariadb.py` run Galera,
`partitioned.py` runs transactions over partitioned data, and `parallel.py` runs global operations of one server.
"""
