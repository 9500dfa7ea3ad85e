"""The server's end of a process that has the model.

A process answers one question at a time, within limits of time and memory. One that exceeds a limit is ended, and the next
question starts a new one. It keeps nothing that cannot be computed again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from plait.explore.worker import DONE, HEAD, PROGRESS, REFUSED, SLACK, Question, Start, error_body
from plait.model.loading.loader import reader_module

GRACE = 2.0
"""Seconds after its time in which a process may still answer that the time was over."""
_LOOK = 0.2
"""Seconds between two looks at the memory of a process."""


class Reply(NamedTuple):
    """A status as in HTTP, and JSON."""

    status: int
    body: bytes


class Model(NamedTuple):
    """What is explored."""

    target: str
    parameters: Mapping[str, Any]
    report: str
    """The file in which processes report the files of the model."""
    parse: bool = True
    """Whether parameters are text, as on the command line, not values."""

    def start(self, memory: int, *, once: bool) -> Start:
        """The first question to a process."""
        reader = reader_module(self.target)
        return Start(self.target, dict(self.parameters), reader, self.report, str(Path.cwd()), memory, once, self.parse)


class Asked(Protocol):
    """Something that answers questions about a model: a process, or a thread of this one (`thread.py`)."""

    async def ask(
        self, name: str, body: object = None, *, seconds: float, told: Callable[[bytes], None] | None = None
    ) -> Reply:
        """Ask a question. `told` gets the progress of a search."""

    def end(self) -> None:
        """End what it does at once. It can be asked again."""


class Process:
    """A process that answers questions about a model."""

    def __init__(self, model: Model, memory: int, *, once: bool = False) -> None:
        self.model, self.memory, self.once = model, memory, once
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(
        self,
        name: str,
        body: object = None,
        *,
        seconds: float,
        told: Callable[[bytes], None] | None = None,
    ) -> Reply:
        """Ask a question. `told` gets the progress of a search."""
        async with self._turn:
            try:
                if self._process is None:
                    await self._begin()
                question = Question(name, body, seconds, self.memory)
                answer = asyncio.create_task(self._answered(question, told))
                try:
                    return await self._within(answer, seconds + GRACE, name)
                finally:
                    if not answer.done():  # too long, too large, or nobody waits any more
                        answer.cancel()
                        self.end()
                        with suppress(asyncio.CancelledError):
                            await answer
            except (OSError, asyncio.IncompleteReadError):
                code: int | None = None
                if self._process is not None:
                    with suppress(TimeoutError):
                        code = await asyncio.wait_for(self._process.wait(), GRACE)
                self.end()
                return self._died(code)

    def _died(self, code: int | None) -> Reply:
        """What to say about a process that ended in the middle of a question."""
        if code in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV):
            name = signal.Signals(-code).name
            hint = f"it may have needed more than {self.memory >> 20:,} MiB: see the output of plait explore"
            return refused(f"the process that has the model was ended by {name}", hint)
        return refused("the process that has the model ended", "see the output of plait explore, and ask again")

    def end(self) -> None:
        """End the process at once. The next question starts another one."""
        process, self._process = self._process, None
        if process is not None:
            # This kills it, and closes its pipes. asyncio prints a traceback if a pipe is still open when the loop ends.
            process._transport.close()  # type: ignore[attr-defined]

    async def _begin(self) -> None:
        paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "plait.explore.worker"),
            env={**os.environ, "PYTHONPATH": paths},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        await self._send(self.model.start(self.memory, once=self.once))

    async def _send(self, content: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        body = msgspec.json.encode(content)
        self._process.stdin.write(HEAD.pack(DONE, len(body)) + body)
        await self._process.stdin.drain()

    async def _answered(self, question: Question, told: Callable[[bytes], None] | None) -> Reply:
        await self._send(question)
        assert self._process is not None
        out = self._process.stdout
        assert out is not None
        while True:
            status, length = HEAD.unpack(await out.readexactly(HEAD.size))
            body = await out.readexactly(length)
            if status != PROGRESS:
                return Reply(status, body)
            if told is not None:
                told(body)

    async def _within(self, answer: asyncio.Task[Reply], seconds: float, name: str) -> Reply:
        """Wait for an answer within the limits."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while clock() < end:
            done, _ = await asyncio.wait({answer}, timeout=min(_LOOK, max(0.0, end - clock())))
            if done:
                return answer.result()
            if self._size() > SLACK * self.memory:
                return refused(f"{name} needs more than {self.memory >> 20:,} MiB", "ask for less")
        return refused(f"{name} took longer than {seconds - GRACE:g} s", "ask for less")

    def _size(self) -> int:
        """The memory that the process uses, in bytes; 0 if it is not known."""
        process = self._process
        if process is None:
            return 0
        with suppress(OSError, ValueError, IndexError):
            pages = Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        return 0


def refused(message: str, hint: str) -> Reply:
    """An answer with an error."""
    return Reply(REFUSED, msgspec.json.encode(error_body(message, hint)))
