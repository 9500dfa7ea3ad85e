"""Latency and throughput of `plait gyro serve`, beside one central server and beside Galera.

In: a workload and a number of servers. Out: measurements per site. Open `measure.py` first; `workloads.py` has the clients,
`galera.py` and `mariadb.py` start the servers to compare with.
"""
