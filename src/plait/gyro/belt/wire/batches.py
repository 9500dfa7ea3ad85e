"""Executes read-only and local operations in threads: those that came at the same time run in one transaction.

A hop to a thread, the beginning of a transaction and the flush of a commit cost more than a short operation. So
operations that arrive while a *batch* runs wait for the next one. It contains only operations that were already here
when its transaction began: a client that writes and then reads sees what it wrote.

An operation shares a batch only if it is known to be short. Others run alone, each in its own thread, so a slow
operation delays no other. If a batch takes too long all the same, the operations that it has not begun leave it; those
that it has executed wait for its end.

**Why this is right.** The reads of a batch have one snapshot, so each comes after the same commits as if it had run
alone. The local operations of a batch run one after the other in one transaction. This is the same as one transaction
for each, with no other writer between them. The DBMS makes all of them durable, or none, and replies wait for that. If an
operation raises, a savepoint undoes its own changes; its error also waits for the commit, because it may tell what
operations before it wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

from plait.gyro.belt.databases.batching import Executes, lanes
from plait.gyro.belt.node import Node
from plait.gyro.belt.records import Call, DatabaseGoneError, Outcome
from plait.gyro.belt.service.events import event

logger = logging.getLogger("plait.gyro")
Done = Callable[[Outcome | Exception], None]
Local = Literal["read", "local"]
MOST = 64
"""Maximal number of operations in a batch."""
SHORT = 0.002
"""An operation that takes less time, in seconds, is short. A batch ends after this time."""
PATIENCE = 0.01
"""If a batch takes longer, in seconds, operations that have not begun go on in another thread."""
_UP, _DOWN = 1.5, 0.87
"""How the estimated duration of an operation changes after a longer or a shorter one: it is above three of four."""


class Mailbox:
    """Calls of functions in the event loop, from other threads. Those that come together wake the loop once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._letters: deque[Callable[[], None]] = deque()
        self._told = False

    def post(self, letter: Callable[[], None]) -> None:
        """Call a function soon. If the loop has ended, nobody waits for it."""
        self._letters.append(letter)
        if not self._told:
            self._told = True
            try:
                self._loop.call_soon_threadsafe(self._open)
            except RuntimeError:
                self._letters.clear()

    def _open(self) -> None:
        self._told = False  # first: a letter that comes from now on may not be seen below
        while self._letters:
            try:
                self._letters.popleft()()
            except Exception:  # the others must not wait because of it
                logger.exception("internal error", extra=event("internal_error"))


class Item(NamedTuple):
    """An operation that waits or executes."""

    call: Call
    done: Done


class Batch:
    """Operations that execute together. A thread takes them one by one; the event loop may take back the rest."""

    def __init__(self, kind: Local, items: Iterable[Item]) -> None:
        self.kind = kind
        self.items = deque(items)
        self.taken: list[Item] = []
        self.found: Sequence[Outcome | Exception] = ()
        """The results of the operations that were taken."""
        self.began = time.perf_counter()

    def left(self) -> list[Item]:
        """Take the operations that have not begun. The thread and the event loop may both do so."""
        found: list[Item] = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self.items.popleft())
        return found

    def fail(self, error: Exception) -> None:
        """The DBMS does not answer: all operations fail, also those that have not begun."""
        self.taken += self.left()
        self.found = [error] * len(self.taken)


class Batches:
    """The local and read-only operations of a server. Its event loop is the only caller."""

    def __init__(self, node: Node, *, threads: int, most: int = MOST) -> None:
        self.executing = 0
        """Operations that execute or wait for a thread."""
        self._run: dict[Local, Executes] = {"read": node.reads, "local": node.writes}
        self._most = most
        self._lanes = lanes(node.database, threads)
        self._most_lanes = threads
        self._waiting: dict[Local, deque[Item]] = {"read": deque(), "local": deque()}
        self._running: dict[Local, set[Batch]] = {"read": set(), "local": set()}
        self._paces: dict[str, float] = {}
        """About the third quartile of the durations of each operation, in seconds."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="operation")
        self._loop: asyncio.AbstractEventLoop
        self._mailbox: Mailbox | None = None
        self._stirred = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def mailbox(self) -> Mailbox:
        """The mailbox of the running event loop."""
        if self._mailbox is None:
            self._loop = asyncio.get_running_loop()
            self._mailbox = Mailbox(self._loop)
        return self._mailbox

    def ask(self, question: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Call a function in a thread; give its result, or its exception, to `done`."""
        mailbox = self.mailbox

        def answer() -> None:
            try:
                found = question()
            except Exception as error:
                found = error
            mailbox.post(functools.partial(done, found))

        self._threads.submit(answer)

    def add(self, call: Call, kind: Local, done: Done) -> None:
        """Execute an operation; give its outcome, or its exception, to `done`."""
        self.executing += 1
        item = Item(call, done)
        mailbox = self.mailbox
        if self._most == 1 or self._paces.get(call.operation, SHORT) >= SHORT:
            self._threads.submit(self._work, Batch(kind, [item]), mailbox)
            return
        self._waiting[kind].append(item)
        if not self._stirred:  # after the other requests that have arrived
            self._stirred = True
            self._loop.call_soon(self._stir)

    def _stir(self) -> None:
        """Start batches."""
        self._stirred = False
        now = time.perf_counter()
        for kind, waiting in self._waiting.items():
            running = self._running[kind]
            late = [batch for batch in running if now - batch.began > PATIENCE]
            for batch in late:
                _take_back(batch, waiting)
            while waiting and len(running) - len(late) < self._lanes and len(running) < self._most_lanes:
                batch = Batch(kind, _first(waiting, self._most))
                running.add(batch)
                self._threads.submit(self._work, batch, self.mailbox)
            if running and self._timer is None:
                self._timer = self._loop.call_later(PATIENCE, self._tick)

    def _tick(self) -> None:
        """Look whether a batch takes too long."""
        self._timer = None
        self._stir()

    def _work(self, batch: Batch, mailbox: Mailbox) -> None:
        """Execute a batch in a thread."""
        try:
            batch.found = self._run[batch.kind](self._feed(batch))
        except Exception as error:
            batch.fail(error)
        except BaseException:
            batch.fail(DatabaseGoneError("the server died"))
            raise
        finally:
            mailbox.post(functools.partial(self._deliver, batch))

    def _feed(self, batch: Batch) -> Iterator[Call]:
        """The calls of a batch, while there is time. Measures the time until the next one is asked for."""
        first = begin = time.perf_counter()
        while batch.items and begin - first < SHORT:
            try:
                item = batch.items.popleft()
            except IndexError:  # the event loop has just taken it back
                return
            batch.taken.append(item)
            yield item.call
            now = time.perf_counter()
            pace = self._paces.get(item.call.operation)
            self._paces[item.call.operation] = (
                now - begin if pace is None else pace * _UP if now - begin > pace else pace * _DOWN
            )
            begin = now

    def _deliver(self, batch: Batch) -> None:
        """Hand out the results of a batch, and start the next one."""
        self._running[batch.kind].discard(batch)
        _take_back(batch, self._waiting[batch.kind])
        self.executing -= len(batch.taken)
        for item, result in zip(batch.taken, batch.found, strict=True):
            item.done(result)
        self._stir()


def _first(waiting: deque[Item], most: int) -> list[Item]:
    return [waiting.popleft() for _ in range(min(most, len(waiting)))]


def _take_back(batch: Batch, waiting: deque[Item]) -> None:
    """Let the operations of a batch that have not begun wait for another one. They came before all others."""
    waiting.extendleft(reversed(batch.left()))
