"""A Classification: which transactions of an application need coordination, as plain data (Saissi 2019, section 2.3)."""

from __future__ import annotations

from typing import Literal

import msgspec

from plait.kernel.rendering import renderer

OperationClass = Literal["local", "global", "local/global"]


class Access(msgspec.Struct, frozen=True):
    """An entry of a read or write set: attributes of a table, and the condition on their row."""

    table: str
    attributes: list[str]
    """`*` is whether the row is there."""
    condition: str
    role: str
    place: str


class Blocker(msgspec.Struct, frozen=True):
    """Why an operation is not local: another one, perhaps at another server, reads or writes what it writes."""

    other: str
    kind: Literal["reads", "writes"]
    """What the other does."""
    table: str
    attributes: list[str]
    mine: str
    """The condition on the row that is written."""
    theirs: str
    place: str
    """Where this transaction writes."""
    other_place: str
    change: str
    """What would take it away."""
    at_times: bool = False
    """Only if the keys of the operation are mapped to different servers."""


class Operation(msgspec.Struct, frozen=True):
    """A transaction and its class."""

    name: str
    parameters: list[str]
    classed: OperationClass = msgspec.field(name="class")
    keys: list[str] = []
    """The parameter that its operations are routed by, and the second one of a double key; empty: any server."""
    generated: list[str] = []
    """Columns for which its server generates ids."""
    read_only: bool = False
    weight: float = 1.0
    place: str = ""
    statements: list[str] = []
    reads: list[Access] = []
    writes: list[Access] = []
    refused: list[str] = []
    """Why its SQL is not known."""
    remedies: list[str] = []
    """What to change, for each of these reasons."""
    blockers: list[Blocker] = []
    kinds: dict[str, str] = {}
    """What its parameters are compared with: numbers or text."""

    @property
    def reason(self) -> str:
        """In one line, why it is in its class."""
        if self.refused:
            return f"its SQL is not known: {self.refused[0]}"
        if self.read_only:
            return "read-only: nobody reads from it"
        if self.classed == "local":
            return "whoever reads or writes what it writes is routed to the same server"
        certain = [b for b in self.blockers if not b.at_times]
        if not certain:
            return f"local if {' and '.join(self.keys)} are mapped to one server, global if not"
        first, more = certain[0], len({b.other for b in certain}) - 1
        who = "another operation of it" if first.other == self.name else first.other
        others = f", and {more} other transaction{'s' if more > 1 else ''}" if more else ""
        names = ["rows" if a == "*" else a for a in first.attributes]
        what = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        return f"{who} {first.kind} {first.table} ({what}) at another server{others}"


class Conflict(msgspec.Struct, frozen=True):
    """Two transactions, one of which writes what the other reads or writes."""

    writer: str
    other: str
    kind: Literal["reads", "writes"]
    attributes: list[str]
    local: bool
    """Whether the partitioning puts both operations at one server, always."""
    by: list[str] = []
    """What makes it local: equal keys."""


class Classification(msgspec.Struct, frozen=True):
    """The result of operation partitioning."""

    application: str
    operations: list[Operation]
    conflicts: list[Conflict]
    cost: float
    """The weight of the operations that need coordination."""
    conflict_cost: float
    """The dissertation's cost: the weights of both sides of every conflict that remains."""
    servers: int
    ids: str
    exhaustive: bool
    arrays: int
    tried: int
    questions: int
    seconds: float
    warnings: list[str] = []

    def count(self, classed: OperationClass) -> int:
        """How many transactions are in a class."""
        return sum(o.classed == classed for o in self.operations)

    def operation(self, name: str) -> Operation:
        """The transaction of that name."""
        return next(o for o in self.operations if o.name == name)

    def __str__(self) -> str:
        return renderer().text(self)
