"""The clock of a check: code of Python is interrupted at the deadline, and never after the block has ended."""

from __future__ import annotations

import threading
import time

import pytest

from plait.kernel.deadline import Deadline, OutOfTimeError


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
