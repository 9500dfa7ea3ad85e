"""The part of a server in a change: what it appends when it has the token, and what it does with the entries of others."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from plait.gyro.belt.configuration.configuration import (
    Abort,
    Activate,
    Change,
    Configuration,
    Proposal,
    Ready,
    Record,
    State,
    follow,
    kind_of,
    operation_of,
)
from plait.gyro.belt.configuration.merge import Fold, Past
from plait.gyro.belt.databases.changeable import Changeable, MigrationError, Switch
from plait.gyro.belt.logs.log import BehindError, LogGoneError, append_surely
from plait.gyro.belt.records import DatabaseGoneError, Entry, LocalUpdate, chained
from plait.gyro.belt.replication.cut import Cut, between
from plait.gyro.belt.replication.rebuild import GAP
from plait.gyro.belt.service.events import event
from plait.kernel.errors import UsageError

if TYPE_CHECKING:
    from plait.gyro.belt.node import Node

logger = logging.getLogger("plait.gyro")
PAUSE = 0.02
"""A server that is ready asks the log so often whether the change is activated, in seconds."""


class ActivatedError(Exception):
    """A configuration has begun. The server must start anew with it."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(f"configuration {configuration.number} has begun")
        self.configuration = configuration


class Changes:
    """The state of the configuration at a server. The thread of the node calls everything but `propose` and `abort`."""

    def __init__(
        self,
        node: Node,
        database: Changeable,
        first: Configuration,
        *,
        step: Callable[[str], None] = lambda _: None,
        check: Callable[[Proposal], str | None] = lambda _: None,
    ) -> None:
        stored = database.configuration()
        self.state = State(first) if stored is None else msgspec.json.decode(stored, type=State)
        self._node, self._database, self._step, self._check = node, database, step, check
        self._wanted: list[Proposal] = []
        self._aborts = ""
        self._since = time.monotonic()
        """When this server has learned of the change that is under way."""
        self._checked: tuple[int, str | None] | None = None
        if self._waits(self.state):
            node.gate.close("write")

    # -- operators ---------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> Change | None:
        """The change that is under way."""
        return self.state.change

    def propose(self, proposal: Proposal) -> None:
        """Announce a change at the next visit of the token."""
        self._wanted.append(proposal)
        self._node.stir()

    def abort(self, reason: str) -> None:
        """Abort the change that is under way, at the next visit."""
        self._aborts = reason
        self._node.stir()

    # -- a visit -----------------------------------------------------------------------------------------------------

    def visit(self) -> list[Entry]:
        """Append what this server has to say."""
        made = []
        try:
            while (record := self._next()) is not None:
                try:
                    made.append(self._append(record))
                except BehindError as error:
                    self._node.catch_up(error.last)
                else:
                    self._wanted = [each for each in self._wanted if each is not record]
        finally:
            if not self._waits(self.state):
                self._node.gate.open()
        return made

    def _waits(self, state: State) -> bool:
        """Whether local operations wait here."""
        return state.change is not None and self._node.server in state.change.ready

    def _next(self) -> Record | None:
        change, server = self.state.change, self._node.server
        if change is None:
            self._aborts = ""
            number = self.state.configuration.number + 1
            self._wanted = [each for each in self._wanted if each.number == number]
            return self._wanted[0] if self._wanted else None
        if self._aborts:
            return Abort(self._aborts)
        missing = change.missing(self.state.configuration)
        if time.monotonic() - self._since > change.proposal.patience:
            late = f"server {missing[0]} is not ready" if missing else "it is not activated"
            return Abort(f"{late} after {change.proposal.patience:g} s")
        if server in missing:
            if (reason := self._obstacle(change)) is not None:
                return Abort(f"server {server}: {reason}")
            return self._ready()
        return self._activation(change) if not missing else None

    def _obstacle(self, change: Change) -> str | None:
        """Why this server cannot execute the new program."""
        if self._checked is None or self._checked[0] != change.seq:
            self._checked = (change.seq, self._check(change.proposal))
        return self._checked[1]

    def _ready(self) -> Ready:
        """Stop local operations; the stream has all of them."""
        self._node.gate.close("write")
        self._step("closed")
        assert self._node.shipper is not None  # without it, there are no changes
        return Ready(self._node.server, self._node.shipper.ship(), self._database.ids())

    def _activation(self, change: Change) -> Record:
        """Try what all servers will do, and roll it back."""
        proposal = change.proposal
        seq = self._node.applied + 1
        try:
            trial = self._entry(Activate(), seq)
            text = self._database.switch(self._switch(trial, follow(self.state, trial), change), attempt=True)
        except MigrationError as error:
            return Abort(f"the migration is refused: {error}")
        except (DatabaseGoneError, LogGoneError):
            raise
        except Exception as error:  # every server would fail in the same way
            return Abort(f"the rows cannot be merged: {type(error).__name__}: {error}")
        if proposal.program is None:
            return Activate()
        return Activate(dict(line.partition(": ")[::2] for line in text.splitlines()))

    def _entry(self, record: Record, seq: int) -> Entry:
        node = self._node
        made = Entry(
            seq, node.epoch, node.turn, node.server, f"{operation_of(record)} {uuid.uuid4().hex}", operation_of(record),
            msgspec.json.encode(record), b"", b"", incarnation=node.incarnation,
            shipped=record.position if isinstance(record, Ready) else 0,
        )  # fmt: skip
        return chained(self._database.chain(), [made])[0]

    def _append(self, record: Record) -> Entry:
        entry = self._entry(record, self._node.applied + 1)
        kind = kind_of(entry)
        self._step(f"{kind}?")
        append_surely(self._node.log, [entry])
        self._step(kind)
        self._node.deliver([entry])
        return entry

    # -- entries -----------------------------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        """Apply an entry of a change. ActivatedError: it has begun a configuration."""
        before = self.state
        after = follow(before, entry)
        if after.configuration is not before.configuration and before.change is not None:
            self._node.gate.shut()
            self._database.switch(self._switch(entry, after, before.change))
            self._step("switched")
            self.state = after
            raise ActivatedError(after.configuration)
        self._database.advance(entry, encoded(after))
        self.state = after
        if after.change is None or before.change is None:
            self._since = time.monotonic()
        if not self._waits(after):
            self._node.gate.open()
        facts = {"kind": kind_of(entry), "seq": entry.seq, "holder": entry.holder}
        logger.info("server %d: %s", self._node.server, told(entry, after), extra=event("change", **facts))

    def _switch(self, entry: Entry, after: State, change: Change) -> Switch:
        """What the DBMS does at the entry that activates a change."""
        start, end = self.state.configuration.barrier, Cut(entry.seq - 1, change.positions)
        fold, past = Fold(), []
        for update in between(self._node.log, start, end):
            fold.add(self._database.row_changes(update.update))
            if (update.server if isinstance(update, LocalUpdate) else update.holder) != self._node.server:
                past.append(Past.of(update))
        return switch_of(entry, after, change, self._node.server, fold, past)


