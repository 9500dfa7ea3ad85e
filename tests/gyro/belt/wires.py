"""A cluster in one process whose clients call it in frames, over real connections."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec

from plait.gyro.belt.records import DatabaseGoneError, OperationError, Outcome, OversizeError
from plait.gyro.belt.routing import Kind
from plait.gyro.belt.settings import Settings
from plait.gyro.belt.wire.batches import Batch
from plait.gyro.belt.wire.calls import Calls
from plait.gyro.belt.wire.door import Wire
from plait.gyro.belt.wire.link import Link
from tests.gyro.belt.cluster import Cluster, MortalNode
from tests.support.patience import PATIENCE


class Listener:
    """The door of one node."""

    def __init__(self, cluster: WireCluster, node: MortalNode) -> None:
        settings = Settings(
            "board", cluster.application.routes, "", ["http://127.0.0.1:1"] * cluster.servers, str(cluster.folder),
            wait=0.5,
        )  # fmt: skip
        self.node = node
        self.calls = Calls(node.server, settings, cluster.application, node)
        batches = self.calls.batches
        deliver = batches._deliver

        def counting(batch: Batch) -> None:
            cluster.sizes[batch.kind].append(len(batch.taken))
            deliver(batch)

        batches._deliver = counting  # type: ignore[method-assign]
        self._connections: set[Any] = set()
        self._loop = cluster.loop
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), cluster.loop).result(PATIENCE)
        port = self._server.sockets[0].getsockname()[1]
        self.link = Link(f"http://127.0.0.1:{port}", timeout=PATIENCE)

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Wire(self.calls, self._connections), "127.0.0.1", 0)

    async def _end(self) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection._transport.abort()
        while self._connections:
            await asyncio.sleep(0.001)

    def close(self) -> None:
        self.link.close()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(PATIENCE)
        self.calls.batches._threads.shutdown(wait=True)


class WireCluster(Cluster):
    """Clients call the servers in frames; operations that come together run together."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self._looping = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._looping.start()
        self._listeners: dict[int, Listener] = {}
        self._listening = threading.Lock()
        self.sizes: dict[str, list[int]] = {"read": [], "local": []}
        """The sizes of the batches."""
        super().__init__(*arguments, **options)

    def _listener(self, node: MortalNode) -> Listener:
        with self._listening:
            found = self._listeners.get(id(node))
            if found is None:
                found = self._listeners[id(node)] = Listener(self, node)
            return found

    def _ask(self, node: MortalNode, call: Any, kind: Kind) -> Outcome:  # type: ignore[override]
        if node.dead:
            raise DatabaseGoneError("dead")
        body = msgspec.json.encode({"request": call.request, "parameters": call.arguments})
        try:
            status, answer = self._listener(node).link.call(call.operation, body)
        except OSError as error:
            raise DatabaseGoneError(str(error)) from None
        found = msgspec.json.decode(answer)
        if status == 200:
            assert found["server"] == node.server
            raw = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])["reply"]
            return Outcome(bytes(raw), found["seq"], found["position"], found["wrote"], found["repeated"])
        if status == 422:
            raise OperationError(found["raised"], found["message"])
        if status == 413:
            raise OversizeError(found["error"])
        assert status == 503, found
        raise DatabaseGoneError(found["error"])

    def stop(self) -> None:
        super().stop()
        for listener in self._listeners.values():
            listener.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._looping.join(PATIENCE)
        self.loop.close()
