"""Links between servers that can be cut: TCP relays on the loopback interface.

A cut link holds all data, as if every packet were lost and sent again. Connections stay open on both sides until a
timeout closes them. After the link is healed, the data arrives late.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

_CHUNK = 1 << 16


class Network:
    """All links, in a thread of its own. A link has a name, and a port that stands for its target."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._open: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def link(self, name: str, target: int) -> int:
        """Make a link to a port; return the port that stands for it."""
        return int(self._run(self._listen(name, target)))

    def cut(self, names: Iterable[str]) -> None:
        """Stop all traffic of these links."""
        self._each(names, asyncio.Event.clear)

    def heal(self, names: Iterable[str]) -> None:
        """Let the traffic of these links pass."""
        self._each(names, asyncio.Event.set)

    def close(self) -> None:
        """End all links."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _each(self, names: Iterable[str], change: Callable[[asyncio.Event], None]) -> None:
        async def apply() -> None:
            for name in names:
                change(self._open[name])

        self._run(apply())

    async def _listen(self, name: str, target: int) -> int:
        is_open = self._open[name] = asyncio.Event()
        is_open.set()

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await is_open.wait()
                there = await asyncio.open_connection("127.0.0.1", target)
                try:
                    await asyncio.gather(_copy(reader, there[1], is_open), _copy(there[0], writer, is_open))
                finally:
                    there[1].close()
            except (OSError, asyncio.CancelledError):
                pass
            finally:
                writer.close()
                self._tasks.discard(task)

        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event) -> None:
    """Pass data on while the link is open, until one side ends."""
    try:
        while data := await reader.read(_CHUNK):
            await is_open.wait()
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        with contextlib.suppress(OSError):
            writer.close()
