"""Which fields are relevant and which are auxiliary (DBSS, section III).

A field is *relevant* if an observable effect may depend on its value: a property, whether a handler may run, what it
sends, announces, chooses, spawns or asserts, whether it raises, or another relevant field. The other fields are
*auxiliary*: if two states differ only in auxiliary fields, the properties cannot distinguish their futures
(Definition 1). `plait.check.source.dependence` finds the relevant fields in the source, for the checked properties.

A field that is declared `aux(…)` is auxiliary even if there is no proof. It is then audited during the search
(`plait.check.reduce.relevance`). A sample of the states of proven fields is audited too, in case the proof is wrong.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from plait.check.source.dataflow import Owner
from plait.check.source.dependence import Dependences, dependences, fields_of
from plait.model.system import System


@dataclasses.dataclass(frozen=True)
class FieldRelevance:
    """One field of a class of processes or shared objects: relevant or auxiliary, and why."""

    cls: Owner
    name: str
    declared: bool
    """The user wrote `aux(…)`."""
    auxiliary: bool
    reason: tuple[str, ...]
    """Why it is relevant: the chain from the code that reads it to an observable effect. Empty: proven auxiliary."""

    @property
    def audited(self) -> bool:
        """The field is declared auxiliary, and there is no proof."""
        return self.auxiliary and bool(self.reason)

    @property
    def label(self) -> str:
        return f"{self.cls.__name__}.{self.name}"


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """The fields of all processes and shared objects of a system, relevant and auxiliary. True if some are auxiliary."""

    fields: tuple[FieldRelevance, ...]
    found: Dependences
    """The analysis of the source, with what it assumed."""

    def __bool__(self) -> bool:
        return any(f.auxiliary for f in self.fields)

    @property
    def auxiliary(self) -> dict[Owner, frozenset[str]]:
        """Per class, the fields that the engine does not see."""
        return self._grouped([f for f in self.fields if f.auxiliary])

    @property
    def audited(self) -> dict[Owner, frozenset[str]]:
        """Per class, the auxiliary fields that are audited during the search."""
        return self._grouped([f for f in self.fields if f.audited])

    @property
    def summary(self) -> str:
        names = [f.label + (" (audited)" if f.audited else "") for f in self.fields if f.auxiliary]
        return f"auxiliary: {', '.join(names)}"

    def _grouped(self, facts: list[FieldRelevance]) -> dict[Owner, frozenset[str]]:
        return {cls: frozenset(f.name for f in facts if f.cls is cls) for cls in dict.fromkeys(f.cls for f in facts)}


def decompose(system: System, inference: Literal["auto", "declared"]) -> Decomposition:
    """Find the auxiliary fields: the declared ones, and with "auto" also those with a proof.

    >>> from plait import Process, action, always, field
    >>> class Clock(Process):
    ...     hour: int = 0
    ...     log: list[int] = field(default_factory=list)
    ...     @action
    ...     def tick(self):
    ...         self.log.append(self.hour)
    ...         self.hour = (self.hour + 1) % 12
    >>> [f.label for f in decompose(System([Clock()]), "declared").fields if f.auxiliary]
    []
    """
    found = dependences(system)
    facts = []
    for cls, name in fields_of(system):
        reason, declared = found.reasons.get((cls, name), ()), name in getattr(cls, "__plait_aux__", ())
        auxiliary = declared or (inference == "auto" and not reason)
        facts.append(FieldRelevance(cls, name, declared, auxiliary, reason))
    return Decomposition(tuple(facts), found)