def switch_of(entry: Entry, after: State, change: Change, server: int, fold: Fold, past: list[Past]) -> Switch:
    """What a DBMS does at the entry that activates a change."""
    numbers, proposal = after.configuration.numbers, change.proposal
    return Switch(
        entry=entry,
        state=encoded(after),
        fold=fold,
        past=past,
        rank=numbers.index(server) if server in numbers else 0,
        servers=len(numbers),
        migration=proposal.migration,
        schema=proposal.program.schema if proposal.program is not None else "",
        ids=change.ids,
        gap=GAP if proposal.gone else 0,
    )


def encoded(state: State) -> str:
    """A state, to be stored in the DBMS."""
    return msgspec.json.encode(state).decode()


def told(entry: Entry, after: State) -> str:
    """What an entry of a change means, for the log lines."""
    kind = kind_of(entry)
    if kind == "prepare":
        return f"configuration {after.change.proposal.number} is prepared" if after.change else "a change was refused"
    if kind == "ready" and after.change is not None:
        missing = after.change.missing(after.configuration)
        return f"server {entry.holder} is ready for the change; {len(missing)} more"
    return f"the change was aborted: {after.aborted}"


def sources_of(application: str, operations: list[str], web: str = "") -> dict[str, str]:
    """The hashes of the source of an application. A process of its own imports it; a web application with this schema."""
    try:
        tried = subprocess.run(
            [sys.executable, "-m", "plait.gyro.belt.configuration.sources"],
            input=msgspec.json.encode([application, operations, web]), capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        found = msgspec.json.decode(tried.stdout, type=dict[str, str])
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        raise UsageError(f"{application} cannot be loaded: {error}", hint="import it in Python to see why") from None
    if "error" in found:
        raise UsageError(found["error"], hint=found["hint"])
    return found


def check_program(proposal: Proposal) -> str | None:
    """Whether this machine has the program of a proposal: None, or the reason why not. It runs in a process of its own."""
    if proposal.program is None:
        return None
    program = proposal.program
    try:
        found = sources_of(program.application, list(program.routes), program.schema if program.recording else "")
    except UsageError as error:
        return error.message
    for name in sorted(found.keys() | program.sources.keys()):
        if found.get(name) != program.sources.get(name):
            return f"the code of {name} in {program.application} is another one than that of the change"
    return None
