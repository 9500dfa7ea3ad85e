"""A StateGraph: numbered states and the transitions between them, as plain data without the model."""

from __future__ import annotations

import msgspec

from plait.kernel.trace import EventKind, Sent, Snapshot
from plait.kernel.values import Data


class State(msgspec.Struct, frozen=True):
    """A state. With reductions, it represents a class of states that the reduction does not distinguish."""

    number: int
    """The number in breadth-first order, from 1. s1 is the initial state."""
    depth: int
    """The least number of steps from the initial state."""
    snapshot: Snapshot
    """The content of the state. Pending messages are indices in `StateGraph.messages`."""
    predecessor: int | None = None
    """The state from which it was first reached."""
    terminal: bool = False
    violated: list[str] = []
    """The properties that this state violates; `assertions` and `no_exceptions` if a step from this state fails."""
    examples: list[str] = []
    """The reachable properties that are true in this state."""
    hidden: int = 0
    """The number of transitions to states beyond the limit of the graph."""

    @property
    def name(self) -> str:
        return f"s{self.number}"


class Edge(msgspec.Struct, frozen=True):
    """A transition between two states."""

    source: int
    target: int | None
    """None after a failed assertion."""
    lane: str
    kind: EventKind
    label: str
    """The name of the handler, or what the network or the environment did."""
    consumed: list[int] = []
    choices: list[Data] = []
    note: str | None = None


class StateGraph(msgspec.Struct, frozen=True):
    """The reachable states, up to a limit, and their transitions."""

    model: str
    parameters: dict[str, Data]
    messages: list[Sent]
    """Each distinct message that is pending in some state, with its receiver."""
    states: list[State]
    edges: list[Edge] = msgspec.field(name="moves")
    """In JSON, their name is `moves`."""
    reductions: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether the graph has all reachable states."""
        return not any(state.hidden for state in self.states)
