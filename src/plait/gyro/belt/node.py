"""A server of the Conveyor Belt: Algorithm 2 of Saissi 2019, with the durable log in the place of servers that never fail.

    receive a local operation        execute it at once, reply
    receive a global operation       put it into the queue
    receive the token                apply the updates of others; take a snapshot of the queue; execute what is in it, append
                                     the updates to the log, commit, reply; pass the token on

The operations of one visit run one after the other in one transaction, so the order of the log is the order of execution,
whatever the DBMS does with local operations meanwhile. A token brings the updates of the last round; who missed one reads
it in the log. A server that has not seen a token for a while has the log make a new one.
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
from plait.gyro.belt.logs.log import BehindError, Fence, FencedError, Log, LogGoneError
from plait.gyro.belt.metrics import Metrics
from plait.gyro.belt.records import Call, DatabaseGoneError, Entry, OperationError, Outcome, Token

logger = logging.getLogger("plait.gyro")
BATCH = 64
"""Operations of one visit at most, so that local writers do not wait long."""


class Transport(Protocol):
    """How servers reach each other."""

    def send(self, server: int, token: Token) -> bool:
        """Hand the token over; False if the server certainly or probably did not take it."""

    def hint(self) -> None:
        """Tell all others that somebody waits for the token."""


class Waiting:
    """A global operation in the queue."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.future: Future[Outcome] = Future()


