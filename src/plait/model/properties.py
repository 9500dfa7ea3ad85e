"""Properties of states: plain functions of a view of the state. Also `@view`: such a function that draws the state.

@always
def agreement(s):
    return len({l.value for l in s[Learner] if l.value is not None}) <= 1
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from plait.kernel.errors import ModelError
from plait.model.process import Process

if TYPE_CHECKING:
    from plait.model.view import View

P = TypeVar("P", bound=Process)

Kind = Literal["always", "reachable", "final", "temporal", "refinement", "predicate", "initially", "within"]
"""`plait.model.temporal` has the properties of kind `temporal`, `plait.model.refinement` those of kind `refinement`. A
`predicate` is a part of a temporal property.

`initially` and `within` are no properties to check: a System says with them which states it has.
"""


ASSERTIONS, NO_EXCEPTIONS = "assertions", "no_exceptions"
BUILT_IN = (ASSERTIONS, NO_EXCEPTIONS)
"""Properties that every System has: no assertion of a handler fails, and user code raises no exception."""


@dataclasses.dataclass(frozen=True)
class Quantified:
    """What a property says of each process of a role (`count` is 1), or of each pair of two of them, in both orders."""

    role: type[Process]
    count: Literal[1, 2]
    holds: Callable[..., Any]
    """The function of the user, of `count` processes."""

    def __str__(self) -> str:
        return f"{'each' if self.count == 1 else 'pairs of'} {self.role.__name__}"

    def predicate(self) -> Callable[[Any], bool]:
        """The property as a function of the view. `plait.ir.parts` divides it by processes and pairs."""
        role, holds = self.role, self.holds
        if self.count == 1:
            return lambda s: all(_truth(holds(p)) for p in s[role])
        return lambda s: all(_truth(holds(a, b)) for a, b in itertools.permutations(s[role], 2))

    def violators(self, view: Any) -> Iterator[tuple[Any, ...]]:
        """The processes, or pairs, for which it is false. Of a pair that is so in both orders, only the first."""
        found: list[set[Any]] = []
        for chosen in itertools.permutations(view[self.role], self.count):
            try:
                holds = self.holds(*chosen)
            except AssertionError:
                holds = False
            ids = {p.id for p in chosen}
            if not holds and ids not in found:
                found.append(ids)
                yield chosen


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ModelError(f"it returned {value!r}", hint="return True or False (or use assert and return True)")


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
    quantified: Quantified | None = None
    """What it says of each process or pair, for `each=` and `pairs=`. Then Plait has made the predicate from it."""

    @property
    def function(self) -> Callable[..., Any]:
        """The function that the user wrote."""
        return self.predicate if self.quantified is None else self.quantified.holds

    def __call__(self, view: Any) -> Any:
        return self.predicate(view)


def _property(kind: Kind, predicate: Any, name: str | None, each: Any = None, pairs: Any = None) -> Any:
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
        over = _quantified(kind, f, each, pairs)
        holds = f if over is None else over.predicate()
        return Property(kind if unnamed else label, kind, holds, doc, unnamed=unnamed, quantified=over)

    return decorate if predicate is None else decorate(predicate)


def _quantified(kind: Kind, function: Callable[..., Any], each: Any, pairs: Any) -> Quantified | None:
    if each is None and pairs is None:
        return None
    option, role = ("each", each) if pairs is None else ("pairs", pairs)
    if each is not None and pairs is not None:
        raise ModelError(f"@{kind}: each= and pairs= cannot be combined", hint="write two properties")
    if not (isinstance(role, type) and issubclass(role, Process)):
        raise ModelError(f"@{kind}({option}={role!r}): expected a Process class", hint=f"write {option}=Worker")
    count: Literal[1, 2] = 1 if option == "each" else 2
    what, example = ("one process", "p") if count == 1 else ("two processes", "a, b")
    place = f"@{kind}({option}={role.__name__})"
    _require_arguments(place, function, count, what, hint=f"write def agreement({example}): …")
    return Quantified(role, count, function)


def _require_arguments(place: str, function: Callable[..., Any], count: int, what: str, *, hint: str) -> None:
    """Refuse a function that cannot be called with so many arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        name = getattr(function, "__name__", function)
        raise ModelError(f"{place}: {name} does not take {what}", hint=hint) from None
    except ValueError:
        pass  # a function of C has no signature


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


def condition(kind: Literal["initially", "within"], given: Any) -> Property | None:
    """What `System(initially=…)` or `System(within=…)` was given, as a Property."""
    if given is None:
        return None
    example = "p.ready" if kind == "initially" else "len(p.inbox) <= 3"
    hint = f"write for example {kind}=lambda s: all({example} for p in s)"
    if isinstance(given, Property) or not callable(given):
        raise ModelError(f"System: {kind}={given!r} is not a function of the view", hint=hint)
    _require_arguments(f"System({kind}=…)", given, 1, "the view, and nothing else", hint=hint)
    name = getattr(given, "__name__", "<lambda>")
    return Property(kind if name == "<lambda>" else f"{kind} {name}", kind, given)


