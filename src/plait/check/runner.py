"""A System with its engine, for a search, a trace or a replay."""

from __future__ import annotations

from collections.abc import Sequence

from plait._native import Engine, Transition
from plait.check.cover.recorder import Recorder
from plait.check.reduce.decomposition import Decomposition
from plait.check.reduce.relevance import Relevance
from plait.check.tabulate.tabulation import Tabulation
from plait.model.system import System, plays


class Runner:
    """Connects a System, its tabulation and the native engine."""

    def __init__(
        self,
        system: System,
        decomposition: Decomposition | None = None,
        *,
        history: bool = False,
        symmetry: Sequence[Sequence[int]] = (),
        recorder: Recorder | None = None,
    ) -> None:
        self.system = system
        self.decomposition = decomposition
        self.tabulation = Relevance(system, decomposition, recorder) if decomposition else Tabulation(system, recorder)
        network = system.network
        self.engine = Engine(
            self.tabulation,
            processes=len(system.classes),
            monitors=len(system.monitors),
            network=network.kind,
            lossy=network.lossy,
            losses=network.losses,
            duplications=network.duplications if network.kind == "duplicating" else None,
            faults=[
                (
                    [i for i, c in enumerate(system.classes) if not f.roles or any(plays(c, r) for r in f.roles)],
                    f.budget,
                    f.recovers,
                )
                for f in system.faults
            ],
            properties=[p.kind for p in system.properties],
            history=history,
            symmetry=symmetry,
            pids=[(pid.role, pid.index) for pid in system.pids],
        )
        self.tabulation.store = self.engine.store

    def holds(self, number: int, state: Sequence[int]) -> bool:
        """Whether a property's predicate is true in a state."""
        locals_, inboxes, monitors, _ = self.engine.components(state)
        return self.tabulation.evaluate(number, locals_, inboxes, monitors)[0]

    def changes(self, state: Sequence[int], t: Transition) -> bool:
        """Whether a transition leads to another state. The history of a process (`history="last"`) is no part of it."""
        return self.engine.components(t.state) != self.engine.components(state)

    def is_terminal(self, state: Sequence[int]) -> bool:
        """Whether no step of a process leads out of the state."""
        steps = (t for t in self.engine.successors(state) if t.kind == "step")
        return not any(t.failure or self.changes(state, t) for t in steps)

    def may_end(self, state: Sequence[int]) -> bool:
        """Whether a run may stay in the state forever: no step leads out of it, or every such step fails."""
        steps = (t for t in self.engine.successors(state) if t.kind == "step")
        return not any(not t.failure and self.changes(state, t) for t in steps)

    def failing(self, state: Sequence[int]) -> Transition | None:
        """A step out of this state in which an assertion fails, or None."""
        return next((t for t in self.engine.successors(state) if t.failure and t.failure.violation), None)
