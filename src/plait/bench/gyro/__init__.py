"""Latency and throughput of `plait gyro serve`, beside one central server and beside Galera."""
