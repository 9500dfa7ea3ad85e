"""A client with asyncio. It routes as `Client` does, and many calls share one connection to each server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from plait.gyro.belt.http import TlsContext
from plait.gyro.belt.service.certificates import client_context
from plait.gyro.belt.wire.cluster import Cluster, Freshness, Reply, Sending, fetch, renewed
from plait.gyro.belt.wire.stream import Stream
from plait.kernel.errors import UsageError


class AsyncClient:
    """Calls operations by name. `connect` makes one; the arguments are those of `Client`.

    Calls of one client may execute in any order. Await a reply before a call that must come after it.
    """

    def __init__(self, cluster: Cluster, *, near: int, patience: float, timeout: float, tls: TlsContext | None) -> None:
        self._cluster = cluster
        self._near = near
        self._patience, self._timeout = patience, timeout
        self._tls = tls
        self._freshness = Freshness()
        self._streams: list[Stream] = []
        self._connect()

    @classmethod
    async def connect(
        cls,
        url: str | Sequence[str],
        *,
        near: int = 0,
        patience: float = 30.0,
        timeout: float = 35.0,
        ca: str = "",
        certificate: str = "",
        key: str = "",
    ) -> Self:
        """Ask a server for all servers and routes."""
        context = client_context(ca, certificate, key) if ca or certificate else None
        tls = (lambda: context) if context is not None else None
        cluster = await asyncio.to_thread(fetch, url, tls=tls)
        if cluster.frames != 1:
            raise UsageError(
                f"the servers at {url} do not speak the binary protocol",
                hint="use plait.gyro.belt.client.Client; servers of web applications speak only HTTP",
            )
        return cls(cluster, near=near, patience=patience, timeout=timeout, tls=tls)

    def _connect(self) -> None:
        known = {stream.url: stream for stream in self._streams}
        self._streams = [
            known.get(url.rstrip("/")) or Stream(url, timeout=self._timeout, tls=self._tls)
            for url in self._cluster.urls
        ]

    async def call(self, operation: str, /, **parameters: Any) -> Any:
        """Call an operation; return its reply."""
        return (await self.send(operation, parameters)).reply

    async def send(
        self, operation: str, parameters: dict[str, Any], *, request: str = "", at: int | None = None
    ) -> Reply:
        """Call an operation; return its reply and position. `at` is the number of the server to ask first."""
        server = self._cluster.server(operation, parameters, self._near) if at is None else at
        sending = Sending(operation, parameters, request, server, self._patience)
        while True:
            try:
                found = sending.answered(
                    *await self._streams[sending.server % len(self._streams)].call(sending.operation, sending.body)
                )
            except OSError as error:
                found = sending.unanswered(error)
            if found is not None:
                return found
            if self._freshness.stale(self._cluster, sending):
                cluster = self._cluster
                newest = await asyncio.to_thread(renewed, cluster, sending, self._near, tls=self._tls)
                if self._cluster is cluster:  # no other call was faster
                    self._cluster = newest
                    self._connect()
            if sending.wait:
                await asyncio.sleep(sending.wait)

    async def close(self) -> None:
        """Close the connections."""
        for stream in self._streams:
            stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
