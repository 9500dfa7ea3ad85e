"""A server of the Conveyor Belt: Algorithm 2 of Saissi 2019, with a durable log, so that servers may crash.

    receive a local operation        execute it at once, reply
    receive a global operation       put it into the queue
    receive the token                apply the updates of others; take a snapshot of the queue; execute its operations,
                                     append the updates to the log, commit, reply; pass the token on

A *visit* is the time between receiving and passing the token. The operations of one visit run one after the other in
one transaction. So the order of the log is the order of execution, independent of local operations that run at the
same time. The token carries the updates of the last round. A server that missed an update reads it from the log. A
server that gets no token for some time asks the log for a new one.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

import msgspec

from plait.gyro.belt.databases.database import AgainError, Database, Visit
from plait.gyro.belt.logs.log import BehindError, Fence, FencedError, Log, LogGoneError, TooLargeError, size_of
from plait.gyro.belt.metrics import Metrics
from plait.gyro.belt.records import (
    Call,
    DatabaseGoneError,
    Entry,
    OperationError,
    Outcome,
    OversizeError,
    Token,
    chained,
)

logger = logging.getLogger("plait.gyro")
BATCH = 64
"""Maximal number of operations in one visit. It limits how long local writers wait."""
MOST_PATIENCE = 32.0
"""The timeout for a lost token grows up to this factor, while no token comes round."""


class Transport(Protocol):
    """Messages between servers."""

    def send(self, server: int, token: Token) -> bool:
        """Pass the token to a server; False if it may not have arrived."""

    def hint(self) -> None:
        """Notify all other servers that an operation waits for the token."""


class Waiting:
    """A global operation in the queue."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.future: Future[Outcome] = Future()


