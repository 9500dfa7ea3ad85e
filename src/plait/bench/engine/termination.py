"""Asynchronous termination detection as one process, and a plain search of the same model.

Nodes are active or idle. An active node sends work to any node, or becomes idle. Work makes an idle node active. When
all nodes are idle and no work is pending, a detector may say so; it must never say so before. One process has the state
of all nodes in its fields, and each action chooses the nodes that move. So each global state is a distinct local state:
the tables of Plait save nothing, and the time of a search is the time to execute steps.

`plain_search` is what one writes without a model checker: a set of tuples and a function of successors, in Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from plait import Process, System, action, always, field, reachable
from plait.model.view import View

# -- the model -------------------------------------------------------------------------------------------------------


class Computation(Process):
    """All nodes, the work that is pending at each, and the detector."""

    nodes: int
    capacity: int
    """The most work that may be pending at a node."""
    active: list[bool] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    detected: bool = False

    @action(when=lambda self: any(self.active))
    def become_idle(self) -> None:
        node = self.choose([i for i in range(self.nodes) if self.active[i]])
        self.active[node] = False

    @action(when=lambda self: any(self.active) and any(work < self.capacity for work in self.pending))
    def send_work(self) -> None:
        self.choose([i for i in range(self.nodes) if self.active[i]])
        receiver = self.choose([i for i in range(self.nodes) if self.pending[i] < self.capacity])
        self.pending[receiver] += 1

    @action(when=lambda self: any(self.pending))
    def receive_work(self) -> None:
        node = self.choose([i for i in range(self.nodes) if self.pending[i]])
        self.pending[node] -= 1
        self.active[node] = True

    @action(when=lambda self: not self.detected and not any(self.active) and not any(self.pending))
    def detect(self) -> None:
        self.detected = True


@always
def no_false_detection(s: View) -> bool:
    """Termination is detected only after the computation has terminated."""
    computation = s[Computation][0]
    return not computation.detected or not (any(computation.active) or any(computation.pending))


@reachable
def detection(s: View) -> bool:
    """Termination can be detected."""
    return any(computation.detected for computation in s[Computation])


def termination(nodes: int = 5, capacity: int = 4) -> System:
    """Node 0 is active at first; up to `capacity` units of work are pending at each node."""
    return System(
        [
            Computation(
                nodes=nodes, capacity=capacity, active=[i == 0 for i in range(nodes)], pending=[0 for _ in range(nodes)]
            )
        ],
        properties=[no_false_detection, detection],
        name="termination",
    )


def expected_states(nodes: int, capacity: int) -> int:
    """Each node is active or idle, with any work pending; and once all are idle without work, that is detected.

    >>> expected_states(5, 4)
    100001
    """
    return int((2 * (capacity + 1)) ** nodes) + 1


# -- the plain search ------------------------------------------------------------------------------------------------

State = tuple[tuple[bool, ...], tuple[int, ...], bool]
"""Which nodes are active, the work that is pending at each, and whether termination is detected."""


class Found(NamedTuple):
    """The result of a plain search."""

    states: int
    transitions: int
    holds: bool
    """Termination was never detected too early, and it was detected."""


def successors(state: State, capacity: int) -> Iterator[State]:
    """All transitions out of a state."""
    active, pending, detected = state
    for node, is_active in enumerate(active):
        if is_active:
            yield (*active[:node], False, *active[node + 1 :]), pending, detected
            for receiver, work in enumerate(pending):
                if work < capacity:
                    yield active, (*pending[:receiver], work + 1, *pending[receiver + 1 :]), detected
        if pending[node]:
            less = (*pending[:node], pending[node] - 1, *pending[node + 1 :])
            yield (*active[:node], True, *active[node + 1 :]), less, detected
    if not detected and not any(active) and not any(pending):
        yield active, pending, True


def plain_search(nodes: int, capacity: int) -> Found:
    """Search all states breadth first.

    >>> plain_search(2, 1).states == expected_states(2, 1)
    True
    """
    start: State = (tuple(i == 0 for i in range(nodes)), (0,) * nodes, False)
    seen, queue, transitions = {start}, deque([start]), 0
    safe, found = True, False
    while queue:
        state = queue.popleft()
        active, pending, detected = state
        if detected:
            found = True
            safe = safe and not any(active) and not any(pending)
        for successor in successors(state, capacity):
            transitions += 1
            if successor not in seen:
                seen.add(successor)
                queue.append(successor)
    return Found(len(seen), transitions, safe and found)
