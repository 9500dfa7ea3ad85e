"""The time that a check may take: one clock for all its parts, from building the model to explaining a counterexample.

The native engine watches the time itself. Python code is interrupted by an exception in its thread. This works between
two instructions of Python: a call of C code that does not return (`list(range(10**12))`, `time.sleep`) is not interrupted.
If the C code can be interrupted, as Z3 can, `interruptible` makes the call: the deadline and Ctrl-C end it.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread, Timer, get_ident
from typing import TypeVar

GRACE = 2.0
"""Seconds to make a counterexample readable, if the search has used up all the time."""
_TURN = 0.05
"""Seconds after which a thread that waits for a call notices an exception."""
_AGAIN = 0.02
"""Seconds between two interruptions of a call, or of a thread that has lost the exception."""
_STARTING = RLock()
"""Held while a thread starts. CPython gives a new thread the identity of its parent until it runs, so that an exception
for the parent could end the new thread instead, and the parent would wait for it for ever."""
T = TypeVar("T")


class OutOfTimeError(BaseException):
    """The time is over. It is no `Exception`, so that user code does not handle it by accident."""


class Deadline:
    """A point in time, `seconds` from now; None is never.

    >>> Deadline(None).left is None, Deadline(0.0).left, Deadline(60).over
    (True, 0.0, False)
    """

    def __init__(self, seconds: float | None) -> None:
        self._started = time.monotonic()
        self._end = None if seconds is None else self._started + seconds
        self.missed = False
        """Whether something optional was left out."""

    @property
    def left(self) -> float | None:
        """Seconds until then, not below zero."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        return self.left == 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was started."""
        return time.monotonic() - self._started

    @contextmanager
    def enforced(self, least: float = 0.0) -> Iterator[None]:
        """Raise an OutOfTimeError in this thread at the deadline, but not before `least` seconds have passed.

        >>> with Deadline(0.0).enforced():
        ...     while True:
        ...         pass
        Traceback (most recent call last):
        plait.kernel.deadline.OutOfTimeError
        """
        if self.left is None:
            yield
            return
        wait = max(self.left, least)
        if wait == 0.0:
            raise OutOfTimeError
        thread, lock, done, fired, met = get_ident(), RLock(), False, False, False

        def fire() -> None:
            nonlocal fired
            with _STARTING, lock:
                if not done:
                    fired = True
                    _raise_in(thread, OutOfTimeError)

        others = sys.unraisablehook

        def lost(unraisable: sys.UnraisableHookArgs) -> None:
            """Python drops exceptions in destructors, and in this function. So it is raised again a little later."""
            if isinstance(unraisable.exc_value, OutOfTimeError) and get_ident() == thread:
                _timer(_AGAIN, fire)
            else:
                others(unraisable)

        sys.unraisablehook = lost
        timer = _timer(wait, fire)
        try:
            yield
        except OutOfTimeError:
            met = True
            raise
        finally:
            timer.cancel()
            with lock:
                done = True
            if sys.unraisablehook is lost:
                sys.unraisablehook = others
            if fired and not met:  # the exception is under way: meet it here
                with suppress(OutOfTimeError):
                    for _ in range(1_000_000):
                        pass

    @contextmanager
    def optional(self) -> Iterator[None]:
        """Leave the rest of the block out at the deadline (but not before the time of grace), or on Ctrl-C."""
        try:
            with self.enforced(GRACE):
                yield
        except (OutOfTimeError, KeyboardInterrupt):
            self.missed = True


def interruptible(call: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """The result of a call, which is made in another thread. An exception in this thread is raised when the call has ended.

    CPython handles a signal in the main thread, between two instructions. A signal does not end a wait without a timeout
    if it arrives just before the wait begins, or in another thread. The exception of a deadline never ends one. So this
    thread waits in short turns. `interrupt` is repeated until the call has ended: Z3 ignores it before it begins, and
    while it reads a formula.

    >>> interruptible(lambda: 6 * 7, interrupt=lambda: None)
    42
    """
    results: list[T] = []
    errors: list[BaseException] = []
    begun, given_up, done = Event(), Event(), Event()

    def work() -> None:
        begun.set()
        if not given_up.is_set():
            try:
                results.append(call())
            except BaseException as error:
                errors.append(error)
        done.set()

    try:
        _start(Thread(target=work, daemon=True))
        while not done.wait(_TURN):
            pass
    except BaseException:
        # The exception may come from `start`. Then the thread exists or not. If it begins after this line, it does nothing.
        given_up.set()
        while begun.is_set() and not done.wait(_AGAIN):
            interrupt()
        raise
    if errors:
        raise errors[0]
    return results[0]


def _timer(seconds: float, call: Callable[[], None]) -> Timer:
    timer = Timer(seconds, call)
    timer.daemon = True
    _start(timer)
    return timer


def _start(thread: Thread) -> None:
    """Start a thread inside a block with a deadline."""
    with _STARTING:
        thread.start()


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have a thread raise an exception at its next instruction of Python. (CPython cannot take this back cleanly.)"""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