class Node:
    """One server, without HTTP."""

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
    ) -> None:
        self.server = server
        self.servers = servers
        self.database = database
        self.log = log
        self.transport = transport
        self.metrics = Metrics()
        self.epoch, self.turn = 0, -1
        self.applied, self.last = 0, 0
        self.holding = False
        self.broken: str | None = None
        """The reason why this server stopped; None while it works."""
        self._idle = idle
        self._lost = lost
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
        self._thread = threading.Thread(target=self._guarded, name=f"belt-{server}", daemon=True)

    # -- requests ----------------------------------------------------------------------------------------------------

    def submit(self, call: Call) -> Future[Outcome]:
        """Add a global operation to the queue."""
        waiting = Waiting(call)
        with self._lock:
            self._queue.append(waiting)
        self._stir.set()
        if not self.holding:
            self.transport.hint()
        return waiting.future

    def withdraw(self, future: Future[Outcome]) -> bool:
        """Remove an operation from the queue; False if it is already executing."""
        with self._lock:
            found = [w for w in self._queue if w.future is future]
            self._queue = [w for w in self._queue if w.future is not future]
        return bool(found)

    @property
    def waiting(self) -> int:
        """The number of waiting global operations."""
        return len(self._queue)

    def hurry(self) -> None:
        """Another server waits for the token."""
        self._hurry = True
        self._stir.set()

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
        self._thread.start()

    def recover(self) -> None:
        """Apply all updates of the log to the DBMS: an operation in the log has happened."""
        self.database.settle(self.log)
        self.applied = self.database.applied()
        fence = self.log.fence()
        self.epoch, self.last = max(self.epoch, fence.epoch), fence.last
        self._catch_up(fence.last)

    def stop(self) -> None:
        """Stop the thread, and refuse the waiting operations."""
        self._stopped = True
        self._stir.set()
        self._inbox.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)
        self._refuse("the server is shutting down")

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as error:
            logger.exception("server %d: stopped by an internal error", self.server)
            self._break(f"{type(error).__name__}: {error}")

    def _break(self, reason: str) -> None:
        """Stop after an unexpected error. A restart recovers the state from the log."""
        self.broken = reason
        self._stopped = True
        self._refuse(reason)

    def _refuse(self, reason: str) -> None:
        with self._lock:
            left, self._queue = self._queue, []
        for waiting in left:
            if not waiting.future.done():
                waiting.future.set_exception(DatabaseGoneError(reason))

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
        try:
            return self._inbox.get(timeout=self._lost * (1 + 0.5 * self.server) * self._patience)
        except queue.Empty:
            self._patience = min(self._patience * 2, MOST_PATIENCE)
            return self._replace()

    def _newer(self, token: Token) -> bool:
        return (token.epoch, token.turn) > (self.epoch, self.turn)

    def _replace(self) -> Token | None:
        """Replace a lost token: the log begins a new epoch, which makes the old token invalid."""
        try:
            fence = self.log.fence()
            if fence.epoch > self.epoch:
                self.epoch, self.turn = fence.epoch, -1  # another server has issued a token: wait for it
                return None
            token = self._issue()
        except LogGoneError as error:
            logger.warning("server %d: the log does not answer: %s", self.server, error)
            return None
        if token is not None:
            logger.info("server %d: the token was lost; token %d replaces it", self.server, token.epoch)
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
        self.metrics.visits += 1
        try:
            kept = [e for e in token.entries if e.holder != self.server and e.turn + self.servers > token.turn]
            self._deliver(token.entries, token.last)
            if self.servers == 1 or not (kept or token.hurry or self._hurry):
                self._stir.wait(self._idle)  # no other server needs the token
            self._stir.clear()
            hurry = self.servers if self._hurry else max(token.hurry - 1, 0)
            self._hurry = False
            with self._lock:
                snapshot, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            try:
                added = self._execute(snapshot) if snapshot else []
            except BaseException:
                self._requeue(snapshot)
                raise
            return Token(token.epoch, token.turn + 1, self.last, kept + added, hurry)
        except FencedError as error:
            logger.info("server %d: token %d is invalid: %s", self.server, token.epoch, error)
            self.epoch, self.turn = error.fence.epoch, max(error.fence.turn - 1, -1)
            return None
        except (DatabaseGoneError, LogGoneError) as error:
            logger.warning("server %d: cannot execute global operations: %s", self.server, error)
            self.metrics.failures += 1
            self._mend()
            return Token(token.epoch, token.turn + 1, max(self.last, token.last), token.entries, 0)
        finally:
            self.holding = False

    def _deliver(self, entries: Sequence[Entry], last: int) -> None:
        """Apply the updates that the token carries; read missing updates from the log."""
        fresh = [e for e in entries if e.seq > self.applied]
        if fresh and fresh[0].seq == self.applied + 1 and all(b.seq == a.seq + 1 for a, b in itertools.pairwise(fresh)):
            self._apply(fresh)
        if self.applied < last:
            self._catch_up(last)

    def _catch_up(self, last: int) -> None:
        while self.applied < last:
            entries = self.log.read(self.applied)
            if not entries:
                raise LogGoneError(f"the log has no update after {self.applied}; expected updates up to {last}")
            self._apply(entries)
            self.last = max(self.last, entries[-1].seq)

    def _apply(self, entries: Sequence[Entry]) -> None:
        self.database.apply(entries, self.server)
        self.applied = entries[-1].seq
        self.metrics.applied += len(entries)

    def _execute(self, snapshot: list[Waiting]) -> list[Entry]:
        """Execute a snapshot of the queue in one transaction, with one append to the log."""
        while True:
            done: list[tuple[Waiting, Outcome | OperationError]] = []
            try:
                with self.database.visit() as visit:
                    self.applied = visit.seq
                    entries = self._batch(visit, snapshot, done)
                    if entries is None:
                        snapshot = [w for w in snapshot if not w.future.done()]
                        continue
                    if sum(map(size_of, entries)) > self.log.largest:
                        snapshot = self._smaller(snapshot, entries)
                        continue
                    visit.commit(entries, self.log)
            except TooLargeError as error:
                snapshot = self._half(snapshot, error)
                continue
            except BehindError as error:
                self._catch_up(error.last)
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
        return [w for w in snapshot if not w.future.done()]

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
        self, visit: Visit, snapshot: list[Waiting], done: list[tuple[Waiting, Outcome | OperationError]]
    ) -> list[Entry] | None:
        """Run the operations; None if one of them ended the transaction and the others must run again."""
        entries: list[Entry] = []
        for waiting in snapshot:
            call = waiting.call
            seq = visit.seq + len(entries)
            try:
                if (known := visit.repeated(call) or _twin(call, done)) is not None:
                    done.append((waiting, known))
                    continue
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
            arguments = msgspec.json.encode(call.arguments)
            made = Entry(
                seq + 1, self.epoch, self.turn, self.server, call.request, call.operation, arguments, reply, update
            )
            entries += chained(entries[-1].chain if entries else visit.chain, [made])
            done.append((waiting, Outcome(reply, seq + 1, 0, wrote=True)))
        return entries

    def _settle(self, waiting: Waiting, result: Outcome | OperationError) -> None:
        self.metrics.done("global", isinstance(result, OperationError))
        if waiting.future.done():
            return
        if isinstance(result, OperationError):
            waiting.future.set_exception(result)
        else:
            waiting.future.set_result(result)

    def _requeue(self, snapshot: list[Waiting]) -> None:
        with self._lock:
            waiting = {id(w) for w in self._queue}
            self._queue = [w for w in snapshot if not w.future.done() and id(w) not in waiting] + self._queue

    def _mend(self) -> None:
        """Recover after a failure. If the DBMS or the log does not answer, refuse the waiting operations."""
        try:
            self.recover()
        except (DatabaseGoneError, LogGoneError) as error:
            time.sleep(min(self._idle, 0.1))
            self._refuse(str(error))

    def _pass(self, token: Token) -> Token | None:
        """Pass the token to the next server that accepts it; return it if no other server does."""
        self._step("pass")
        for distance in range(1, self.servers):
            if self.transport.send((self.server + distance) % self.servers, token):
                self._step("passed")
                return None
            token = msgspec.structs.replace(token, turn=token.turn + 1)
        return token

    def fence(self) -> Fence:
        """The newest epoch, turn and update that this server knows."""
        return Fence(self.epoch, self.turn, self.last)


def _twin(call: Call, done: list[tuple[Waiting, Outcome | OperationError]]) -> Outcome | OperationError | None:
    """The result of the same request, if it was executed earlier in this visit."""
    for waiting, result in done:
        if waiting.call.request == call.request:
            call.check_same(waiting.call.operation, msgspec.json.encode(waiting.call.arguments))
            return result
    return None
