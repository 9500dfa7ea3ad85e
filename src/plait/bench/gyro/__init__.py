"""Latency and throughput of `plait gyro serve`, beside one central server and beside Galera.

In: which figures to measure. Out: a `Table` with a row per configuration. Open `table.py` first; `deployment.py` starts
servers and clients, `workloads.py` says what clients do, `galera.py` and `mariadb.py` are the DBMS to compare with.
"""
