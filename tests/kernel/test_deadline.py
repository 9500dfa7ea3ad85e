"""The clock of a check: code of Python is interrupted at the deadline, and never after the block has ended.

A call of C code is interrupted until it ends, whenever the exception comes to the thread that waits for it.
"""

from __future__ import annotations

import signal
import sys
import threading
import time

import pytest

from plait.kernel.deadline import Deadline, OutOfTimeError, interruptible
from tests.support.patience import PATIENCE, until


def endless() -> None:
    while True:
        try:
            while True:
                pass
        except Exception:
            pass


def test_an_endless_loop_is_interrupted() -> None:
    with pytest.raises(OutOfTimeError), Deadline(0.05).enforced():
        endless()


class Dropped:
    """Python drops an exception in its destructor, which takes most of the time."""

    def __del__(self) -> None:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass


def test_an_exception_that_a_destructor_loses_comes_again() -> None:
    def work() -> None:
        Dropped()
        endless()

    before = sys.unraisablehook
    with pytest.raises(OutOfTimeError), Deadline(0.1).enforced():
        work()
    assert sys.unraisablehook is before


def test_other_exceptions_in_destructors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Faulty:
        def __del__(self) -> None:
            raise ValueError("in a destructor")

    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(str(unraisable.exc_value)))
    with Deadline(PATIENCE).enforced():
        Faulty()
    assert told == ["in a destructor"]


def test_in_another_thread() -> None:
    met: list[BaseException] = []

    def work() -> None:
        try:
            with Deadline(0.05).enforced():
                endless()
        except OutOfTimeError as error:
            met.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(met) == 1


def test_nothing_comes_after_the_block() -> None:
    """Blocks that end about when the time is over: the exception comes inside, or not at all."""
    for number in range(200):
        clock = Deadline(0.0005)
        end = time.monotonic() + 0.00045 + number * 1e-6
        try:
            with clock.enforced():
                while time.monotonic() < end:
                    pass
        except OutOfTimeError:
            pass
    for _ in range(100_000):
        pass


def test_what_is_optional_is_left_out() -> None:
    clock, done = Deadline(None), []
    with clock.optional():
        done.append(1)
    assert (done, clock.missed) == ([1], False)
    with clock.optional():
        raise KeyboardInterrupt
    assert clock.missed


def test_a_clock_without_end() -> None:
    clock = Deadline(None)
    with clock.enforced():
        assert (clock.left, clock.over) == (None, False)
    assert Deadline(0).over


class Call:
    """A call that ends when it was interrupted three times, or after a long time."""

    def __init__(self) -> None:
        self.left = 3
        self.over = threading.Event()
        self.calls = self.ended = 0

    def __call__(self) -> None:
        self.calls += 1
        assert self.over.wait(PATIENCE), "it was not interrupted"
        self.ended += 1

    def interrupt(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.over.set()


def test_a_signal_that_another_thread_receives() -> None:
    """Such a signal does not end a wait in the main thread. Neither does one that arrives just before the wait."""
    call = Call()

    def signalled() -> None:
        time.sleep(0.2)  # the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        call()

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(signalled, call.interrupt)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (call.calls, call.ended) == (1, 1)


def test_a_call_at_the_deadline() -> None:
    call = Call()
    with pytest.raises(OutOfTimeError), Deadline(0.05).enforced():
        interruptible(call, call.interrupt)
    assert call.calls == call.ended


def test_a_deadline_while_the_thread_starts() -> None:
    """CPython gives a new thread the identity of its parent until it runs: the new thread must not get the exception."""

    def start_threads(seconds: float) -> None:
        with Deadline(seconds).enforced():
            while True:
                interruptible(lambda: None, lambda: None)

    for number in range(60):
        with pytest.raises(OutOfTimeError):
            start_threads(0.001 + number / 10_000)


def test_ctrl_c_while_the_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    call, start = Call(), threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        until(lambda: call.calls == 1, "the call begins")
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        interruptible(call, call.interrupt)
    assert (call.calls, call.ended) == (1, 1)


def test_a_thread_that_begins_after_ctrl_c_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    call, start = Call(), threading.Thread.start
    late: list[threading.Thread] = []

    def interrupted(thread: threading.Thread) -> None:
        late.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        interruptible(call, call.interrupt)
    start(late[0])
    late[0].join(PATIENCE)
    assert call.calls == 0


def test_an_error_of_the_call() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, lambda: None)
