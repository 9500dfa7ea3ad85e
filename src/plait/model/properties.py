"""Properties of states: plain functions of a view of the state.

@always
def agreement(s):
    return len({l.value for l in s[Learner] if l.value is not None}) <= 1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from plait.kernel.errors import ModelError

if TYPE_CHECKING:
    from plait.model.view import View

Kind = Literal["always", "reachable", "final", "temporal", "predicate"]
"""`plait.model.temporal` has the properties of kind `temporal`. A `predicate` is a part of a temporal property."""


@dataclasses.dataclass(frozen=True)
class Property:
    """A named predicate on a view of the state. Its kind says in which states it must hold."""

    name: str
    kind: Kind
    predicate: Callable[[Any], Any]
    doc: str = ""
    wants_no_end: bool = False
    """Whether the user expects that no state is terminal. Then no evaluation at all is the expected result."""
    unnamed: bool = False
    """Whether the name was made up, because the user gave none. A System numbers such properties if their names clash."""

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
                hint=f"write @{kind} def agreement(s): …; for a formula, which is about runs, write ltl(…)",
            )
        label = name or str(getattr(f, "__name__", kind))
        doc = (getattr(f, "__doc__", None) or "").strip().split("\n")[0]
        unnamed = label == "<lambda>"
        return Property(kind if unnamed else label, kind, f, doc, unnamed=unnamed)

    return decorate if predicate is None else decorate(predicate)


def distinct(properties: Sequence[Property]) -> list[Property]:
    """The properties; those without a name of their own are numbered if their made-up names clash.

    >>> [p.name for p in distinct([always(lambda s: True), always(lambda s: False), final(lambda s: True)])]
    ['always', 'always 2', 'final']
    """
    made: list[Property] = []
    taken = {p.name for p in properties if not p.unnamed}
    for p in properties:
        name, number = p.name, 1
        while p.unnamed and name in taken:
            number += 1
            name = f"{p.name} {number}"
        taken.add(name)
        made.append(p if name == p.name else dataclasses.replace(p, name=name))
    return made


@overload
def always(predicate: Callable[[View], object], *, name: str | None = None) -> Property: ...
@overload
def always(*, name: str | None = None) -> Callable[[Callable[[View], object]], Property]: ...
def always(predicate: Any = None, *, name: str | None = None) -> Any:
    """An invariant: the predicate holds in every reachable state."""
    return _property("always", predicate, name)


@overload
def reachable(predicate: Callable[[View], object], *, name: str | None = None) -> Property: ...
@overload
def reachable(*, name: str | None = None) -> Callable[[Callable[[View], object]], Property]: ...
def reachable(predicate: Any = None, *, name: str | None = None) -> Any:
    """The predicate holds in some reachable state. If it holds in none, the property is violated."""
    return _property("reachable", predicate, name)


@overload
def final(predicate: Callable[[View], object], *, name: str | None = None) -> Property: ...
@overload
def final(*, name: str | None = None) -> Callable[[Callable[[View], object]], Property]: ...
def final(predicate: Any = None, *, name: str | None = None) -> Any:
    """The predicate holds in every terminal state. A state is terminal if no step of a process changes it.

    Faults do not count as steps here: a fault may happen, but does not have to.
    """
    return _property("final", predicate, name)


def deadlock_free(unless: Callable[[View], object] | None = None, *, name: str = "deadlock_free") -> Property:
    """There is no terminal state, except states in which `unless` is true."""
    predicate = unless or (lambda s: False)
    doc = "no state is terminal" + (", except where this is allowed" if unless else "")
    return Property(name, "final", predicate, doc, wants_no_end=True)
