"""The explorer inside a notebook (anywidget): the kernel answers, through the messages of the widget. No server, no port.

A message asks what the page of `plait explore` asks its server: a method, a path and a body. A thread with an event loop
answers, so that questions do not wait for each other, and the notebook does not wait for them.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import msgspec

from plait.explore.explorer import Explorer, RefusedError, explored, memory_limit
from plait.explore.process import Reply
from plait.explore.thread import ModelThread
from plait.explore.worker import DONE, error_body
from plait.kernel.errors import PlaitError, UsageError
from plait.kernel.values import to_data
from plait.model.system import System
from plait.report.markup import asset
from plait.report.notebook import note_fragment
from plait.report.viewer import FILES, explorer_content
from plait.report.widget import ViewerWidget
from plait.report.wording import visible

IDLE = 60.0
"""Seconds after which a process is ended if no view of its widget is left. The next question starts another one."""


def explorer(model: System | str, /, **parameters: Any) -> ExplorerWidget:
    """Walk through the states of a model inside a notebook: the page of `plait explore` as a widget.

    A target as on the command line (`"paxos"`, `"model.py:function"`), with parameters, is loaded in a process of its
    own, and loaded again when its file is saved. A System that was built here answers in this process. It needs the
    package anywidget: `pip install 'plait[notebook]'`.

    >>> from plait import explorer
    >>> explorer("paxos", faulty="acceptor")
    <ExplorerWidget of paxos (faulty='acceptor')>
    """
    if isinstance(model, str):
        return ExplorerWidget(explored(model, parameters, parse=False), _named(model, parameters))
    if not isinstance(model, System):
        raise UsageError(
            f"explorer needs a System or the name of a model, not {type(model).__name__}",
            hint='for example explorer("paxos"), or explorer(paxos(faulty="acceptor"))',
        )
    if parameters:
        raise UsageError(
            f"a System has no parameter {next(iter(parameters))!r}: it is built already",
            hint="give parameters to the function that builds it",
        )
    if model.target is not None:
        values = {name: to_data(value) for name, value in model.parameters.items()}
        return ExplorerWidget(explored(model.target, values, parse=False), _named(model.target, model.parameters))
    return ExplorerWidget(_inside(model), _named(model.name, model.parameters))


class ExplorerWidget(ViewerWidget):
    """A model that is explored in the output of a cell."""

    def __init__(self, explorer: AbstractAsyncContextManager[Explorer], name: str) -> None:
        said = f"plait explorer of {name}: run this cell to walk through the states of the model."
        super().__init__(explorer_content(), plain=note_fragment(said), text=name)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listening = 0
        loop = _loop()
        self._ready: asyncio.Future[Explorer] = asyncio.run_coroutine_threadsafe(_future(), loop).result()
        self._running = asyncio.run_coroutine_threadsafe(self._run(explorer), loop)
        self.on_msg(self._asked)

    def close(self) -> None:
        """Close the widget, and end what it began."""
        self._running.cancel()
        super().close()

    async def _run(self, explorer: AbstractAsyncContextManager[Explorer]) -> None:
        async with explorer as running:
            self._ready.set_result(running)
            await asyncio.Event().wait()

    def _asked(self, _widget: object, content: Any, _buffers: object) -> None:
        """A message of a view."""
        match content:
            case {"id": str(number), "method": str(method), "path": str(path)}:
                asyncio.run_coroutine_threadsafe(self._begin(number, method, path, content.get("body")), _loop())

    async def _begin(self, number: str, method: str, path: str, body: Any) -> None:
        if method == "ABORT":
            if (task := self._tasks.get(number)) is not None:
                task.cancel()
            return
        task = self._tasks[number] = asyncio.create_task(self._answer(number, method, path, body))
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, number: str, method: str, path: str, body: Any) -> None:
        try:
            status, answer = await self._routed(number, await asyncio.shield(self._ready), method, path, body)
        except RefusedError as error:
            status, answer = error.status, _encoded(error_body(error.message, error.hint))
        except PlaitError as error:
            status, answer = 400, _encoded(error_body(error.message, error.hint))
        except Exception as error:
            status, answer = 500, _encoded(error_body(f"internal error: {error!r}", "please report it"))
        self.send({"id": number, "status": status, "body": answer.decode()})

    async def _routed(self, number: str, explorer: Explorer, method: str, path: str, body: Any) -> Reply:
        """The answer to a question. The paths are those of the server."""
        match method, path.strip("/").split("/"):
            case "GET", ["api", "model"]:
                return await explorer.model()
            case "POST", ["api", "walk"]:
                return await explorer.ask("walk", body)
            case "POST", ["api", "export"]:
                reply = await explorer.ask("export", body)
                if reply.status != DONE:
                    return reply
                return Reply(DONE, msgspec.json.decode(reply.body)["content"].encode())
            case "POST", ["api", "graph"]:
                return await explorer.graph(body)
            case "GET", ["api", "coverage"]:
                return await explorer.coverage()
            case "POST", ["api", "search"]:
                return Reply(DONE, _encoded({"id": explorer.search(body).number}))
            case "GET", ["api", "search", search, "events"]:
                return await self._stream(number, explorer.found(search).events())
            case "DELETE", ["api", "search", search]:
                await explorer.found(search).stop("stopped")
                return Reply(DONE, b"{}")
            case "GET", ["api", "events"]:
                return await self._listened(number, explorer)
            case "GET", [name] if name in FILES:
                return Reply(DONE, asset(name).encode())
        raise RefusedError(404, f"{method} {path} does not exist", "reload the notebook")

    async def _stream(self, number: str, events: AsyncIterator[bytes]) -> Reply:
        """Send events to a view, until there are no more."""
        async for one in events:
            head, _, rest = one.decode().partition("\ndata: ")
            if head.startswith("event: "):
                self.send({"id": number, "event": head.removeprefix("event: "), "body": rest.rstrip("\n")})
        return Reply(DONE, b"")

    async def _listened(self, number: str, explorer: Explorer) -> Reply:
        """A view listens as long as it exists. Without views, the model needs no process."""
        self._listening += 1
        try:
            return await self._stream(number, explorer.events())
        finally:
            self._listening -= 1
            asyncio.get_running_loop().call_later(IDLE, self._rest, explorer)

    def _rest(self, explorer: Explorer) -> None:
        if not self._listening:
            explorer.walker.end()


@asynccontextmanager
async def _inside(system: System) -> AsyncIterator[Explorer]:
    """Explore a System that exists in this process only."""
    memory = memory_limit()
    explorer = Explorer(lambda once: ModelThread(system, memory, once=once))
    async with explorer.running():
        yield explorer


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all widgets, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="plait explore", daemon=True).start()
    atexit.register(_end, loop)
    return loop


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """End all widgets: their processes and their folders."""

    async def cancel() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(cancel(), loop).result(2)


async def _future() -> asyncio.Future[Explorer]:
    return asyncio.get_running_loop().create_future()


def _named(name: str, parameters: Mapping[str, Any]) -> str:
    said = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    return visible(f"{name} ({said})" if said else name)


def _encoded(content: Any) -> bytes:
    return msgspec.json.encode(content)
