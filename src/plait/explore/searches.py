"""Searches in the background, each in a process of its own. Pages listen to them; one that nobody listens to is ended."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import msgspec

from plait.explore.process import Asked
from plait.explore.requests import LONGEST_SEARCH
from plait.explore.worker import DONE

MOST_RUNNING = 4
MOST_KEPT = 50
"""Searches that have ended and can still be listened to."""
ALONE = 60.0
"""Seconds after which a search that nobody listens to is ended: the page was closed."""
PING = 10.0
"""Seconds between two signs of life of a stream, so that a connection that is gone is noticed."""


class Search:
    """A search in the background."""

    def __init__(self, number: str, process: Asked) -> None:
        self.number, self.process = number, process
        self.progress: bytes | None = None
        self.done: bytes | None = None
        self.listeners = 0
        self.task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        """Of the next change. It is no condition: a page that goes away while it waits for one can leave its lock taken."""

    async def run(self, body: Any) -> None:
        """Run the search to its end."""

        def told(progress: bytes) -> None:
            self.progress = progress
            self._tell()

        try:
            reply = await self.process.ask("search", body, seconds=LONGEST_SEARCH, told=told)
            done = reply.body
            if reply.status != DONE:
                error = msgspec.json.decode(reply.body)["error"]
                hint = f"; {error['hint']}" if error.get("hint") else ""
                done = msgspec.json.encode({"status": "error", "text": f"{error['message']}{hint}"})
            self._end(done)
        finally:
            self.process.end()

    async def stop(self, why: str) -> None:
        """End the search."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task
        if self.done is None:
            self._end(msgspec.json.encode({"status": "stopped", "text": why}))

    async def events(self) -> AsyncIterator[bytes]:
        """What happens, as server-sent events."""
        shown: bytes | None = None
        self.listeners += 1
        try:
            while self.done is None:
                if self.progress is not None and self.progress is not shown:
                    shown = self.progress
                    yield event("progress", shown)
                    continue
                try:
                    await asyncio.wait_for(self._changed.wait(), PING)
                except TimeoutError:
                    yield b": ping\n\n"
            yield event("done", self.done)
        finally:
            self.listeners -= 1

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _end(self, done: bytes) -> None:
        self.done = done
        self._tell()


class Searches:
    """All searches of an explorer. Each gets something of its own to ask."""

    def __init__(self, process: Callable[[], Asked], alone: float = ALONE) -> None:
        self.process, self.alone = process, alone
        self.all: dict[str, Search] = {}
        self._numbers = itertools.count(1)
        self._watching: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        """How many have not ended."""
        return sum(search.done is None for search in self.all.values())

    def begin(self, body: Any) -> Search:
        """Begin a search."""
        search = Search(str(next(self._numbers)), self.process())
        self.all[search.number] = search
        search.task = asyncio.create_task(search.run(body))
        watching = asyncio.create_task(self._watched(search))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        ended = [number for number, one in self.all.items() if one.done is not None]
        for number in ended[:-MOST_KEPT]:
            del self.all[number]
        return search

    async def stop_all(self, why: str) -> None:
        """End all searches."""
        for search in list(self.all.values()):
            await search.stop(why)

    async def _watched(self, search: Search) -> None:
        """End a search that nobody listens to."""
        clock = asyncio.get_running_loop().time
        heard = clock()
        while search.done is None:
            await asyncio.sleep(min(1.0, self.alone / 4))
            if search.listeners:
                heard = clock()
            elif clock() - heard >= self.alone:
                await search.stop("no page listened any more")


def event(name: str, data: bytes) -> bytes:
    """A server-sent event. JSON has no line breaks."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
