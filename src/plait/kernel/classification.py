"""A Classification: which transactions of an application need coordination (Saissi 2019, section 2.3). Plain data."""

from __future__ import annotations

from typing import Literal

import msgspec

from plait.kernel.rendering import renderer

FORMAT = 1
"""The format of a Classification. It changes if its fields, or what they mean to servers, change."""
OperationClass = Literal["local", "global", "local/global"]


class Access(msgspec.Struct, frozen=True):
    """An entry of a read set or a write set: attributes of a table, and the condition on the row."""

    table: str
    attributes: list[str]
    """`*` is the existence of the row."""
    condition: str
    role: str
    place: str
    digest: str = ""
    """A hash of the exact entry. The condition is shortened."""


class Blocker(msgspec.Struct, frozen=True):
    """Why an operation is not local: another operation, perhaps at another server, reads or writes what it writes."""

    other: str
    kind: Literal["reads", "writes"]
    """What the other operation does."""
    table: str
    attributes: list[str]
    mine: str
    """The condition on the row that is written."""
    theirs: str
    place: str
    """Where this transaction writes."""
    other_place: str
    change: str
    """A change of the application that would remove the conflict."""
    at_times: bool = False
    """Whether it blocks only if the keys of the operation are mapped to different servers."""


class Operation(msgspec.Struct, frozen=True):
    """A transaction and its class."""

    name: str
    parameters: list[str]
    classed: OperationClass = msgspec.field(name="class")
    keys: list[str] = []
    """The parameters by which its operations are routed: one, or two for a double key. Empty: any server."""
    generated: list[str] = []
    """The columns for which its server generates ids."""
    read_only: bool = False
    weight: float = 1.0
    place: str = ""
    statements: list[str] = []
    reads: list[Access] = []
    writes: list[Access] = []
    refused: list[str] = []
    """The reasons why its SQL is not known."""
    remedies: list[str] = []
    """For each of these reasons, what to change."""
    blockers: list[Blocker] = []
    kinds: dict[str, str] = {}
    """For each parameter, the kind of the columns that it is compared with: number, text, uuid, …"""
    columns: dict[str, dict[str, str]] = {}
    """For each key, the columns that it is compared with (`table.column`), and their types."""

    @property
    def reason(self) -> str:
        """Why it is in its class, in one line."""
        if self.refused:
            return f"its SQL is not known: {self.refused[0]}"
        if self.read_only:
            return "read-only: it writes nothing"
        if self.classed == "local":
            return "all conflicting operations go to the same server"
        certain = [b for b in self.blockers if not b.at_times]
        if not certain:
            return f"local if {' and '.join(self.keys)} are mapped to the same server, else global"
        first, more = certain[0], len({b.other for b in certain}) - 1
        who = "another operation of this transaction" if first.other == self.name else first.other
        others = f"; {more} more transaction{'s conflict' if more > 1 else ' conflicts'}" if more else ""
        names = ["rows" if a == "*" else a for a in first.attributes]
        what = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        return f"{who} {first.kind} {first.table} ({what}) at another server{others}"


class Conflict(msgspec.Struct, frozen=True):
    """A conflict: a transaction writes what another one reads or writes."""

    writer: str
    other: str
    kind: Literal["reads", "writes"]
    attributes: list[str]
    local: bool
    """Whether the partitioning always puts both operations at one server."""
    by: list[str] = []
    """The equal keys that make it local."""


class Classification(msgspec.Struct, frozen=True):
    """The result of operation partitioning."""

    application: str
    operations: list[Operation]
    conflicts: list[Conflict]
    cost: float
    """The total weight of the operations that need coordination."""
    conflict_cost: float
    """The cost by Saissi 2019: the weights of both sides of every conflict that remains."""
    servers: int
    ids: str
    exhaustive: bool
    arrays: int
    tried: int
    questions: int
    seconds: float
    warnings: list[str] = []
    format: int = 0

    def count(self, classed: OperationClass) -> int:
        """The number of transactions in a class."""
        return sum(o.classed == classed for o in self.operations)

    def operation(self, name: str) -> Operation:
        """The transaction with this name."""
        return next(o for o in self.operations if o.name == name)

    def __str__(self) -> str:
        return renderer().text(self)
