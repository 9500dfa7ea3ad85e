"""The state graph of a System as plain data: breadth first, up to a limit, by the engine's own transitions.

States with equal fingerprints are one state. With decomposition, fingerprints leave auxiliary fields out: the graph is
smaller, and each of its states is a representative.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from plait._native import Transition
from plait.check.explain.tracing import label, lane, snapshot
from plait.check.live.search import flattened
from plait.check.options import History, Inference, Options
from plait.check.reduce.asymmetry import AsymmetryError
from plait.check.reduce.plan import Plan, plan
from plait.check.runner import Runner, violated_by
from plait.kernel.deadline import Deadline
from plait.kernel.errors import ModelError, UsageError
from plait.kernel.graph import Edge, State, StateGraph
from plait.kernel.trace import Sent
from plait.kernel.values import Data, to_data
from plait.model.properties import BUILT_IN, NO_EXCEPTIONS
from plait.model.system import System


def state_graph(
    system: System,
    *,
    reduce: str | Sequence[str] = "none",
    decomposition: Inference = "auto",
    history: History = "none",
    max_states: int = 200,
    timeout: float | None = None,
) -> StateGraph:
    """The reachable states, breadth first, and all transitions between them. After the timeout: an OutOfTimeError.

    >>> from plait.protocols.ping_pong import ping_pong
    >>> graph = state_graph(ping_pong(maximum=3))
    >>> len(graph.states), graph.complete
    (7, True)
    """
    if isinstance(max_states, bool) or not isinstance(max_states, int) or max_states < 1:
        raise UsageError(f"max_states={max_states!r} does not fit", hint="give a whole number, 1 or more")
    clock = Deadline(timeout)
    with clock.enforced():
        runner, reductions = _runner(system, reduce, decomposition, history, timeout)
    with clock.enforced():
        return _Builder(runner, max_states).build(reductions)


def _runner(
    system: System, reduce: str | Sequence[str], decomposition: Inference, history: History, timeout: float | None
) -> tuple[Runner, list[str]]:
    """A runner with the fingerprints of the reduced search, and the names of the applied reductions."""
    system = flattened(system, system.properties)
    options = Options(reduce=reduce, decomposition=decomposition, history=history, workers=1, timeout=timeout)

    def searched(reductions: Plan) -> Runner:
        runner = reductions.runner(system)
        if reductions.por or reductions.symmetry or reductions.rotations:
            # Stubborn sets need relations that are known only after a search. The search also verifies a declared symmetry.
            runner.engine.search(options, por=reductions.por)
        return runner

    reductions = plan(system, options)
    try:
        runner = searched(reductions)
    except AsymmetryError as error:
        reductions = plan(system, options, asymmetry=error)
        runner = searched(reductions)
    return runner, [r.name for r in reductions.reductions if r.applied]


class _Builder:
    """Numbers states and messages in the order in which they are found."""

    def __init__(self, runner: Runner, limit: int) -> None:
        self.runner, self.limit = runner, limit
        self.system = runner.system
        self.lanes = [repr(pid) for pid in self.system.pids]
        self.messages: list[Sent] = []
        self._message_ids: dict[tuple[int, int], int] = {}
        """By receiver and the engine's id."""

    def build(self, reductions: list[str]) -> StateGraph:
        # For each state: the state, its depth, and its first predecessor.
        queue: list[tuple[Sequence[int], int, int | None]] = []
        numbers: dict[int, int] = {}
        for start, _ in self.runner.initial:
            fingerprint = self.runner.engine.fingerprint(start)
            if fingerprint not in numbers and len(queue) < self.limit:  # with symmetry, several may be one
                queue.append((start, 0, None))
                numbers[fingerprint] = len(queue)
        states, edges = [], []
        for number, (state, depth, predecessor) in enumerate(queue, start=1):  # the queue grows during the loop
            hidden, transitions = 0, self._transitions(state, numbers)
            for t in transitions:
                if t.failure is not None and not t.failure.violation:
                    raise ModelError(t.failure.message, hint=t.failure.hint)
                if t.failure is None and t.fingerprint not in numbers:
                    if len(queue) == self.limit:
                        hidden += 1
                        continue
                    numbers[t.fingerprint] = len(queue) + 1
                    queue.append((t.state, depth + 1, number))
                edges.append(self._edge(number, t, None if t.failure else numbers[t.fingerprint]))
            states.append(self._state(number, state, depth, predecessor, hidden, transitions))
        return StateGraph(
            model=self.system.target or self.system.name,
            parameters={name: to_data(value) for name, value in self.system.parameters.items()},
            messages=self.messages,
            states=states,
            edges=edges,
            reductions=reductions,
        )

    def _transitions(self, state: Sequence[int], known: Collection[int]) -> list[Transition]:
        """The transitions out of a state; with partial-order reduction, the transitions of its stubborn set.

        If these lead to no new state, all transitions are taken. So no transition is postponed forever.
        """
        transitions = self.runner.engine.successors(state)
        chosen = self.runner.engine.stubborn(state)
        some = [t for t in transitions if t.process in chosen]
        return some if any(t.fingerprint not in known and not t.failure for t in some) else transitions

    def _state(
        self,
        number: int,
        state: Sequence[int],
        depth: int,
        predecessor: int | None,
        hidden: int,
        transitions: Sequence[Transition],
    ) -> State:
        inboxes = self.runner.engine.components(state)[1]
        pending = {
            lane: [self._message(i, *entry) for entry in self.runner.engine.store.inbox(inboxes[i])]
            for i, lane in enumerate(self.lanes)
        }
        moves = self.runner.moves(state, transitions)
        terminal = not any(t.failure or self.runner.changes(state, t) for t in moves)
        failed = {violated_by(t) for t in transitions}
        violated = [name for name in BUILT_IN if name in failed]
        examples = []
        for i, prop in enumerate(self.system.properties):
            if prop.kind == "final" and not terminal:
                continue
            holds = self.runner.holds(i, state)
            if prop.kind == "reachable" and holds:
                examples.append(prop.name)
            elif holds is None:
                violated = list(dict.fromkeys([*violated, NO_EXCEPTIONS]))
            elif prop.kind in ("always", "final") and not holds:
                violated.append(prop.name)
        whole = snapshot(self.runner, state, pending)
        return State(number, depth, whole, predecessor, terminal, violated, examples, hidden)

    def _edge(self, source: int, t: Transition, target: int | None) -> Edge:
        decode = self.runner.tabulation.codec.decode
        return Edge(
            source=source,
            target=target,
            lane=lane(self.runner, t),
            kind=t.kind,  # type: ignore[arg-type]
            label=label(self.system, t),
            consumed=[self._message(t.process, *entry) for entry in t.consumed],
            choices=[to_data(decode(choice)) for choice in t.choices],
            note=t.failure.message if t.failure else None,
        )

    def _message(self, receiver: int, message: int, sender: int, content: bytes) -> int:
        number = self._message_ids.setdefault((receiver, message), len(self.messages))
        if number == len(self.messages):
            data: dict[str, Data] = to_data(self.runner.tabulation.codec.decode(content))
            fields = {name: value for name, value in data.items() if name != "#type"}
            self.messages.append(Sent(number, data["#type"], fields, self.lanes[sender], self.lanes[receiver]))
        return number
