"""Ships the local updates of a server to its stream in the log.

The transaction of a local operation puts its update into the outbox of the DBMS. A *round* reads the outbox, appends what
it finds to the log, and only then removes it from the outbox. So an update that was committed reaches the log, whenever the
server dies, and only once: the log accepts it only at the next position, and after a crash the log tells which updates of
the outbox it has.

With `acknowledged`, no client sees an effect that the log does not have: every reply waits for a round that began after
its operation had read the database. A visit of the token waits in both modes, before it appends: so a global update never
depends on a local one that may be lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from plait.gyro.belt.databases.outbox import Outbox, strange
from plait.gyro.belt.logs.log import (
    MOST_SHIPPED,
    BehindError,
    Log,
    LogGoneError,
    ReplacedError,
    RestoredError,
    StaleError,
    Staleness,
    TooLargeError,
    size_of,
)
from plait.gyro.belt.records import DatabaseGoneError, ForkedError, LocalUpdate, OperationError, chained, follow

logger = logging.getLogger("plait.gyro")
_READ = 16 * MOST_SHIPPED
_REMEMBERED = 1000
"""If so many updates are in the log and still in the outbox, removing them is worth waiting for the DBMS."""


class TwinError(Exception):
    """The log has local updates of this server that this process has not made."""

    def __init__(self, server: int, position: int) -> None:
        super().__init__(
            f"local update {position} of server {server} in the log was not made here: "
            f"another process runs with a copy of the database of server {server}"
        )


class Shipper:
    """The outbox of a server, on its way to the log."""

    def __init__(
        self,
        server: int,
        incarnation: int,
        database: Outbox,
        log: Log,
        *,
        acknowledged: bool = True,
        wait: float = 30.0,
        step: Callable[[str], None] = lambda _: None,
        stop: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.server, self.incarnation = server, incarnation
        self.position, self.chain = database.shipped()
        """The last update in the log, as far as this server knows."""
        self._database, self._log = database, log
        self._acknowledged, self._wait, self._step, self._stop = acknowledged, wait, step, stop
        self._round = threading.Lock()
        self._unsure = True
        """Whether the log may have updates that this server does not know to be in it."""
        self._kept: list[LocalUpdate] = []
        """Updates that are in the log, and not removed from the outbox yet."""
        self._changed = threading.Condition()
        self._committing = 0
        """The number of local operations that may commit at this moment."""
        self._wanted, self._done = 1, 0
        """The number of the last round that somebody waits for, and of the last round that is over."""
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"ship-{server}", daemon=True)

    def start(self) -> None:
        """Find out what the log has, ship the rest, and go on in the background."""
        self.ship()
        self._thread.start()

    def stop(self) -> None:
        """Ship what is left, if the log answers."""
        self._end()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        try:
            self.ship()
            self._remove(patient=False)
        except (LogGoneError, DatabaseGoneError, ReplacedError, ForkedError, TwinError) as error:
            logger.warning("server %d: local updates are not in the log yet: %s", self.server, error)

    def _end(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    # -- operations --------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around a local operation that writes. With `acknowledged`, its update is in the log afterwards."""
        with self._changed:
            self._committing += 1
        try:
            yield
        except OperationError:
            self._written()
            self.settle()  # the client also sees in an error what the operation has read
            raise
        except BaseException:
            self._written()
            raise
        self._written()
        self.settle()

    def _written(self) -> None:
        with self._changed:
            self._committing -= 1
            self._wanted += 1
            self._changed.notify_all()

    def settle(self) -> None:
        """With `acknowledged`: wait until the log has all local updates that were committed before."""
        if not self._acknowledged:
            return
        with self._changed:
            if not self._committing and self._done >= self._wanted:
                return
            self._wanted += 1
            mark = self._wanted
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._done >= mark or self._stopped, self._wait):
                raise DatabaseGoneError("the log does not answer, so the operation may be lost if this disk is")
            if self._done < mark:
                raise DatabaseGoneError("the server is shutting down")

    # -- rounds ------------------------------------------------------------------------------------------------------

    def ship(self) -> int:
        """Ship all local updates that are committed; return the position of the last one."""
        with self._round:
            with self._changed:
                mark = self._wanted
            if self._unsure:
                self._learn()
            while found := self._database.outbox({u.number for u in self._kept}, _READ):
                self._send(found)
                if len(found) < _READ:
                    break
            with self._changed:
                self._done = max(self._done, mark)
                self._changed.notify_all()
            return self.position

    def _learn(self) -> None:
        """Read from the log which updates of the outbox it has."""
        while found := self._log.shipped(self.server, self.position):
            if others := strange(found, self._database):
                raise TwinError(self.server, others[0].position)
            for update in found:
                self.chain = follow(self.chain, update)
            self._keep(found)
        self._unsure = False

    def _keep(self, updates: list[LocalUpdate]) -> None:
        self._kept += updates
        self.position, self.chain = updates[-1].position, updates[-1].chain

    def _send(self, found: list[LocalUpdate]) -> None:
        most = MOST_SHIPPED
        while found:
            batch, size = 0, 0
            while batch < min(most, len(found)) and (not batch or size + size_of(found[batch]) <= self._log.largest):
                size += size_of(found[batch])
                batch += 1
            named = [
                msgspec.structs.replace(u, position=self.position + n, incarnation=self.incarnation)
                for n, u in enumerate(found[:batch], start=1)
            ]
            updates = chained(self.chain, named)
            self._step("ship")
            self._unsure = True
            try:
                self._log.ship(self.server, updates)
            except TooLargeError as error:
                if batch == 1:
                    what = f"local update {updates[0].position} of server {self.server} ({updates[0].operation})"
                    raise DatabaseGoneError(f"{what} is too large for the log: {error}") from None
                most = batch // 2
                continue
            except BehindError as error:
                if error.last < self.position:
                    missing = f"the log has {error.last} local updates of server {self.server}"
                    raise StaleError(f"{missing}, which has shipped {self.position}") from None
                raise LogGoneError(str(error)) from None  # an earlier attempt has arrived after all
            self._unsure = False
            self._keep(updates)
            found = found[batch:]
            self._step("shipped")

    def _remove(self, *, patient: bool) -> None:
        """Remove from the outbox what the log has."""
        with self._round:
            kept = list(self._kept)
        if kept and self._database.forget(kept, patient=patient):
            with self._round:
                self._kept = self._kept[len(kept) :]

    def _run(self) -> None:
        pause = 0.0
        stale = Staleness()
        while not self._stopped:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted > self._done or self._stopped, pause or 1.0)
            try:
                if self._wanted > self._done:
                    self.ship()
                self._remove(patient=len(self._kept) > _REMEMBERED)
                pause = 0.0
                stale.clear()
            except (LogGoneError, DatabaseGoneError) as error:
                logger.warning("server %d: local updates wait for the log: %s", self.server, error)
                if not self._endures(stale, error):
                    return
                pause = min(2 * pause, 2.0) or 0.05
                with self._changed:
                    self._changed.wait_for(lambda: self._stopped, pause)
            except Exception as error:
                self._end()
                self._stop(f"{type(error).__name__}: {error}")

    def _endures(self, stale: Staleness, error: Exception) -> bool:
        """Whether to try again. If the log was restored from an older copy, the server stops."""
        try:
            stale.note(error)
        except RestoredError as restored:
            logger.error("error: server %d: %s", self.server, restored)
            self._end()
            self._stop(str(restored))
            return False
        return True
