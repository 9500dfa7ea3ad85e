"""Random small systems that go round in circles, of processes that are alike: a herd, and a keeper that is alone.

As in `cyclic_systems.py`, rules change a number; here all members of the herd follow the same ones, and predicates count.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from hypothesis import strategies as st

from plait import Message, Process, System, action, on, strong, weak
from plait.model.fairness import Fairness
from plait.model.temporal import Atom
from tests.oracle.cyclic_systems import VALUES, Drawn
from tests.oracle.explorer import explore


class Call(Message):
    """Goes from the keeper to one of the herd and back."""


class Rule(NamedTuple):
    on_call: bool
    when: frozenset[int]
    to: int
    calls: bool  # a member sends the call back, the keeper sends one


class Spec(NamedTuple):
    herd: tuple[Rule, ...]
    keeper: tuple[Rule, ...]
    size: int
    fairness: tuple[tuple[bool, int], ...]  # assumptions about the keeper: strong or weak, of what
    atoms: tuple[tuple[str, frozenset[int]], ...]


class Member(Process): ...


class Keeper(Process): ...


def make_handler(number: int, rule: Rule, is_keeper: bool) -> Any:
    def effect(self: Any) -> None:
        self.x = rule.to
        if is_keeper and rule.calls and not self.busy:
            self.busy = True
            self.send(self.choose(self.ids(Member)), Call())
        elif not is_keeper and rule.on_call:
            self.send(self.ids(Keeper), Call())

    def on_call(self: Any, m: Call) -> None:
        if is_keeper:
            self.busy = False
        effect(self)

    def alone(self: Any) -> None:
        effect(self)

    made = on_call if rule.on_call else alone
    made.__name__ = made.__qualname__ = f"rule{number}"
    if rule.on_call:
        return on(Call, where=lambda self, m: self.x in rule.when)(made)
    return action(when=lambda self: self.x in rule.when)(made)


def make_class(name: str, base: type[Process], rules: tuple[Rule, ...]) -> Any:
    body: dict[str, Any] = {"__module__": __name__, "x": 0, "busy": False}
    body["__annotations__"] = {"x": int, "busy": bool}
    body |= {f"rule{number}": make_handler(number, rule, base is Keeper) for number, rule in enumerate(rules)}
    return type(name, (base,), body)


def build(spec: Spec) -> tuple[System, tuple[Fairness, ...], list[Atom]]:
    """The system, assumptions about it, and predicates that do not tell the members of the herd apart."""
    member, keeper = make_class("Sheep", Member, spec.herd), make_class("Shepherd", Keeper, spec.keeper)

    whose = [keeper, *(getattr(keeper, f"rule{i}") for i in range(len(spec.keeper)))]
    fairness = [(strong if is_strong else weak)(whose[number % len(whose)]) for is_strong, number in spec.fairness]

    def atom(number: int, kind: str, values: frozenset[int]) -> Atom:
        def predicate(s: Any) -> bool:
            fit = [m.x in values for m in s[Member]]
            match kind:
                case "any":
                    return any(fit)
                case "all":
                    return all(fit)
                case "one":
                    return fit.count(True) == 1
            return s[Keeper][0].x in values

        return Atom(f"p{number}", predicate)

    system = System([*(member() for _ in range(spec.size)), keeper()], symmetric=[Member])
    return system, tuple(dict.fromkeys(fairness)), [atom(i, *given) for i, given in enumerate(spec.atoms)]


@functools.cache
def specs() -> st.SearchStrategy[Spec]:
    some = st.frozensets(st.integers(0, VALUES - 1), min_size=1)
    rules = st.builds(Rule, st.booleans(), some, st.integers(0, VALUES - 1), st.booleans())
    several = st.lists(rules, min_size=1, max_size=2).map(tuple)
    fairness = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=2).map(tuple)
    return st.builds(
        Spec,
        herd=several,
        keeper=several,
        size=st.sampled_from((2, 2, 3)),
        fairness=fairness,
        atoms=st.tuples(*[st.tuples(st.sampled_from(("any", "all", "one", "keeper")), some)] * 2),
    )


def herds(limit: int) -> st.SearchStrategy[Drawn]:
    """Systems of at most so many states."""

    def make(spec: Spec) -> Drawn:
        system, fairness, atoms = build(spec)
        return Drawn(system, fairness, atoms, explore(system, limit=limit))

    return specs().map(make).filter(lambda made: made.truth.complete)
