"""/health and /ready: whether a server is alive, and whether it can do its work.

A server is *healthy* if its DBMS answers. An orchestrator restarts a server that is not healthy. A server is *ready* if it
is healthy, works, has joined the ring (it has had the token), its log answers and is not an older copy, and it has applied
nearly all updates of the log. A load balancer sends requests only to servers that are ready.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from plait.gyro.belt.logs.log import LogGoneError
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import DatabaseGoneError

_PATIENCE = 2.0
"""How long a check waits for the DBMS or the log, in seconds."""


class Health:
    """The checks of one server. Concurrent requests share one check, so probes cannot overload a server."""

    def __init__(self, node: Node, *, lag: int, patience: float = _PATIENCE) -> None:
        self._node = node
        self._lag = lag
        self._patience = patience
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="health")
        self._running: dict[str, Future[int]] = {}

    async def health(self) -> dict[str, Any]:
        """Whether the process is alive and its DBMS answers."""
        _, reasons = await self._ask("the DBMS", self._node.database.applied)
        return {"server": self._node.server, "healthy": not reasons, "reasons": reasons}

    async def ready(self) -> dict[str, Any]:
        """Whether the server can execute operations, and why not."""
        node = self._node
        reasons = [f"the server has stopped: {node.broken}"] if node.broken is not None else []
        (_, dbms), (missing, log) = await asyncio.gather(
            self._ask("the DBMS", node.database.applied), self._ask("the log", self._missing)
        )
        reasons += dbms + log
        if not node.metrics.visits:
            reasons.append("the server has not joined the ring: it has not had the token yet")
        behind = max(missing or 0, 0)
        if (missing or 0) < 0:
            reasons.append("the log is behind the server: it is an older copy")
        if behind > self._lag:
            reasons.append(f"the server is {behind:,} updates behind the log; at most {self._lag:,} are allowed")
        return {"server": node.server, "ready": not reasons, "behind": behind, "reasons": reasons}

    def _missing(self) -> int:
        """How many updates of the log the server has not applied; below 0 if the log lacks updates of the server.

        A server applies and removes only updates that are in the log already.
        """
        node = self._node
        applied, shipped = node.applied, 0 if node.shipper is None else node.shipper.position
        missing = node.log.fence().last - applied
        lacks = node.shipper is not None and node.log.stream(node.server).last < shipped
        return min(missing, -1) if lacks else missing

    async def _ask(self, what: str, question: Callable[[], int]) -> tuple[int | None, list[str]]:
        """The answer, or why there is none."""
        running = self._running.get(what)
        if running is None or running.done():
            running = self._running[what] = self._threads.submit(question)
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), self._patience), []
        except (TimeoutError, concurrent.futures.TimeoutError):
            return None, [f"{what} does not answer within {self._patience:g} s"]
        except (DatabaseGoneError, LogGoneError) as error:
            return None, [f"{what} does not answer: {error}"]
