"""A StateGraph: numbered states and the transitions between them, as plain data that knows nothing of the model."""

from __future__ import annotations

import msgspec

from plait.kernel.trace import EventKind, Sent, Snapshot
from plait.kernel.values import Data


class State(msgspec.Struct, frozen=True):
    """One state, or one class of states that a reduction does not tell apart; then a representative."""

    number: int
    """From 1 on, in breadth-first order: s1 is the initial state."""
    depth: int
    """The least number of steps from the initial state."""
    snapshot: Snapshot
    """What the system is like. Pending messages are ids in `StateGraph.messages`."""
    predecessor: int | None = None
    """The state from which it was first reached."""
    terminal: bool = False
    violated: list[str] = []
    """Properties that this state violates; `assertions` if a step from here fails one."""
    examples: list[str] = []
    """Reachable properties that are true here."""
    hidden: int = 0
    """Transitions to states that are beyond the limit of the graph."""

    @property
    def name(self) -> str:
        return f"s{self.number}"


class Edge(msgspec.Struct, frozen=True):
    """A transition."""

    source: int
    target: int | None
    """None after a failed assertion."""
    lane: str
    kind: EventKind
    label: str
    """The handler's name, or what the network or the environment did."""
    consumed: list[int] = []
    choices: list[Data] = []
    note: str | None = None


class StateGraph(msgspec.Struct, frozen=True):
    """The states that can be reached, up to a limit."""

    model: str
    parameters: dict[str, Data]
    messages: list[Sent]
    """Each distinct message that is pending in some state, with its receiver."""
    states: list[State]
    edges: list[Edge] = msgspec.field(name="moves")
    """In JSON, they are called moves."""
    reductions: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether it has all states."""
        return not any(state.hidden for state in self.states)
