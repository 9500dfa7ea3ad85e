"""Answers about a model that exists in this process only: one that was written in a notebook.

Such a model cannot be loaded into a process of its own. A thread answers instead, one question at a time, so that the
notebook stays usable. Python code is interrupted when its time is over (`plait.kernel.deadline`), and a search is stopped
when it tells of its progress. A limit of memory holds for searches only.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from plait.explore.process import GRACE, Reply, refused
from plait.explore.worker import Answers, Question
from plait.model.system import System


class _StoppedError(BaseException):
    """Nobody waits for the answer. It is no `Exception`, so that user code does not handle it by accident."""


class _Job:
    """A question that is answered."""

    def __init__(self, answer: asyncio.Future[Reply]) -> None:
        self.answer = answer
        self.stopped = False
        self.ended = threading.Event()


class ModelThread:
    """Answers questions about a model, each in a thread."""

    def __init__(self, system: System, memory: int, *, once: bool = False) -> None:
        self.system, self.memory, self.once = system, memory, once
        self._answers: Answers | None = None
        self._turn = asyncio.Lock()
        self._job: _Job | None = None

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
            if self._job is not None and not self._job.ended.is_set():
                return refused("the model still answers an earlier question", "wait, or restart the kernel")
            loop = asyncio.get_running_loop()
            job = self._job = _Job(loop.create_future())
            question = Question(name, body, seconds, self.memory)

            def tell(progress: dict[str, Any]) -> None:
                if job.stopped:
                    raise _StoppedError
                if told is not None:
                    loop.call_soon_threadsafe(told, msgspec.json.encode(progress))

            def work() -> None:
                reply = self._answer(question, tell)
                job.ended.set()
                with suppress(RuntimeError):  # the loop may have ended
                    loop.call_soon_threadsafe(_set, job.answer, reply)

            threading.Thread(target=work, name="plait explore", daemon=True).start()
            try:
                return await asyncio.wait_for(asyncio.shield(job.answer), seconds + GRACE)
            except TimeoutError:
                return refused(f"{name} took longer than {seconds:g} s", "ask for less")
            finally:
                job.stopped = True

    def _answer(self, question: Question, tell: Callable[[dict[str, Any]], None]) -> Reply:
        try:
            if self._answers is None:
                target = self.system.target or self.system.name
                self._answers = Answers(target, lambda: self.system, tell, once=self.once)
            self._answers.tell = tell
            status, content = self._answers.answer(question)
            return Reply(status, msgspec.json.encode(content))
        except _StoppedError:
            return refused(f"{question.name} was stopped", "ask again")
        except Exception as error:
            return refused(f"internal error: {error!r}", "please report it")

    def end(self) -> None:
        """Stop a search, and forget what was computed."""
        self._answers = None
        if self._job is not None:
            self._job.stopped = True


def _set(answer: asyncio.Future[Reply], reply: Reply) -> None:
    if not answer.done():
        answer.set_result(reply)
