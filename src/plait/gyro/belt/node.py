"""A server of the Conveyor Belt: Algorithm 2 of Saissi 2019, with a durable log, so that servers may crash.

    receive a local operation        execute it at once, ship its update to the log (`replication/shipper.py`), reply
    receive a global operation       put it into the queue
    receive the token                apply the updates of others; take a snapshot of the queue; ship local updates,
                                     execute the operations, append their updates to the log, commit, reply; pass
                                     the token on

A *visit* is the time between receiving and passing the token. The operations of one visit run one after the other in
one transaction. So the order of the log is the order of execution, independent of local operations that run at the
same time. If operations take long, and the DBMS can do so, those that do not conflict run at the same time first
(`databases/postgresql/group.py`). The token carries the updates of the last round. A server that missed an update
reads it from the log. A server that gets no token for some time asks the log for a new one.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from plait.gyro.belt.configuration.changes import PAUSE, ActivatedError, Changes
from plait.gyro.belt.configuration.configuration import Configuration, kind_of
from plait.gyro.belt.configuration.gate import Gate
from plait.gyro.belt.databases.batching import reads, writes
from plait.gyro.belt.databases.database import AgainError, Database, Visit
from plait.gyro.belt.logs.log import (
    BehindError,
    Fence,
    FencedError,
    Log,
    LogGoneError,
    ReplacedError,
    RestoredError,
    Staleness,
    TooLargeError,
    size_of,
)
from plait.gyro.belt.metrics import Metrics
from plait.gyro.belt.records import (
    Call,
    DatabaseGoneError,
    Entry,
    ForkedError,
    OperationError,
    Outcome,
    OversizeError,
    Result,
    Token,
    Waiting,
    chained,
    only,
    twin,
)
from plait.gyro.belt.replication.shipper import Shipper
from plait.gyro.belt.service.events import event
from plait.gyro.belt.transport import Transport

logger = logging.getLogger("plait.gyro")
BATCH = 64
"""Maximal number of operations in one visit. It limits how long local writers wait."""
TOGETHER = 8
"""Maximal number of operations that run at the same time."""
MOST_APART = 63
"""Maximal number of visits without a group, after groups in which most operations conflicted."""
MOST_PATIENCE = 32.0
"""The timeout for a lost token grows up to this factor, while no token comes round."""


class Node:
    """One server, without HTTP."""

    slow = 0.01
    """Operations that take less time, in seconds, run one after the other: a transaction for each would cost more."""

    def __init__(
        self,
        server: int,
        servers: int,
        database: Database,
        log: Log,
        transport: Transport,
        *,
        idle: float = 0.25,
        lost: float = 3.0,
        step: Callable[[str], None] = lambda _: None,
        incarnation: int = 0,
        shipper: Shipper | None = None,
        metrics: Metrics | None = None,
        members: Sequence[int] = (),
    ) -> None:
        self.server = server
        self.servers = servers
        self.members = list(members) or list(range(servers))
        self.gate = Gate()
        self.changes: Changes | None = None
        self.activated: Configuration | None = None
        """The configuration that has begun since the start: the server must start anew."""
        self.incarnation = incarnation
        self.shipper = shipper
        """Ships local updates to the log; None if they are not replicated."""
        self.database = database
        self.log = log
        self.transport = transport
        self.metrics = metrics or Metrics()
        self.epoch, self.turn = 0, -1
        self.applied, self.last = 0, 0
        self.holding = False
        self.broken: str | None = None
        """The reason why this server stopped; None while it works."""
        self._idle = idle
        self._lost = lost
        self._pace = 0.0
        """The mean time of the operations of the last visit."""
        self._apart = self._in_vain = 0
        """If most operations of a group conflict, more and more visits follow in which operations run one by one."""
        self._patience = 1.0
        """Multiplies the timeout for a lost token. A visit that takes longer than the timeout loses its epoch, and is
        repeated: with a fixed timeout, a slow server would repeat it for ever."""
        self._step = step
        self._inbox: queue.Queue[Token | None] = queue.Queue()
        self._queue: list[Waiting] = []
        self._lock = threading.Lock()
        self._stir = threading.Event()
        self._hurry = False
        self._stopped = False
        self._first: Token | None = None
        self._stale = Staleness()
        self._thread = threading.Thread(target=self._guarded, name=f"belt-{server}", daemon=True)

    # -- requests ----------------------------------------------------------------------------------------------------

    def submit(self, call: Call) -> Waiting:
        """Add a global operation to the queue."""
        return self.submit_all([call])[0]

    def submit_all(self, calls: Sequence[Call]) -> list[Waiting]:
        """Add global operations to the queue, so that one visit may execute all of them."""
        waiting = [Waiting(call) for call in calls]
        with self._lock:
            self._queue += waiting
        self._stir.set()
        if not self.holding:
            self.transport.hint()
        return waiting

    def read(self, call: Call) -> Outcome:
        """Execute a read-only operation at once."""
        return only(self.reads([call]))

    def write(self, call: Call) -> Outcome:
        """Execute a local operation at once."""
        return only(self.writes([call]))

    def reads(self, calls: Iterable[Call]) -> Sequence[Result]:
        """Execute read-only operations at once. It takes the next one when it has executed the one before."""
        try:
            with self.gate.passing("read"):
                return reads(self.database)(calls)
        finally:
            if self.shipper is not None:
                self.shipper.settle()

    def writes(self, calls: Iterable[Call]) -> Sequence[Result]:
        """Execute local operations at once. It takes the next one when it has executed the one before."""
        if self.shipper is None:
            return writes(self.database)(calls)
        with self.gate.passing("write"), self.shipper.writing():
            return writes(self.database)(calls)

    def withdraw(self, waiting: Waiting) -> bool:
        """Remove an operation from the queue; False if it is already executing."""
        with self._lock:
            before = len(self._queue)
            self._queue = [w for w in self._queue if w is not waiting]
            return len(self._queue) < before

    @property
    def waiting(self) -> int:
        """The number of waiting global operations."""
        return len(self._queue)

    def hurry(self) -> None:
        """Another server waits for the token."""
        self._hurry = True
        self._stir.set()

    def stir(self) -> None:
        """This server wants the token."""
        self._stir.set()
        if not self.holding:
            self.transport.hint()

    def receive(self, token: Token) -> None:
        """Receive the token."""
        self._inbox.put(token)

    # -- the belt ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover from the log, then join the ring.

        An append from before a crash may still be on its way to the log. So a new epoch begins before the log is read.
        An append of the old epoch that arrives later is refused.
        """
        self._first = self._issue()
        self.recover()
        if self.shipper is not None:
            self.shipper.start()
        self._thread.start()

    def recover(self) -> None:
        """Apply all updates of the log to the DBMS: an operation in the log has happened."""
        self.database.settle(self.log)
        self.applied = self.database.applied()
        fence = self._check(self.log.fence())
        self.epoch, self.last = max(self.epoch, fence.epoch), fence.last
        self.catch_up(fence.last)

    def _check(self, fence: Fence) -> Fence:
        """Stop if this server was rebuilt elsewhere."""
        if (known := fence.incarnations.get(self.server, 0)) != self.incarnation:
            raise ReplacedError(self.server, known)
        return fence

    def stop(self) -> None:
        """Stop the thread, and refuse the waiting operations."""
        self._stopped = True
        self._stir.set()
        self._inbox.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)
        if self.shipper is not None:
            self.shipper.stop()
        self._refuse("the server is shutting down")

    def _guarded(self) -> None:
        try:
            self._run()
        except (ForkedError, ReplacedError, RestoredError) as error:
            logger.error("error: %s", error)
            self.end(str(error))
        except ActivatedError as error:
            self.end(str(error))
            self.activated = error.configuration
        except Exception as error:
            logger.exception("server %d: stopped by an internal error", self.server, extra=event("server_broken"))
            self.end(f"{type(error).__name__}: {error}")

    def end(self, reason: str) -> None:
        """Stop after an unexpected error. A restart recovers the state from the log."""
        self.broken = reason
        self._stopped = True
        self._refuse(reason)

    def _refuse(self, reason: str) -> None:
        with self._lock:
            left, self._queue = self._queue, []
        for waiting in left:
            if waiting.found is None:
                waiting.settle(DatabaseGoneError(reason))

    def _run(self) -> None:
        token = self._first
        while not self._stopped:
            token = token or self._await()
            if token is None:
                continue
            token = self._visit(token) if self._newer(token) else None
            if token is not None:
                token = self._pass(token)

    def _await(self) -> Token | None:
        """Wait for the token; issue a new one after a timeout."""
        deadline = time.monotonic() + self._lost * (1 + 0.5 * self.server) * self._patience
        try:
            while self._pending() and time.monotonic() < deadline:
                with contextlib.suppress(queue.Empty):
                    return self._inbox.get(timeout=PAUSE)
                self._follow()  # a server that is removed gets no token any more
            return self._inbox.get(timeout=max(deadline - time.monotonic(), 0))
        except queue.Empty:
            self._patience = min(self._patience * 2, MOST_PATIENCE)
            return self._replace()

    def _pending(self) -> bool:
        return self.changes is not None and self.changes.pending is not None

    def _follow(self) -> None:
        """Apply what is new in the log."""
        with contextlib.suppress(DatabaseGoneError, LogGoneError):
            self.catch_up(self.log.fence().last)

    def _newer(self, token: Token) -> bool:
        return (token.epoch, token.turn) > (self.epoch, self.turn)

    def _replace(self) -> Token | None:
        """Replace a lost token: the log begins a new epoch, which makes the old token invalid."""
        try:
            fence = self._check(self.log.fence())
            self._stale.clear()
            if fence.epoch > self.epoch:
                self.epoch, self.turn = fence.epoch, -1  # another server has issued a token: wait for it
                return None
            token = self._issue()
        except LogGoneError as error:
            logger.warning(
                "server %d: the log does not answer: %s",
                self.server,
                error,
                extra=event("log_unavailable", error=error),
            )
            self._stale.note(error)
            return None
        if token is not None:
            logger.info(
                "server %d: the token was lost; token %d replaces it",
                self.server,
                token.epoch,
                extra=event("token_replaced", epoch=token.epoch),
            )
        return token

    def _issue(self) -> Token | None:
        """Begin a new epoch and return its token; None if another server has just begun one."""
        epoch = self.log.reissue(self.log.fence().epoch)
        if epoch is None:
            return None
        self.metrics.issued += 1
        return Token(epoch, 0, self.log.fence().last)

    def _visit(self, token: Token) -> Token | None:
        """Process the token (Algorithm 2); return the token to pass on, or None if the token is invalid."""
        self.epoch, self.turn = token.epoch, token.turn
        self.last = max(self.last, token.last)
        if token.turn >= self.servers:  # it has come round
            self._patience = max(self._patience / 2, 1.0)
        self._step("received")
        self.holding = True
        self.metrics.arrive()
        try:
            kept = [e for e in token.entries if e.holder != self.server and e.turn + self.servers > token.turn]
            self._deliver(token.entries, token.last)
            if not self._pending() and (self.servers == 1 or not (kept or token.hurry or self._hurry)):
                self._stir.wait(self._idle)  # no other server needs the token
            self._stir.clear()
            if self.changes is not None:
                kept += self.changes.visit()
            hurry = self.servers if self._hurry else max(token.hurry - 1, 0)
            self._hurry = False
            with self._lock:
                snapshot, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            now = time.perf_counter()
            for waiting in snapshot:
                self.metrics.queued.observe(now - waiting.since)
            try:
                added = self._execute(snapshot) if snapshot else []
            except BaseException:
                self._requeue(snapshot)
                raise
            if snapshot:
                self._stale.clear()
            return Token(token.epoch, token.turn + 1, self.last, kept + added, hurry)
        except FencedError as error:
            logger.info(
                "server %d: token %d is invalid: %s",
                self.server,
                token.epoch,
                error,
                extra=event("token_invalid", epoch=token.epoch, current=error.fence.epoch),
            )
            self.epoch, self.turn = error.fence.epoch, max(error.fence.turn - 1, -1)
            return None
        except (DatabaseGoneError, LogGoneError) as error:
            logger.warning(
                "server %d: cannot execute global operations: %s",
                self.server,
                error,
                extra=event("visit_failed", error=error, waiting=self.waiting),
            )
            self.metrics.failures += 1
            self._stale.note(error)
            self._mend()
            return Token(token.epoch, token.turn + 1, max(self.last, token.last), token.entries, 0)
        finally:
            self.holding = False
            self.metrics.leave()

    def _deliver(self, entries: Sequence[Entry], last: int) -> None:
        """Apply the updates that the token carries; read missing updates from the log."""
        fresh = [e for e in entries if e.seq > self.applied]
        if fresh and fresh[0].seq == self.applied + 1 and all(b.seq == a.seq + 1 for a, b in itertools.pairwise(fresh)):
            self.deliver(fresh)
        if self.applied < last:
            self.catch_up(last)

    def catch_up(self, last: int) -> None:
        """Apply the updates of the log, up to a seq."""
        while self.applied < last:
            entries = self.log.read(self.applied)
            if not entries:
                raise LogGoneError(f"the log has no update after {self.applied}; expected updates up to {last}")
            self.deliver(entries)
            self.last = max(self.last, entries[-1].seq)

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Apply entries in order: updates of operations, and entries of a change."""
        for kind, found in itertools.groupby(entries, kind_of):
            updates = list(found)
            if not kind:
                self.database.apply(updates, self.server)
            for entry in updates if kind else ():
                assert self.changes is not None, "a change needs replicated local updates"
                self.changes.apply(entry)
            self.applied = updates[-1].seq
            self.last = max(self.last, self.applied)
            self.metrics.applied += len(updates)

    def _execute(self, snapshot: list[Waiting]) -> list[Entry]:
        """Execute a snapshot of the queue: what does not conflict at the same time, the rest in order."""
        added: list[Entry] = []
        self._apart -= 1
        if self._pace > self.slow and self._apart < 0:
            distinct = list({w.call.request: w for w in snapshot}.values())
            for first in range(0, len(distinct), TOGETHER):
                added += self._together(distinct[first : first + TOGETHER])
        rest = [w for w in snapshot if w.found is None]
        return added + (self._one_by_one(rest) if rest else [])

    def _together(self, chosen: Sequence[Waiting]) -> list[Entry]:
        """Execute operations at the same time, with one append to the log. Those that conflict are left."""
        if (began := self.database.together([w.call for w in chosen])) is None:
            return []
        try:
            with began as group:
                self.applied = group.seq
                shipped = self._shipped()  # all that the snapshots may contain
                make = functools.partial(self._entry, shipped=shipped)
                group.run([w.call for w in chosen], make, self.log.largest)
                group.commit(self.log)
        except BehindError as error:
            self.catch_up(error.last)
            return []
        except TooLargeError:
            return []
        self._pace = group.seconds
        self._in_vain = 0 if 2 * len(group.entries) >= len(chosen) else min(2 * self._in_vain + 1, MOST_APART)
        self._apart = self._in_vain
        waiting = {w.call.request: w for w in chosen}
        for entry in group.entries:
            self.applied = self.last = entry.seq
            self._settle(waiting[entry.request], Outcome(entry.reply, entry.seq, 0, wrote=True))
        self._step("replied")
        return list(group.entries)

    def _shipped(self) -> int:
        """Ship all local updates; the number of local operations on which a global one may depend."""
        return self.database.written() if self.shipper is None else self.shipper.ship()

    def _entry(self, seq: int, call: Call, reply: bytes, update: bytes, shipped: int) -> Entry:
        arguments = msgspec.json.encode(call.arguments)
        return Entry(
            seq, self.epoch, self.turn, self.server, call.request, call.operation, arguments, reply, update,
            incarnation=self.incarnation, shipped=shipped,
        )  # fmt: skip

    def _one_by_one(self, snapshot: list[Waiting]) -> list[Entry]:
        """Execute operations in one transaction, with one append to the log."""
        while True:
            done: list[tuple[Waiting, Outcome | OperationError]] = []
            try:
                with self.database.visit() as visit:
                    self.applied = visit.seq
                    shipped = self._shipped()
                    begin = time.perf_counter()
                    entries = self._batch(visit, snapshot, done, shipped)
                    self._pace = (time.perf_counter() - begin) / max(len(snapshot), 1)
                    if entries is None:
                        snapshot = [w for w in snapshot if w.found is None]
                        continue
                    if sum(map(size_of, entries)) > self.log.largest:
                        snapshot = self._smaller(snapshot, entries)
                        continue
                    visit.commit(entries, self.log)
            except TooLargeError as error:
                snapshot = self._half(snapshot, error)
                continue
            except BehindError as error:
                if error.last < self.applied:  # the log was restored from an older copy
                    raise ForkedError(f"update {self.applied + 1}") from None
                self.catch_up(error.last)
                continue
            except AgainError:
                time.sleep(0.001)
                continue
            if entries:
                self.applied = self.last = entries[-1].seq
            for waiting, result in done:
                self._settle(waiting, result)
            self._step("replied")
            return entries

    def _smaller(self, snapshot: list[Waiting], entries: list[Entry]) -> list[Waiting]:
        """What to execute instead of operations whose updates are too large for one append to the log."""
        sizes = {e.request: size for e in entries if (size := size_of(e)) > self.log.largest}
        if not sizes:
            return self._half(snapshot, TooLargeError())
        for waiting in snapshot:
            if waiting.call.request in sizes:
                self._refuse_size(waiting, f"{sizes[waiting.call.request]:,} bytes")
        return [w for w in snapshot if w.found is None]

    def _half(self, snapshot: list[Waiting], error: TooLargeError) -> list[Waiting]:
        """The first half of the operations; the others wait. A single one that the log refuses fails."""
        if len(snapshot) == 1:
            self._refuse_size(snapshot[0], str(error))
            return []
        self._requeue(snapshot[len(snapshot) // 2 :])
        return snapshot[: len(snapshot) // 2]

    def _refuse_size(self, waiting: Waiting, size: str) -> None:
        what = f"the parameters, the reply and the changed rows of {waiting.call.operation}"
        limit = f"{size}; at most {self.log.largest:,} bytes"
        self._settle(waiting, OversizeError(f"{what} are too large for the log ({limit})"))

    def _batch(
        self,
        visit: Visit,
        snapshot: list[Waiting],
        done: list[tuple[Waiting, Outcome | OperationError]],
        shipped: int,
    ) -> list[Entry] | None:
        """Run the operations; None if one of them ended the transaction and the others must run again."""
        entries: list[Entry] = []
        twins: dict[str, int] = {}
        for waiting in snapshot:
            call = waiting.call
            seq = visit.seq + len(entries)
            try:
                if (known := visit.repeated(call) or twin(call, twins, done)) is not None:
                    done.append((waiting, known))
                    continue
                twins[call.request] = len(done)
                self._step("execute")
                reply, update = visit.execute(call)
            except OperationError as error:
                if not visit.alive:
                    self._settle(waiting, error)
                    return None
                done.append((waiting, error))
                continue
            self._step("executed")
            if not update:
                done.append((waiting, Outcome(reply, seq, 0 if entries else visit.position)))
                continue
            made = self._entry(seq + 1, call, reply, update, shipped)
            entries += chained(entries[-1].chain if entries else visit.chain, [made])
            done.append((waiting, Outcome(reply, seq + 1, 0, wrote=True)))
        return entries

    def _settle(self, waiting: Waiting, result: Outcome | OperationError) -> None:
        self.metrics.done("global", isinstance(result, OperationError))
        if waiting.found is None:
            waiting.settle(result)

    def _requeue(self, snapshot: list[Waiting]) -> None:
        with self._lock:
            waiting = {id(w) for w in self._queue}
            self._queue = [w for w in snapshot if w.found is None and id(w) not in waiting] + self._queue

    def _mend(self) -> None:
        """Recover after a failure. If the DBMS or the log does not answer, refuse the waiting operations."""
        try:
            self.recover()
            self._stale.clear()
        except (DatabaseGoneError, LogGoneError) as error:
            time.sleep(min(self._idle, 0.1))
            self._refuse(str(error))

    def _pass(self, token: Token) -> Token | None:
        """Pass the token to the next server that accepts it; return it if no other server does."""
        self._step("pass")
        place = self.members.index(self.server)  # members get the token in this order
        for server in self.members[place + 1 :] + self.members[:place]:
            if self.transport.send(server, token):
                self._step("passed")
                return None
            token = msgspec.structs.replace(token, turn=token.turn + 1)
        return token
