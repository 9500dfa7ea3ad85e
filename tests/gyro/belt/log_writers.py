"""Writers for tests of logs: random requests against a simple oracle, and load with an account of what was accepted."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from plait.gyro.belt.logs.log import BehindError, Fence, FencedError, Log, LogGoneError, append_surely
from plait.gyro.belt.records import Entry, ForkedError, chained
from tests.support.patience import PATIENCE


def entry(
    seq: int, *, epoch: int = 1, turn: int = 0, holder: int = 0, request: str = "", after: Entry | None = None
) -> Entry:
    """An update that follows another one; by default, updates with the default arguments."""
    before = after or (entry(seq - 1) if seq > 1 else None)
    name = request or f"r{epoch}-{turn}-{seq}"
    made = Entry(seq, epoch, turn, holder, name, "post", b"{}", b"null", bytes([seq % 256, 0]))
    return chained("" if before is None else before.chain, [made])[0]


class Oracle:
    """What a log must do, for one writer at a time: a list of entries and two numbers."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.epoch = self.turn = 0

    def append(self, entries: list[Entry]) -> str:
        """The name of the error, or nothing."""
        first, history = entries[0], self.entries[-1].chain if self.entries else ""
        if first.epoch < self.epoch or (first.epoch == self.epoch and first.turn < self.turn):
            return "FencedError"
        if first.seq != len(self.entries) + 1:
            return "BehindError"
        if chained(history, entries) != entries:
            return "ForkedError"
        self.entries += entries
        self.epoch, self.turn = first.epoch, first.turn
        return ""

    def reissue(self, epoch: int) -> int | None:
        if epoch != self.epoch:
            return None
        self.epoch, self.turn = epoch + 1, 0
        return self.epoch

    def fence(self) -> Fence:
        return Fence(self.epoch, self.turn, len(self.entries), self.entries[-1].chain if self.entries else "")


def error_of(work: Callable[[], Any]) -> str:
    """The name of the error that a request gives, or nothing."""
    try:
        work()
    except (FencedError, BehindError, ForkedError) as error:
        return type(error).__name__
    return ""


def interleave(open_log: Callable[[], Log], seed: int, *, steps: int = 60) -> dict[str, int]:
    """Random requests of three servers, in a random order, compared with the oracle; how often each answer came."""
    generator = random.Random(seed)
    logs, oracle = [open_log() for _ in range(3)], Oracle()
    seen: dict[str, int] = {}
    for step in range(steps):
        log = generator.choice(logs)
        kind = generator.choice(["append"] * 6 + ["reissue", "fence", "read"])
        if kind == "append":
            epoch = max(0, oracle.epoch - (generator.random() < 0.15))
            turn = max(0, oracle.turn + generator.choice([0, 0, 1, 2, -1]))
            first = len(oracle.entries) + 1 + generator.choice([0] * 8 + [1, -1])
            history = oracle.entries[-1].chain if oracle.entries and generator.random() < 0.9 else ""
            made = [
                Entry(first + n, epoch, turn, step % 3, f"r{step}-{n}", "post", b"{}", b"null", generator.randbytes(9))
                for n in range(generator.choice([1, 1, 2, 5]))
            ]
            entries = chained(history, made)
            answer = error_of(lambda log=log, entries=entries: log.append(entries))  # type: ignore[misc]
            assert answer == oracle.append(entries), f"step {step}"
            seen[answer or "appended"] = seen.get(answer or "appended", 0) + 1
        elif kind == "reissue":
            epoch = oracle.epoch - (generator.random() < 0.3)
            assert log.reissue(epoch) == oracle.reissue(epoch), f"step {step}"
        elif kind == "fence":
            assert log.fence() == oracle.fence(), f"step {step}"
        else:
            after, limit = generator.randrange(len(oracle.entries) + 2), generator.choice([1, 3, 1000])
            assert log.read(after, limit) == oracle.entries[after : after + limit], f"step {step}"
    assert logs[0].read(0) == oracle.entries
    return seen


class Load:
    """Servers that append and begin epochs at the same time, for as long as a test wants; then an account."""

    def __init__(self, open_log: Callable[[], Log], *, writers: int = 3, reissues: float = 0.05) -> None:
        self._open = open_log
        self._reissues = reissues
        self._stopped = False
        self.accepted: list[Entry] = []
        """Entries that the log has acknowledged."""
        self.refused: list[Entry] = []
        self.epochs: list[int] = []
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(n,), daemon=True) for n in range(writers)]
        for thread in self._threads:
            thread.start()

    def _guarded(self, number: int) -> None:
        try:
            log = self._patiently(self._open)
            try:
                self._write(number, log)
            finally:
                log.close()
        except BaseException as error:
            self.errors.append(error)

    def _patiently(self, work: Callable[[], Any]) -> Any:
        while True:
            try:
                return work()
            except LogGoneError:
                time.sleep(0.05)

    def _write(self, number: int, log: Log) -> None:
        generator = random.Random(number)
        count = 0
        while not self._stopped:
            if generator.random() < self._reissues:
                epoch = self._patiently(log.fence).epoch
                try:
                    begun = log.reissue(epoch)
                except LogGoneError:
                    continue
                if begun is not None:
                    self.epochs.append(begun)
            fence = self._patiently(log.fence)
            count += 1
            made = Entry(
                fence.last + 1, fence.epoch, fence.turn, number, f"{number}-{count}", "post", b"{}", b"1", b"x"
            )
            entries = chained(
                fence.chain, [made, msgspec.structs.replace(made, seq=made.seq + 1, request=f"{number}-{count}b")]
            )
            try:
                append_surely(log, entries)
            except (BehindError, FencedError, ForkedError):
                self.refused += entries
            else:
                self.accepted += entries

    def stop(self) -> None:
        """Make the writers end."""
        self._stopped = True

    def judge(self) -> None:
        """Nothing accepted is lost, nothing refused is there, all is one history, and each epoch began once."""
        self.stop()
        for thread in self._threads:
            thread.join(timeout=PATIENCE)
            assert not thread.is_alive()
        if self.errors:
            raise self.errors[0]
        log = self._patiently(self._open)
        try:
            self._compare(log)
        finally:
            log.close()

    def _compare(self, log: Log) -> None:
        found: list[Entry] = []
        while batch := log.read(len(found)):
            found += batch
        assert [e.seq for e in found] == list(range(1, len(found) + 1))
        assert chained("", found) == found
        assert sorted(e.request for e in found) == sorted(e.request for e in self.accepted)
        assert set(found) == set(self.accepted)
        order = [(e.epoch, e.turn) for e in found]
        assert order == sorted(order)
        assert len(set(self.epochs)) == len(self.epochs)
        assert log.fence().last == len(found)