class Node:
    """One server, without its HTTP side."""

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
        """Why this server had to stop."""
        self._idle = idle
        self._lost = lost
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
        """Queue a global operation."""
        waiting = Waiting(call)
        with self._lock:
            self._queue.append(waiting)
        self._stir.set()
        if not self.holding:
            self.transport.hint()
        return waiting.future

    def withdraw(self, future: Future[Outcome]) -> bool:
        """Take an operation out of the queue; False if it is being executed."""
        with self._lock:
            found = [w for w in self._queue if w.future is future]
            self._queue = [w for w in self._queue if w.future is not future]
        return bool(found)

    @property
    def waiting(self) -> int:
        """How many global operations wait."""
        return len(self._queue)

    def hurry(self) -> None:
        """Somebody waits for the token."""
        self._hurry = True
        self._stir.set()

    def receive(self, token: Token) -> None:
        """The token arrives."""
        self._inbox.put(token)

    # -- the belt ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover from the log, then take part.

        An append from before a crash may still be on its way to the log. So a new epoch begins before the log is read:
        what has not arrived by then is refused.
        """
        self._first = self._issue()
        self.recover()
        self._thread.start()

    def recover(self) -> None:
        """Bring the DBMS to where the log is: what was appended has happened."""
        self.database.settle(self.log)
        self.applied = self.database.applied()
        fence = self.log.fence()
        self.epoch, self.last = max(self.epoch, fence.epoch), fence.last
        self._catch_up(fence.last)

    def stop(self) -> None:
        """End the thread. What waits is refused."""
        self._stopped = True
        self._stir.set()
        self._inbox.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)
        self._refuse("the server stops")

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as error:
            logger.exception("server %d: the belt stops", self.server)
            self._break(f"{type(error).__name__}: {error}")

    def _break(self, reason: str) -> None:
        """Do not go on with a state that is not understood: a restart reads the log."""
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
        """The next token; if none comes, a new one."""
        try:
            return self._inbox.get(timeout=self._lost * (1 + 0.5 * self.server))
        except queue.Empty:
            return self._replace()

    def _newer(self, token: Token) -> bool:
        return (token.epoch, token.turn) > (self.epoch, self.turn)

    def _replace(self) -> Token | None:
        """Have the log fence a token off that does not come, and make a new one."""
        try:
            fence = self.log.fence()
            if fence.epoch > self.epoch:
                self.epoch, self.turn = fence.epoch, -1  # somebody else was faster: wait for that token
                return None
            token = self._issue()
        except LogGoneError as error:
            logger.warning("server %d: the log does not answer: %s", self.server, error)
            return None
        if token is not None:
            logger.info("server %d: the token is lost, and token %d takes its place", self.server, token.epoch)
        return token

    def _issue(self) -> Token | None:
        """Begin a new epoch, whose token is this server's; None if somebody else has just begun one."""
        epoch = self.log.reissue(self.log.fence().epoch)
        if epoch is None:
            return None
        self.metrics.issued += 1
        return Token(epoch, 0, self.log.fence().last)

    def _visit(self, token: Token) -> Token | None:
        """What Algorithm 2 does when the token comes. None if the token turns out to be a ghost."""
        self.epoch, self.turn = token.epoch, token.turn
        self.last = max(self.last, token.last)
        self._step("received")
        self.holding = True
        self.metrics.visits += 1
        try:
            kept = [e for e in token.entries if e.holder != self.server and e.turn + self.servers > token.turn]
            self._deliver(token.entries, token.last)
            if self.servers == 1 or not (kept or token.hurry or self._hurry):
                self._stir.wait(self._idle)  # nobody else needs it: no hurry
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
            logger.info("server %d: drops token %d: %s", self.server, token.epoch, error)
            self.epoch, self.turn = error.fence.epoch, max(error.fence.turn - 1, -1)
            return None
        except (DatabaseGoneError, LogGoneError) as error:
            logger.warning("server %d: the visit fails: %s", self.server, error)
            self.metrics.failures += 1
            self._mend()
            return Token(token.epoch, token.turn + 1, max(self.last, token.last), token.entries, 0)
        finally:
            self.holding = False

    def _deliver(self, entries: Sequence[Entry], last: int) -> None:
        """Apply the updates that the token brings, and from the log those that it does not."""
        fresh = [e for e in entries if e.seq > self.applied]
        if fresh and fresh[0].seq == self.applied + 1 and all(b.seq == a.seq + 1 for a, b in itertools.pairwise(fresh)):
            self._apply(fresh)
        if self.applied < last:
            self._catch_up(last)

    def _catch_up(self, last: int) -> None:
        while self.applied < last:
            entries = self.log.read(self.applied)
            if not entries:
                raise LogGoneError(f"the log has no update after {self.applied}, and should go up to {last}")
            self._apply(entries)
            self.last = max(self.last, entries[-1].seq)

    def _apply(self, entries: Sequence[Entry]) -> None:
        self.database.apply(entries, self.server)
        self.applied = entries[-1].seq
        self.metrics.applied += len(entries)

    def _execute(self, snapshot: list[Waiting]) -> list[Entry]:
        """Execute a snapshot of the queue: one transaction, one append."""
        while True:
            done: list[tuple[Waiting, Outcome | OperationError]] = []
            try:
                with self.database.visit() as visit:
                    self.applied = visit.seq
                    entries = self._batch(visit, snapshot, done)
                    if entries is None:
                        snapshot = [w for w in snapshot if not w.future.done()]
                        continue
                    visit.commit(entries, self.log)
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

    def _batch(
        self, visit: Visit, snapshot: list[Waiting], done: list[tuple[Waiting, Outcome | OperationError]]
    ) -> list[Entry] | None:
        """Run the operations; None if one of them ended the transaction, and the others have to run again."""
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
            entries.append(
                Entry(
                    seq + 1, self.epoch, self.turn, self.server, call.request, call.operation, arguments, reply, update
                )
            )
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
            self._queue = [w for w in snapshot if not w.future.done()] + self._queue

    def _mend(self) -> None:
        """After a failure: is the DBMS back, and where does it stand? If not, nobody should wait."""
        try:
            self.recover()
        except (DatabaseGoneError, LogGoneError) as error:
            time.sleep(min(self._idle, 0.1))
            self._refuse(str(error))

    def _pass(self, token: Token) -> Token | None:
        """Hand the token to the next server that takes it; the token, if that is this one."""
        self._step("pass")
        for distance in range(1, self.servers):
            if self.transport.send((self.server + distance) % self.servers, token):
                self._step("passed")
                return None
            token = msgspec.structs.replace(token, turn=token.turn + 1)
        return token

    def fence(self) -> Fence:
        """What this server knows of the token."""
        return Fence(self.epoch, self.turn, self.last)


def _twin(call: Call, done: list[tuple[Waiting, Outcome | OperationError]]) -> Outcome | OperationError | None:
    """What the same request came to that was executed just before."""
    for waiting, result in done:
        if waiting.call.request == call.request:
            call.check_same(waiting.call.operation, msgspec.json.encode(waiting.call.arguments))
            return result
    return None
