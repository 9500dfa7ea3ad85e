"""A model that is explored, for pages and notebooks: what they ask, within limits. It keeps nothing about who asks.

`server.py` answers requests of a page with it, `widget.py` those of a notebook. What has the model is a process
(`process.py`), or for a model that exists in this process only, a thread (`thread.py`).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from plait.explore.process import Asked, Model, Process, Reply
from plait.explore.requests import GraphBody, SearchBody, read
from plait.explore.searches import ALONE, MOST_RUNNING, PING, Search, Searches, event
from plait.explore.worker import DONE
from plait.model.loading.files import INTERVAL, Files

WALK, GRAPH, COVERAGE = 20.0, 120.0, 30.0
"""Seconds of an answer."""
MOST_WAITING = 500
"""Requests that wait for the process that has the model."""
MOST_GRAPHS = 2
"""Graphs and coverage that are computed at the same time."""


class RefusedError(Exception):
    """An answer with an error, and its status as in HTTP."""

    def __init__(self, status: int, message: str, hint: str | None = None) -> None:
        self.status, self.message, self.hint = status, message, hint


class Explorer:
    """A model that is explored. `process` makes something to ask, for one question or for many."""

    def __init__(
        self,
        process: Callable[[bool], Asked],
        files: Files | None = None,
        *,
        seconds: float | None = None,
        alone: float = ALONE,
    ) -> None:
        self._process, self.seconds = process, seconds or WALK
        self.files = files
        """The files of the model, if it is loaded again when they are saved."""
        self.walker = process(False)
        self.searches = Searches(lambda: process(True), alone)
        self.version = 0
        """How often the model was loaded again."""
        self._waiting = 0
        self._news: set[asyncio.Queue[bytes]] = set()
        self._heavy: asyncio.Semaphore
        self._coverage: tuple[int, Reply] | None = None
        self._known: Reply | None = None
        """What the model is, for this version."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer questions inside this context. At its end, everything that it began is ended."""
        self._heavy = asyncio.Semaphore(MOST_GRAPHS)
        watching = None if self.files is None else asyncio.create_task(self._watch(self.files))
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching
            await self.searches.stop_all("plait explore ended")
            self.walker.end()

    # -- the model and its runs

    async def model(self) -> Reply:
        """The model."""
        return self._known or await self.ask("model", None)

    async def ask(self, name: str, body: Any) -> Reply:
        """Ask about a run."""
        with self._in_line():
            return await self.walker.ask(name, body, seconds=self.seconds)

    # -- searches

    def search(self, body: Any) -> Search:
        """Begin a search in the background."""
        read(SearchBody, body)
        if self.searches.running >= MOST_RUNNING:
            raise RefusedError(429, f"{MOST_RUNNING} searches are running", "stop one of them")
        return self.searches.begin(body)

    def found(self, number: str) -> Search:
        """A search that was begun."""
        search = self.searches.all.get(number)
        if search is None:
            raise RefusedError(404, "there is no such search", "begin it again")
        return search

    async def graph(self, body: Any) -> Reply:
        """The state graph, collapsed."""
        read(GraphBody, body)
        return await self._alone("graph", body, GRAPH)

    async def coverage(self) -> Reply:
        """Coverage on the source. It is kept until the model is saved."""
        if self._coverage is None or self._coverage[0] != self.version:
            version = self.version
            self._coverage = version, await self._alone("coverage", None, COVERAGE)
        return self._coverage[1]

    async def _alone(self, name: str, body: Any, seconds: float) -> Reply:
        """Ask a process of its own."""
        with self._in_line():
            async with self._heavy:
                process = self._process(True)
                try:
                    return await process.ask(name, body, seconds=seconds)
                finally:
                    process.end()

    @contextmanager
    def _in_line(self) -> Iterator[None]:
        if self._waiting >= MOST_WAITING:
            raise RefusedError(429, "too many requests wait for an answer", "close other pages of this server")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    # -- edit and see

    async def events(self) -> AsyncIterator[bytes]:
        """Events when the model is saved."""
        news: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._news.add(news)
        try:
            yield b": hello\n\n"
            while True:
                try:
                    said = await asyncio.wait_for(news.get(), PING)
                except TimeoutError:
                    said = b": ping\n\n"
                if not said:
                    return
                yield said
        finally:
            self._news.discard(news)

    async def _watch(self, files: Files) -> None:
        """Load the model again whenever one of its files was saved."""
        while True:
            files.begin()
            # It asks the process itself: requests that wait must not keep the model from being loaded.
            reply = await self.walker.ask("model", None, seconds=self.seconds)
            error = msgspec.json.decode(reply.body).get("error")
            self._known = reply if reply.status == DONE else None
            files.end(complete=error is None)
            if self.version:
                self._tell(event("error", msgspec.json.encode(error)) if error else event("reload", b"{}"))
            while not files.saved():
                await asyncio.sleep(INTERVAL)
            await asyncio.to_thread(files.settle)
            self.version += 1
            self._known = None
            self.walker.end()
            await self.searches.stop_all("the model was saved")

    def _tell(self, news: bytes) -> None:
        for queue in self._news:
            if queue.full():  # a page that does not read gets the last news only
                queue.get_nowait()
            queue.put_nowait(news)

    async def close(self) -> None:
        """End all streams."""
        self._tell(b"")
        await self.searches.stop_all("plait explore ended")


@asynccontextmanager
async def explored(
    target: str,
    parameters: Mapping[str, Any],
    *,
    parse: bool = True,
    memory: int | None = None,
    seconds: float = WALK,
    alone: float = ALONE,
) -> AsyncIterator[Explorer]:
    """Explore the model that a target names, in processes of its own, each within the bytes of `memory`."""
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        report = Path(folder) / "files"
        report.write_bytes(b"")
        model, most = Model(target, parameters, str(report), parse), memory or memory_limit()
        files = Files(target, report)
        explorer = Explorer(lambda once: Process(model, most, once=once), files, seconds=seconds, alone=alone)
        async with explorer.running():
            yield explorer


def memory_limit() -> int:
    """The memory that a process may use: half of the machine's."""
    with suppress(ValueError, OSError, AttributeError):
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.5)
    return 2 << 30
