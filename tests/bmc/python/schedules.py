"""CPython under a random scheduler: threads switch before any bytecode of the program, tasks run in any order.

Threads hand a baton to each other, so one runs at a time. Locks try without blocking and hand the baton on, so the
scheduler knows who can run, and sees deadlocks. The classes of `threading` and `queue` on top of them are Python's own.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import queue
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

FILE = "<random program>"


class DeadlockError(BaseException):
    """All threads wait."""


class Scheduler:
    """Hands the baton from thread to thread."""

    def __init__(self, seed: int, eagerness: float) -> None:
        self.random, self.eagerness = random.Random(seed), eagerness
        self.semaphores: list[Any] = []
        self.blocked: dict[int, Callable[[], bool]] = {}
        """What a thread waits for."""
        self.finished: set[int] = set()
        self.current = 0
        self.deadlock = False
        self.failed = False

    def register(self) -> int:
        lock = _thread.allocate_lock()
        lock.acquire()
        self.semaphores.append(lock)
        return len(self.semaphores) - 1

    def ready(self) -> list[int]:
        return [
            n
            for n in range(len(self.semaphores))
            if n not in self.finished and (n not in self.blocked or self.blocked[n]())
        ]

    def switch(self, *, ended: bool = False) -> None:
        """Let any thread run."""
        me = self.current
        ready = self.ready()
        if not ready and len(self.finished) < len(self.semaphores):
            self.deadlock = True
            ready = [n for n in range(len(self.semaphores)) if n not in self.finished]
        if not ready:
            return
        following = self.random.choice(ready)
        if following == me:
            if self.deadlock and not ended:
                raise DeadlockError
            return
        self.current = following
        self.semaphores[following].release()
        if not ended:
            self.semaphores[me].acquire()
            if self.deadlock:
                raise DeadlockError

    def wait(self, possible: Callable[[], bool]) -> None:
        """Wait for a condition."""
        while not possible():
            self.blocked[self.current] = possible
            self.switch()
        self.blocked.pop(self.current, None)

    def trace(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.deadlock and self.random.random() < self.eagerness:
            self.switch()
        return self.trace

    def run(self, number: int, target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """The body of a thread."""
        self.semaphores[number].acquire()
        try:
            if not self.deadlock:
                sys.settrace(self.trace)
                target(*arguments)
        except DeadlockError:
            pass
        except Exception:
            self.failed = True
        finally:
            sys.settrace(None)
            self.finished.add(number)
            self.switch(ended=True)


def namespace(scheduler: Scheduler) -> types.SimpleNamespace:
    """What the program sees as `threading`."""

    class Lock:
        def __init__(self) -> None:
            self.held = False

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            if self.held and not blocking:
                return False
            scheduler.wait(lambda: not self.held)
            self.held = True
            return True

        def release(self) -> None:
            if not self.held:
                raise RuntimeError("release unlocked lock")
            self.held = False

        def locked(self) -> bool:
            return self.held

        def __enter__(self) -> bool:
            return self.acquire()

        def __exit__(self, *error: object) -> None:
            self.release()

    class Thread:
        def __init__(self, target: Callable[..., Any], args: tuple[Any, ...] = ()) -> None:
            self.target, self.args, self.number = target, args, -1

        def start(self) -> None:
            self.number = scheduler.register()
            _thread.start_new_thread(scheduler.run, (self.number, self.target, self.args))

        def join(self) -> None:
            scheduler.wait(lambda: self.number in scheduler.finished)

    known = {n: getattr(threading, n) for n in ("Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier")}
    return types.SimpleNamespace(Lock=Lock, RLock=threading._PyRLock, Thread=Thread, **known)  # type: ignore[attr-defined]


@contextlib.contextmanager
def patched(shim: types.SimpleNamespace) -> Iterator[None]:
    """Python's own classes use the locks of the scheduler."""
    before = threading._allocate_lock, threading.Lock, threading.RLock  # type: ignore[attr-defined]
    threading._allocate_lock = threading.Lock = shim.Lock  # type: ignore[attr-defined]
    threading.RLock = shim.RLock
    try:
        yield
    finally:
        threading._allocate_lock, threading.Lock, threading.RLock = before  # type: ignore[attr-defined]


def threads_outcome(text: str, seed: int) -> Any:
    """The result of `main` in one random schedule; "deadlock", "exception"."""
    choice = random.Random(seed)
    scheduler = Scheduler(seed, choice.choice([0.05, 0.2, 0.5]))
    shim = namespace(scheduler)
    found: list[Any] = []
    with patched(shim):
        names: dict[str, Any] = {"threading": shim, "queue": queue, "Thread": shim.Thread}
        exec(compile(text, FILE, "exec"), names)
        done = _thread.allocate_lock()
        done.acquire()
        main = scheduler.register()

        def body() -> None:
            scheduler.run(main, lambda: found.append(names["main"]()), ())
            done.release()

        _thread.start_new_thread(body, ())
        scheduler.semaphores[main].release()
        done.acquire()
        while len(scheduler.finished) < len(scheduler.semaphores):
            time.sleep(0)
    if scheduler.failed:
        return "exception"
    return "deadlock" if scheduler.deadlock else found[0]


class RandomLoop(asyncio.SelectorEventLoop):
    """A loop that runs its callbacks in any order."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)

    def _run_once(self) -> None:
        ready = list(self._ready)  # type: ignore[attr-defined]
        if not ready and not self._scheduled and not self._stopping:  # type: ignore[attr-defined]
            raise DeadlockError
        self.random.shuffle(ready)
        kept = ready[self.random.randint(1, len(ready)) :] if ready else []
        self._ready.clear()  # type: ignore[attr-defined]
        self._ready.extend(ready[: len(ready) - len(kept)])  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]
        self._ready.extend(kept)  # type: ignore[attr-defined]


def tasks_outcome(text: str, seed: int) -> Any:
    """The result of the coroutine `main` with a random order of tasks; "deadlock", "exception"."""
    names: dict[str, Any] = {"asyncio": asyncio}
    exec(compile(text, FILE, "exec"), names)
    loop = RandomLoop(seed)
    loop.set_exception_handler(lambda *_: None)
    try:
        return loop.run_until_complete(names["main"]())
    except DeadlockError:
        return "deadlock"
    except Exception:
        return "exception"
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            task.cancel()
        if left:
            with contextlib.suppress(DeadlockError):
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
