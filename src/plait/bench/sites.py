"""Measurements of a service that runs at several sites: latency and throughput of each configuration."""

from __future__ import annotations

import msgspec


class SiteRow(msgspec.Struct, frozen=True):
    """One workload on one configuration. Times are in milliseconds."""

    workload: str
    configuration: str
    servers: int
    clients: int
    operations: int
    throughput: float
    """Operations per second, of all clients."""
    mean: float
    median: float
    local_median: float
    """Of operations that need no token, at the server: without the way to it."""
    global_mean: float
    """Of operations that need the token, the way included; 0 if there were none."""
    global_share: float
    ratio: float = 0.0
    """How many times lower the mean is than that of one central server; 0 if there is none to compare with."""
    published_ratio: float = 0.0


class SiteTable(msgspec.Struct, frozen=True):
    """Lines in the order of the workloads, and what to say about all of them."""

    name: str
    title: str
    conditions: str
    rows: list[SiteRow]
    summary: list[str] = []
    complete: bool = True

    @property
    def workloads(self) -> dict[str, list[SiteRow]]:
        """The lines of each workload."""
        found: dict[str, list[SiteRow]] = {}
        for row in self.rows:
            found.setdefault(row.workload, []).append(row)
        return found
