"""Random small systems that go round in circles: tokens that are passed on for ever, and local states that come back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait import (
    Message,
    Pid,
    Process,
    System,
    action,
    crash_recovery,
    crash_stop,
    duplicating,
    everybody,
    fair_loss,
    fifo,
    init,
    on,
    recovery,
    strong,
    unordered,
    weak,
)
from plait.model.fairness import Fairness
from plait.model.temporal import And, Atom, Finally, Formula, Globally, Next, Not, Or, Release, Until, WeakUntil
from tests.oracle.explorer import Exploration, explore

VALUES = 3
NETWORKS = {
    "unordered": unordered(),
    "fifo": fifo(),
    "set": duplicating(),
    "lossy": unordered(lossy=True),
    "lossy set": duplicating(lossy=True),
}


class Token(Message):
    """Is passed on, kept, or taken out."""

    mark: int = 0


class Heavy(Token):
    """What handlers of tokens take, too. A token with mark 1 is one."""


class Rule(NamedTuple):
    on_token: bool
    heavy: bool  # it takes heavy tokens only
    when: frozenset[int]  # values of x for which it may run
    to: tuple[int, ...]  # what x becomes; a choice, if there are several
    then: str  # what becomes of the token: pass, keep or take


class Spec(NamedTuple):
    rules: tuple[tuple[Rule, ...], ...]  # per process
    starts: tuple[int, ...]
    tokens: tuple[int, ...]  # marks of the tokens that the first process has
    crashes: int
    recovers: bool  # after a crash
    network: str  # one of NETWORKS
    fairness: tuple[tuple[bool, int], ...]  # strong or weak, of what
    derived: tuple[str, ...]  # per process, how its class gets its handlers: own, inherited or overridden
    atoms: tuple[tuple[int, frozenset[int]], ...]  # a process, and the values of x that make it true


def token(mark: int) -> Token:
    return (Heavy if mark else Token)(mark)


def make_handler(number: int, rule: Rule, *, decorated: bool = True) -> Any:
    def effect(self: Any, *received: Token) -> None:
        self.x = self.choose(rule.to) if len(rule.to) > 1 else rule.to[0]
        for taken in received:
            if rule.then != "take":
                self.send(self.peer if rule.then == "pass" else self.id, token(taken.mark))

    def on_token(self: Any, m: Token) -> None:
        effect(self, m)

    def alone(self: Any) -> None:
        effect(self)

    made = on_token if rule.on_token else alone
    made.__name__ = made.__qualname__ = f"rule{number}"
    if not decorated:
        return made
    if rule.on_token:
        return on(Heavy if rule.heavy else Token, where=lambda self, m: self.x in rule.when)(made)
    return action(when=lambda self: self.x in rule.when)(made)


def make_class(name: str, rules: tuple[Rule, ...], derived: str) -> type[Process]:
    """A process that follows the rules; each is a handler of its own, or of a base class.

    In a class that overrides them, the handlers of the base class would do something else.
    """

    def begin(self: Any) -> None:
        for mark in self.held:
            self.send(self.id, token(mark))
        self.held = ()

    body: dict[str, Any] = {"__module__": __name__, "x": 0, "held": ()}
    body["__annotations__"] = {"peer": Pid, "x": int, "held": tuple[int, ...]}
    body["begin"] = init(begin)
    other = [rule._replace(to=(0,), then="take") if derived == "overridden" else rule for rule in rules]
    body |= {f"rule{number}": make_handler(number, rule) for number, rule in enumerate(other)}
    if derived == "own":
        return type(name, (Process,), body)
    base = type(f"Base{name}", (Process,), body)
    overrides = {f"rule{i}": make_handler(i, rule, decorated=False) for i, rule in enumerate(rules)}
    return type(name, (base,), {"__module__": __name__} | (overrides if derived == "overridden" else {}))


def build(spec: Spec) -> tuple[System, tuple[Fairness, ...], list[Atom]]:
    """The system, assumptions about it, and predicates on its states."""
    made = zip(spec.rules, spec.derived, strict=False)
    classes: list[Any] = [make_class(f"Node{i}", rules, derived) for i, (rules, derived) in enumerate(made)]
    held = [spec.tokens] + [()] * (len(classes) - 1)
    peers = [classes[(i + 1) % len(classes)].pid(0) for i in range(len(classes))]
    processes = [c(peer=p, x=x, held=h) for c, p, x, h in zip(classes, peers, spec.starts, held, strict=True)]
    bases = [c.__mro__[1] for c in classes]
    whose: list[Any] = [Process, *classes, *(base for base in bases if base is not Process)]
    whose += [Message, Token, Heavy] if any(rule.on_token for own in spec.rules for rule in own) else []
    named = zip([*classes, *bases], [*spec.rules, *spec.rules], strict=True)
    whose += [getattr(c, f"rule{i}") for c, rules in named if c is not Process for i in range(len(rules))]
    whose += [everybody, recovery(Process), recovery(classes[0])] if spec.crashes and spec.recovers else [everybody]
    assumed = [(strong if is_strong else weak)(whose[number % len(whose)]) for is_strong, number in spec.fairness]
    network = NETWORKS[spec.network]
    if network.lossy and any(isinstance(one.of, type) and issubclass(one.of, Message) for one in assumed):
        assumed.append(fair_loss(Token))

    def atom(number: int, process: int, values: frozenset[int]) -> Atom:
        role = classes[process % len(classes)]
        return Atom(f"p{number}", lambda s: s[role][0].x in values)

    crash = crash_recovery if spec.recovers else crash_stop
    system = System(
        processes,
        network=network,
        faults=[crash(budget=spec.crashes)] if spec.crashes else [],
        fairness=[one for one in assumed if one.recovers],  # these decide which states are terminal
    )
    return system, tuple(dict.fromkeys(assumed)), [atom(i, *given) for i, given in enumerate(spec.atoms)]


def rules() -> st.SearchStrategy[Rule]:
    some = st.frozensets(st.integers(0, VALUES - 1), min_size=1)
    values = st.lists(st.integers(0, VALUES - 1), min_size=1, max_size=2, unique=True).map(tuple)
    return st.builds(
        Rule,
        st.booleans(),
        st.sampled_from([False, False, True]),
        some,
        values,
        st.sampled_from(["pass", "pass", "keep", "take"]),
    )


@functools.cache  # a strategy takes longer to make than to draw from
def specs_of(count: int, networks: tuple[str, ...]) -> st.SearchStrategy[Spec]:
    return st.builds(
        Spec,
        rules=st.tuples(*[st.lists(rules(), min_size=1, max_size=3).map(tuple)] * count),
        starts=st.tuples(*[st.integers(0, VALUES - 1)] * count),
        tokens=st.lists(st.integers(0, 1), max_size=2).map(tuple),
        crashes=st.sampled_from([0, 0, 0, 1, 1]),
        recovers=st.booleans(),
        network=st.sampled_from(networks),
        fairness=st.lists(st.tuples(st.booleans(), st.integers(0, 19)), max_size=3).map(tuple),
        derived=st.tuples(*[st.sampled_from(["own", "own", "inherited", "overridden"])] * count),
        atoms=st.tuples(
            *[st.tuples(st.integers(0, 1), st.frozensets(st.integers(0, VALUES - 1), min_size=1, max_size=2))] * 2
        ),
    )


@functools.cache
def specs(counts: tuple[int, ...], networks: tuple[str, ...]) -> st.SearchStrategy[Spec]:
    return st.sampled_from(counts).flatmap(lambda count: specs_of(count, networks))


class Drawn(NamedTuple):
    system: System
    fairness: tuple[Fairness, ...]
    atoms: list[Atom]
    truth: Exploration


def drawn(
    limit: int,
    counts: tuple[int, ...] = (1, 2, 2, 2),
    networks: tuple[str, ...] = ("unordered", "unordered", "unordered", "fifo", "set", "lossy", "lossy set"),
    fairness: tuple[tuple[bool, int], ...] | None = None,
) -> st.SearchStrategy[Drawn]:
    """Systems of at most so many states, of so many processes, perhaps with given assumptions."""

    def make(spec: Spec) -> Drawn:
        system, assumed, atoms = build(spec if fairness is None else spec._replace(fairness=fairness))
        return Drawn(system, assumed, atoms, explore(system, limit=limit))

    return specs(counts, networks).map(make).filter(lambda made: made.truth.complete)


def formulas(atoms: list[Atom], following: bool = True) -> st.SearchStrategy[Formula]:
    """Formulas over the atoms; with X, if they may speak of the following state."""
    return shapes(len(atoms), following).map(lambda shape: shape(atoms))


Shape = Callable[[list[Atom]], Formula]
"""A formula, once the atoms are given."""


@functools.cache
def shapes(count: int, following: bool) -> st.SearchStrategy[Shape]:
    def more(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
        one = st.sampled_from([Not, *([Next] if following else []), Globally, Finally, Globally, Finally])
        two = st.sampled_from([And, Or, Until, Release, WeakUntil])
        return st.builds(lambda k, a: lambda atoms: k(a(atoms)), one, inner) | st.builds(
            lambda k, a, b: lambda atoms: k(a(atoms), b(atoms)), two, inner, inner
        )

    return st.recursive(st.sampled_from(range(count)).map(lambda i: lambda atoms: atoms[i]), more, max_leaves=4)
