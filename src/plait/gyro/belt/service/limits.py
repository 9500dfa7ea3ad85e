"""Limits on the rate of requests, per client address and in total.

The algorithm is GCRA, the leaky bucket of the ATM Forum (1996): for each address, it stores only the time at which the
requests so far would have arrived at the exact rate. A burst of one second is allowed.
"""

from __future__ import annotations

import functools
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

_ADDRESSES = 10_000
"""How many addresses are remembered. The address that was idle for the longest time is forgotten first."""

_ROUNDING = 1e-6


class Rate:
    """One limit: `rate` requests per second; 0 means no limit."""

    def __init__(self, rate: float) -> None:
        self._step = 1 / rate if rate else 0.0
        self._burst = max(1.0, self._step)

    def admit(self, due: float, now: float) -> tuple[float, float]:
        """The new due time, and the seconds to wait; 0 seconds if the request is admitted."""
        due = max(due, now) + self._step
        pause = due - now - self._burst
        return due, pause if pause > _ROUNDING else 0.0


class Limits:
    """The limits of a server. Its event loop is the only caller."""

    def __init__(self, *, client: float = 0.0, total: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._total = Rate(client), Rate(total)
        self._limited = client > 0 or total > 0
        self._clock = clock
        self._due: OrderedDict[str, float] = OrderedDict()
        self._due_total = 0.0

    def wait(self, address: str) -> float:
        """How many seconds a client must wait before its request; 0 if the request is admitted now."""
        if not self._limited:
            return 0.0
        now, key = self._clock(), network(address)
        due, pause = self._client.admit(self._due.get(key, 0.0), now)
        due_total, pause_total = self._total.admit(self._due_total, now)
        if pause or pause_total:  # a refused request does not count
            return max(pause, pause_total)
        self._due[key], self._due_total = due, due_total
        self._due.move_to_end(key)
        if len(self._due) > _ADDRESSES:
            self._due.popitem(last=False)
        return 0.0


@functools.lru_cache(maxsize=_ADDRESSES)
def network(address: str) -> str:
    """What counts as one client: an IPv4 address, or the first half of an IPv6 address, which one site usually has.

    >>> network("192.0.2.7"), network("2001:db8:1:2:3:4:5:6"), network("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
    return str(found)
