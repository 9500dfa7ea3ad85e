"""Refinement: a System does only what an abstract System allows.

    System(…, properties=[refines(transaction_commit(3), lambda s: TransactionCommit(tuple(rm.state for rm in s[RM])))])

A *mapping* gives the state of the abstract System for each state of this System: its processes, as they would be given to
`System`. The refinement holds if the initial state maps to the initial state, and if each step maps to a step of the
abstract System or leaves the abstract state as it is. If the abstract System assumes fairness, no fair run may leave it for
ever in a state in which a fair step is enabled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from plait.kernel.errors import ModelError
from plait.model.process import Process
from plait.model.properties import Property
from plait.model.system import System


@dataclasses.dataclass(frozen=True)
class Refinement(Property):
    """The property that each step maps to a step of an abstract System, or to none."""

    abstract: System = None  # type: ignore[assignment]
    mapping: Callable[[Any], Any] = bool

    @property
    def title(self) -> str:
        """The name of the abstract System."""
        own = self.abstract.name
        return own if own != "system" else type(self.abstract.processes[0]).__name__

    def processes(self, view: Any) -> Sequence[Process]:
        """The abstract state that the mapping gives for a view, as processes."""
        found = self.mapping(view)
        made = [found] if isinstance(found, Process) else found
        wanted = [type(p) for p in self.abstract.processes]
        if not isinstance(made, list | tuple) or [type(p) for p in made] != wanted:
            listed = ", ".join(cls.__name__ for cls in wanted)
            raise ModelError(
                f"{self.name}: the mapping returned {found!r}, not the processes of the abstract System",
                hint=f"return instances of these classes, in this order: {listed}",
            )
        return made


def refines(abstract: System, mapping: Callable[[Any], Any], *, name: str | None = None) -> Refinement:
    """A property: the System does only what an abstract System allows.

    `mapping` is a function of the view. It returns the processes of the abstract System, with the values of their fields
    (one process, or a list). The abstract System has actions only: no messages, monitors, faults, spare slots or
    clocks.

    >>> from plait import Process, System, action, check
    >>> class Hours(Process):
    ...     hour: int = 0
    ...     @action
    ...     def tick(self):
    ...         self.hour = (self.hour + 1) % 12
    >>> class Clock(Process):
    ...     minutes: int = 0
    ...     @action
    ...     def tick(self):
    ...         self.minutes = (self.minutes + 20) % 720
    >>> hours = refines(System([Hours()]), lambda s: Hours(hour=s[Clock][0].minutes // 60))
    >>> check(System([Clock()], properties=[hours])).status
    'holds'
    """
    if not isinstance(abstract, System):
        raise ModelError(
            f"refines({abstract!r}, …): expected a System",
            hint="call the model function: refines(transaction_commit(), …)",
        )
    if not callable(mapping):
        raise ModelError(
            f"refines(…, {mapping!r}): expected a function of the view",
            hint="write for example lambda s: Spec(states=tuple(p.state for p in s[RM]))",
        )
    made = Refinement(name or "refines", "refinement", _has_no_state, abstract=abstract, mapping=mapping)
    made = dataclasses.replace(
        made, name=name or f"refines {made.title}", doc=f"Each step is one of {made.title}, or none."
    )
    _check_abstract(made)
    return made


def _check_abstract(made: Refinement) -> None:
    """The abstract state must be the fields of the processes, and nothing else."""
    abstract = made.abstract
    receives = next((f"{c.__name__}.{h.name}" for c, h in abstract.handlers() if h.kind == "message"), None)
    for given, what in (
        (receives, f"its handler {receives} takes messages"),
        (abstract.monitors, "it has monitors"),
        (abstract.faults, "it has faults"),
        (any(abstract.spare.values()), "it has spare slots"),
        (abstract.shared, "it has shared state"),
        (abstract.ticking, "it has clocks"),
        (abstract.within, "it has a bound (within)"),
    ):
        if given:
            raise ModelError(
                f"{made.name}: the abstract System cannot be used, because {what}",
                hint="state it with actions only: its state must be the fields of its processes",
            )


def _has_no_state(view: Any) -> Any:
    raise ModelError(
        "a refinement has no value in a state: it is about steps", hint="evaluate a predicate of the view instead"
    )