@overload
def always(predicate: Callable[[View], object], *, name: str | None = None) -> Property: ...
@overload
def always(predicate: Callable[[P], object], *, each: type[P], name: str | None = None) -> Property: ...
@overload
def always(predicate: Callable[[P, P], object], *, pairs: type[P], name: str | None = None) -> Property: ...
@overload
def always(*, name: str | None = None) -> Callable[[Callable[[View], object]], Property]: ...
@overload
def always(*, each: type[P], name: str | None = None) -> Callable[[Callable[[P], object]], Property]: ...
@overload
def always(*, pairs: type[P], name: str | None = None) -> Callable[[Callable[[P, P], object]], Property]: ...
def always(predicate: Any = None, *, name: str | None = None, each: Any = None, pairs: Any = None) -> Any:
    """An invariant: the predicate holds in every reachable state.

    With `each=Role`, it is a function of one process, and must hold for every process of the role. With `pairs=Role`, it
    is a function of two different processes, and must hold for every pair of them, in both orders. A violation names the
    processes.

    >>> from plait import Process
    >>> class Node(Process):
    ...     term: int = 0
    ...     leader: bool = False
    >>> @always(pairs=Node)
    ... def one_leader(a, b):
    ...     return not (a.leader and b.leader and a.term == b.term)
    """
    return _property("always", predicate, name, each, pairs)


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
def final(predicate: Callable[[P], object], *, each: type[P], name: str | None = None) -> Property: ...
@overload
def final(predicate: Callable[[P, P], object], *, pairs: type[P], name: str | None = None) -> Property: ...
@overload
def final(*, name: str | None = None) -> Callable[[Callable[[View], object]], Property]: ...
@overload
def final(*, each: type[P], name: str | None = None) -> Callable[[Callable[[P], object]], Property]: ...
@overload
def final(*, pairs: type[P], name: str | None = None) -> Callable[[Callable[[P, P], object]], Property]: ...
def final(predicate: Any = None, *, name: str | None = None, each: Any = None, pairs: Any = None) -> Any:
    """The predicate holds in every terminal state. A state is terminal if no step of a process changes it.

    Faults do not count as steps here: a fault may happen, but does not have to. `each` and `pairs` are as for `always`.
    """
    return _property("final", predicate, name, each, pairs)


def deadlock_free(unless: Callable[[View], object] | None = None, *, name: str = "deadlock_free") -> Property:
    """There is no terminal state, except states in which `unless` is true."""
    predicate = unless or (lambda s: False)
    doc = "no state is terminal" + (", except where this is allowed" if unless else "")
    return Property(name, "final", predicate, doc, wants_no_end=True)


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A named function of a view that draws a state as SVG. It has no influence on a search."""

    name: str
    function: Callable[[Any], Any]

    def __call__(self, view: Any) -> Any:
        return self.function(view)


@overload
def view(function: Callable[[View], str], *, name: str | None = None) -> Drawing: ...
@overload
def view(*, name: str | None = None) -> Callable[[Callable[[View], str]], Drawing]: ...
def view(function: Any = None, *, name: str | None = None) -> Any:
    """A picture of a state: the function returns SVG as text. Reports and `plait explore` show it beside the run.

    Give it to a System: `System(…, views=[lights])`. A view is evaluated only for states that are shown, and cannot change
    a verdict. What could load or run something is removed from the picture.

    >>> from plait import Process
    >>> class Lamp(Process):
    ...     on: bool = False
    >>> @view
    ... def lights(s):
    ...     kinds = ["good" if lamp.on else "box" for lamp in s[Lamp]]
    ...     lamps = [f'<circle cx="{30 * i + 15}" cy="15" r="10" class="{kind}"/>' for i, kind in enumerate(kinds)]
    ...     return f'<svg viewBox="0 0 {30 * len(lamps)} 30">{"".join(lamps)}</svg>'
    """

    def decorate(f: Any) -> Drawing:
        if isinstance(f, Property | Drawing):
            what = f"property ({f.kind})" if isinstance(f, Property) else "view"
            raise ModelError(
                f"view({f.name}): {f.name} is a {what} already", hint="give the function itself, without the decorator"
            )
        if not callable(f):
            raise ModelError(f"view({f!r}): expected a function of the view", hint="write @view def ring(s): …")
        label = name or str(getattr(f, "__name__", "view"))
        _require_arguments(f"@view {label}", f, 1, "the view, and nothing else", hint="write def ring(s): …")
        return Drawing("view" if label == "<lambda>" else label, f)

    return decorate if function is None else decorate(function)
