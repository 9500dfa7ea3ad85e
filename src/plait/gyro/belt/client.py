"""A client that knows the partitioning: it calls the right server directly, and follows redirects."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from plait.gyro.belt.http import Peer
from plait.gyro.belt.service.certificates import client_context
from plait.gyro.belt.wire.cluster import CallError, Cluster, Freshness, Reply, Sending, fetch, renewed
from plait.gyro.belt.wire.link import Link, NoFramesError

__all__ = ["CallError", "Client", "Reply"]
Protocol = Literal["frames", "http"]


class Client:
    """Calls operations by name. Threads may share it: each has its own connection to each server, and keeps it.

    Every request has a unique name. So the client can send it again if a server does not answer: it is executed once.
    It uses the binary protocol where servers speak it, and HTTP otherwise, or if `protocol` says so. With https, it
    verifies the servers against the authorities in the file `ca`, or against those of the system. `certificate` and
    `key` are the files of a client certificate.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        near: int = 0,
        patience: float = 30.0,
        timeout: float = 35.0,
        ca: str = "",
        certificate: str = "",
        key: str = "",
        protocol: Protocol = "frames",
    ) -> None:
        context = client_context(ca, certificate, key) if ca or certificate else None
        self._tls = (lambda: context) if context is not None else None
        self._near = near
        self._patience, self._timeout = patience, timeout
        self._freshness = Freshness()
        self._frames = protocol == "frames"
        self._changing = threading.Lock()
        self._known: dict[str, tuple[Peer, Link | None]] = {}
        """The connections to all servers that this client has met."""
        self.peers: list[Peer] = []
        self._links: list[Link | None] = []
        self._adopt(fetch(url, tls=self._tls))

    def _adopt(self, cluster: Cluster) -> None:
        """Use these servers and routes from now on."""
        speaks = self._frames and cluster.frames == 1
        for url in cluster.urls:
            if url not in self._known:
                link = Link(url, timeout=self._timeout, tls=self._tls) if speaks else None
                self._known[url] = Peer(url, timeout=self._timeout, tls=self._tls), link
        self._cluster = cluster
        self.peers, self._links = map(list, zip(*(self._known[url] for url in cluster.urls), strict=True))

    def refresh(self) -> None:
        """Ask for the servers and routes again."""
        with self._changing:
            self._adopt(fetch(self._cluster.urls, tls=self._tls, above=self._cluster.configuration))

    @property
    def routes(self) -> dict[str, Any]:
        """How operations are routed."""
        return self._cluster.routes

    def close(self) -> None:
        """Close the connections."""
        for peer, link in self._known.values():
            peer.close()
            if link is not None:
                link.close()

    def call(self, operation: str, /, **parameters: Any) -> Any:
        """Call an operation; return its reply."""
        return self.send(operation, parameters).reply

    def send(self, operation: str, parameters: dict[str, Any], *, request: str = "", at: int | None = None) -> Reply:
        """Call an operation; return its reply and position. `at` is the number of the server to ask first."""
        sending = self._sending(operation, parameters, request, at)
        while True:
            try:
                found = sending.answered(*self._ask(sending.server, [sending])[0])
            except OSError as error:
                found = sending.unanswered(error)
            if found is not None:
                return found
            self._before(sending)

    def send_all(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[Reply | CallError]:
        """Call several operations, without waiting for one before the next is sent. They execute in any order."""
        found: dict[int, Reply | CallError] = {}
        left: dict[int, Sending] = {
            place: self._sending(operation, parameters, "", None) for place, (operation, parameters) in enumerate(calls)
        }
        while left:
            for server in {sending.server for sending in left.values()}:
                mine = {place: sending for place, sending in left.items() if sending.server == server}
                found |= self._settled(server, mine)
            left = {place: sending for place, sending in left.items() if place not in found}
            if left:
                self._before(max(left.values(), key=lambda s: (bool(s.moved), s.wait)))
        return [reply for _, reply in sorted(found.items(), key=lambda each: each[0])]

    def _settled(self, server: int, mine: dict[int, Sending]) -> dict[int, Reply | CallError]:
        """Send calls to one server; those that are settled now."""
        found: dict[int, Reply | CallError] = {}
        try:
            answers: list[Any] = self._ask(server, list(mine.values()))
        except OSError as error:
            answers = [error] * len(mine)
        for (place, sending), answer in zip(mine.items(), answers, strict=True):
            try:
                reply = sending.unanswered(answer) if isinstance(answer, OSError) else sending.answered(*answer)
                if reply is not None:
                    found[place] = reply
            except CallError as error:
                found[place] = error
        return found

    def _sending(self, operation: str, parameters: dict[str, Any], request: str, at: int | None) -> Sending:
        server = self._cluster.server(operation, parameters, self._near) if at is None else at
        return Sending(operation, parameters, request, server, self._patience)

    def _ask(self, server: int, sendings: Sequence[Sending]) -> list[tuple[int, bytes]]:
        """Send calls to a server, and return its answers."""
        server %= len(self._links)  # there may be fewer servers now
        if (link := self._links[server]) is not None:
            try:
                return link.calls([(s.operation, s.body) for s in sendings])
            except NoFramesError:
                self._links[server] = None
        return [self.peers[server].call(s.operation, s.body) for s in sendings]

    def _before(self, sending: Sending) -> None:
        """Prepare to send a call again."""
        with self._changing:
            if self._freshness.stale(self._cluster, sending):
                self._adopt(renewed(self._cluster, sending, self._near, tls=self._tls))
        time.sleep(sending.wait)
