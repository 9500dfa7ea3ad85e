"""The configuration of a cluster, and a change of it: both are decided by entries of the log.

A cluster begins with configuration 0, which is in the settings of its servers. A change appends entries without row
images:

    prepare     announces the next configuration
    ready       a server has stopped its local operations, and its stream in the log has all of them up to a position
    activate    all servers are ready; the next configuration begins at this entry
    abort       ends a change that is not activated

`follow` computes the state after an entry from the state before it. All servers apply the same entries, so they have
the same state at the same seq. An entry that does not fit the state has no effect. The rules are those of
`plait.protocols.online_change`.
"""

from __future__ import annotations

import msgspec

from plait.gyro.belt.records import Entry
from plait.gyro.belt.replication.cut import Cut
from plait.gyro.belt.routing import Route
from plait.gyro.belt.version import Content

CONTROL = "gyro:"
"""The prefix of the operations of these entries. No operation of an application has a colon in its name."""


ZERO = "configuration 0"
"""Where the log has the configuration with which the cluster was started."""


class Member(msgspec.Struct, frozen=True):
    """A server of a configuration. Its number never changes, and is never used again."""

    server: int
    url: str


class Program(msgspec.Struct, frozen=True):
    """What the servers execute, if a change replaces it."""

    application: str
    """The path of the application, on every machine."""
    routes: dict[str, Route]
    schema: str
    """The DDL that the analysis has read."""
    analyzed: Content
    sources: dict[str, str]
    """Hashes of the source (see `Content`). A server is ready only if its files have these."""
    recording: str = ""
    """The recording of a web application; empty if the operations are functions."""


class Configuration(msgspec.Struct, frozen=True):
    """Members in the order of the mapping of keys, and what they execute."""

    number: int
    members: list[Member]
    used: int
    """Servers up to this number exist or have existed."""
    first: int
    """The number of members for which the operations were classified."""
    program: Program | None = None
    """None: as in the settings."""
    lineage: int = 0
    """The configuration that has brought the program."""
    tables: dict[str, str] = {}
    """The tables of the DBMS, if there is a program."""
    barrier: Cut = Cut()
    """What all servers had applied when it began: the same rows everywhere."""

    @property
    def numbers(self) -> list[int]:
        """The numbers of the members, in the order of the mapping."""
        return [m.server for m in self.members]


class Proposal(msgspec.Struct, frozen=True):
    """The next configuration, as an operator proposes it."""

    number: int
    members: list[Member]
    program: Program | None = None
    migration: str = ""
    """SQL that changes the tables and their rows. Every server executes it on the same rows."""
    gone: dict[int, int] = {}
    """Members that are dead, and the ends of their streams. The log refuses them from now on."""
    patience: float = 60.0
    """The change is aborted if it is not activated after so many seconds."""


class Ready(msgspec.Struct, frozen=True):
    """A server has stopped its local operations."""

    server: int
    position: int
    """The last local update in its stream."""
    ids: dict[str, int] = {}
    """The greatest id of each sequence of its DBMS."""


class Activate(msgspec.Struct, frozen=True):
    """All members are ready, and a server has tried the migration."""

    tables: dict[str, str] = {}
    """The tables after the migration."""


class Abort(msgspec.Struct, frozen=True):
    """The change ends without effect."""

    reason: str


Record = Proposal | Ready | Activate | Abort
_KINDS: dict[str, type[Record]] = {"prepare": Proposal, "ready": Ready, "activate": Activate, "abort": Abort}


class Change(msgspec.Struct, frozen=True):
    """A change that is under way."""

    seq: int
    """The entry that has announced it."""
    proposal: Proposal
    ready: dict[int, Ready] = {}

    def missing(self, configuration: Configuration) -> list[int]:
        """The members that are not ready yet."""
        return [n for n in configuration.numbers if n not in self.ready and n not in self.proposal.gone]

    @property
    def positions(self) -> dict[int, int]:
        """The ends of all streams."""
        return {server: ready.position for server, ready in self.ready.items()} | self.proposal.gone

    @property
    def ids(self) -> dict[str, int]:
        """The greatest id of each sequence at any server."""
        found: dict[str, int] = {}
        for ready in self.ready.values():
            for name, last in ready.ids.items():
                found[name] = max(last, found.get(name, 0))
        return found


class State(msgspec.Struct, frozen=True):
    """The configuration after an entry, and the change that is under way."""

    configuration: Configuration
    change: Change | None = None
    aborted: str = ""
    """Why the last change was aborted."""
    aborts: int = 0
    """How many changes were aborted so far."""


def kind_of(entry: Entry) -> str:
    """The kind of an entry of a change; empty for the update of an operation."""
    return entry.operation.removeprefix(CONTROL) if entry.operation.startswith(CONTROL) else ""


def operation_of(record: Record) -> str:
    """The operation of the entry of a record."""
    return CONTROL + next(name for name, kind in _KINDS.items() if type(record) is kind)


def record_of(entry: Entry) -> Record:
    """What an entry of a change says."""
    return msgspec.json.decode(entry.arguments, type=_KINDS[kind_of(entry)])


def follow(state: State, entry: Entry) -> State:
    """The state after an entry."""
    if not kind_of(entry):
        return state
    record, now, change = record_of(entry), state.configuration, state.change
    if isinstance(record, Proposal):
        if change is None and record.number == now.number + 1:
            return State(now, Change(entry.seq, record), aborts=state.aborts)
        return state
    if change is None:
        return state
    if isinstance(record, Ready):
        ready = {**change.ready, record.server: record}
        return msgspec.structs.replace(state, change=msgspec.structs.replace(change, ready=ready))
    if isinstance(record, Abort):
        return State(now, None, record.reason, state.aborts + 1)
    if change.missing(now):
        return state
    return State(_next(now, change, record, entry.seq), aborts=state.aborts)


def _next(now: Configuration, change: Change, record: Activate, seq: int) -> Configuration:
    proposal = change.proposal
    fresh = proposal.program is not None
    return Configuration(
        number=proposal.number,
        members=proposal.members,
        used=max(now.used, *(m.server for m in proposal.members)),
        first=len(proposal.members) if fresh else now.first,
        program=proposal.program if fresh else now.program,
        lineage=proposal.number if fresh else now.lineage,
        tables=record.tables if fresh else now.tables,
        barrier=Cut(seq, {**now.barrier.positions, **change.positions}),
    )
