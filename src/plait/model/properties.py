"""Properties: what must be true of the states of a system, as plain functions of a view.

@always
def agreement(s):
    return len({l.value for l in s[Learner] if l.value is not None}) <= 1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from plait.kernel.errors import ModelError

Kind = Literal["always", "reachable", "final", "temporal", "predicate"]
"""`temporal` ones are in `plait.model.temporal`; a `predicate` is a part of such a one."""


@dataclasses.dataclass(frozen=True)
class Property:
    """A named predicate on a view of the system, and when it must hold."""

    name: str
    kind: Kind
    predicate: Callable[[Any], Any]
    doc: str = ""
    wants_no_end: bool = False
    """That it was never evaluated, because no state is terminal, is what the user hopes for."""

    def __call__(self, view: Any) -> Any:
        return self.predicate(view)


def _property(kind: Kind, predicate: Any, name: str | None) -> Any:
    def decorate(f: Callable[[Any], Any]) -> Property:
        if isinstance(f, Property):
            raise ModelError(
                f"{kind}({f.name}): {f.name} is a property already ({f.kind})",
                hint="give the function itself, without the decorator",
            )
        if not callable(f):
            raise ModelError(
                f"{kind}({f!r}): expected a function of the view",
                hint=f"@{kind} def agreement(s): …; a formula is about runs: wrap it in ltl(…) instead",
            )
        label = name or str(getattr(f, "__name__", kind))
        doc = (getattr(f, "__doc__", None) or "").strip().split("\n")[0]
        return Property(kind if label == "<lambda>" else label, kind, f, doc)

    return decorate if predicate is None else decorate(predicate)


def always(predicate: Any = None, *, name: str | None = None) -> Any:
    """An invariant: holds in every reachable state."""
    return _property("always", predicate, name)


def reachable(predicate: Any = None, *, name: str | None = None) -> Any:
    """Some reachable state satisfies the predicate; that none does is a violation."""
    return _property("reachable", predicate, name)


def final(predicate: Any = None, *, name: str | None = None) -> Any:
    """Holds in every terminal state: one that no step of a process leads out of (faults need not happen)."""
    return _property("final", predicate, name)


def deadlock_free(unless: Callable[[Any], Any] | None = None, *, name: str = "deadlock_free") -> Property:
    """There is no terminal state, except those in which `unless` is true."""
    predicate = unless or (lambda s: False)
    doc = "no state is terminal" + (" unless it is meant to be" if unless else "")
    return Property(name, "final", predicate, doc, wants_no_end=True)
