"""From formulas of linear temporal logic to generalized Büchi automata: the tableau of Gerth, Peled, Vardi and Wolper.

A node of the automaton stands for formulas that must be true from now on: some are decided in the present state (their
literals are the label of the node), the others are left to the next state. For each Until there is an acceptance set:
the nodes that do not wait for it any more. A run is accepted if it visits each of these sets infinitely often.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from plait.model.temporal import (
    And,
    Atom,
    Constant,
    Finally,
    Formula,
    Globally,
    Implies,
    Next,
    Not,
    Or,
    Release,
    Until,
    WeakUntil,
)


class Node(NamedTuple):
    """Predicates that must be true (`yes`) and false (`no`) here, as bits; the next nodes; its acceptance sets."""

    yes: int
    no: int
    next: list[int]
    accepting: int


class Automaton(NamedTuple):
    """Accepts the runs that satisfy a formula."""

    nodes: list[Node]
    initial: list[int]
    sets: int


def normal(formula: Formula, negated: bool = False) -> Formula:
    """The negation normal form of a formula, or of its negation: And, Or, Next, Until, Release, Not of predicates."""
    match formula:
        case Atom():
            return Not(formula) if negated else formula
        case Constant(value):
            return Constant(value != negated)
        case Not():
            return normal(formula.of, not negated)
        case Next():
            return Next(normal(formula.of, negated))
        case Finally():
            return normal(Until(Constant(True), formula.of), negated)
        case Globally():
            return normal(Release(Constant(False), formula.of), negated)
        case Implies():
            return normal(Or(Not(formula.left), formula.right), negated)
        case WeakUntil():
            return normal(Release(formula.right, Or(formula.left, formula.right)), negated)
        case And() | Or() | Until() | Release():
            duals = {And: Or, Or: And, Until: Release, Release: Until}
            kind = duals[type(formula)] if negated else type(formula)
            return kind(normal(formula.left, negated), normal(formula.right, negated))
    raise TypeError(f"{formula!r} is not a formula")


@dataclasses.dataclass(eq=False)
class _Tableau:
    """A node under construction."""

    incoming: set[int]
    new: list[Formula]
    old: frozenset[Formula] = frozenset()
    next: frozenset[Formula] = frozenset()


_START = -1


def automaton(formula: Formula, predicates: Sequence[Atom]) -> Automaton:
    """An automaton that accepts exactly the runs that satisfy the formula, over these predicates."""
    wanted = normal(formula)
    done: list[_Tableau] = []
    known: dict[tuple[frozenset[Formula], frozenset[Formula]], int] = {}
    waiting = [_Tableau({_START}, [wanted])]
    while waiting:
        node = waiting.pop()
        if node.new:
            waiting += _decide(node, node.new[-1])
            continue
        key = (node.old, node.next)
        if key in known:
            done[known[key]].incoming |= node.incoming
            continue
        known[key] = len(done)
        done.append(node)
        waiting.append(_Tableau({known[key]}, list(node.next)))
    untils = sorted({f for node in done for f in node.old if isinstance(f, Until)}, key=str)
    nodes = [_node(number, node, done, untils, predicates) for number, node in enumerate(done)]
    initial = [number for number, node in enumerate(done) if _START in node.incoming]
    return with_fewer_choices(merged(Automaton(nodes, initial, len(untils))))


def merged(found: Automaton) -> Automaton:
    """The same automaton, in which nodes with equal labels, acceptance sets and successors are one node."""
    while True:
        firsts: dict[tuple[int, int, tuple[int, ...], int], int] = {}
        place = [firsts.setdefault((n.yes, n.no, tuple(n.next), n.accepting), len(firsts)) for n in found.nodes]
        if len(firsts) == len(place):
            return found

        def mapped(numbers: Sequence[int], place: Sequence[int] = place) -> list[int]:
            return sorted({place[number] for number in numbers})

        nodes = [Node(yes, no, mapped(after), accepting) for yes, no, after, accepting in firsts]
        found = Automaton(nodes, mapped(found.initial), found.sets)


def with_fewer_choices(found: Automaton) -> Automaton:
    """The same automaton with fewer choices: a run need not take a node if another node serves as well.

    Suppose A has all predecessors, all successors and all acceptance sets of B. Then a run that is in B while the label
    of A is true can be in A instead, each time. If A requires one literal more than B, B may require its negation.
    """
    nodes = list(found.nodes)

    def does_as_well(a: int, b: int) -> bool:
        follows = all(a in node.next for node in nodes if b in node.next) and (
            a in found.initial or b not in found.initial
        )
        return follows and set(nodes[b].next) <= set(nodes[a].next) and not nodes[b].accepting & ~nodes[a].accepting

    for a, better in enumerate(nodes):
        for b, node in enumerate(nodes):
            yes, no = nodes[a].yes & ~node.yes, nodes[a].no & ~node.no
            less = not (node.yes & ~nodes[a].yes or node.no & ~nodes[a].no)
            if better is not node and less and (yes | no).bit_count() == 1 and not yes & no and does_as_well(a, b):
                nodes[b] = node._replace(yes=node.yes | no, no=node.no | yes)
    return found._replace(nodes=nodes)


def _decide(node: _Tableau, formula: Formula) -> list[_Tableau]:
    """The ways to make one more formula true in the present state."""
    rest = node.new[:-1]
    old = node.old | {formula}

    def way(now: Sequence[Formula], later: Sequence[Formula] = ()) -> _Tableau:
        new = rest + [f for f in now if f not in old and f not in rest]
        return _Tableau(set(node.incoming), new, old, node.next | set(later))

    match formula:
        case Constant(value):
            return [_Tableau(node.incoming, rest, node.old, node.next)] if value else []
        case Atom():
            return [] if Not(formula) in node.old else [way([])]
        case Not():
            return [] if formula.of in node.old else [way([])]
        case And():
            return [way([formula.left, formula.right])]
        case Or():
            return [way([formula.left]), way([formula.right])]
        case Next():
            return [way([], [formula.of])]
        case Until():
            return [way([formula.left], [formula]), way([formula.right])]
        case Release():
            return [way([formula.right], [formula]), way([formula.left, formula.right])]
    raise TypeError(f"{formula!r} is not in normal form")


def _node(
    number: int, node: _Tableau, done: list[_Tableau], untils: Sequence[Until], predicates: Sequence[Atom]
) -> Node:
    yes = sum(1 << bit for bit, atom in enumerate(predicates) if atom in node.old)
    no = sum(1 << bit for bit, atom in enumerate(predicates) if Not(atom) in node.old)
    after = [other for other, target in enumerate(done) if number in target.incoming]
    accepting = sum(1 << bit for bit, until in enumerate(untils) if _awaits_not(node, until))
    return Node(yes, no, after, accepting)


def _awaits_not(node: _Tableau, until: Until) -> bool:
    return until not in node.old or until.right in node.old or until.right == Constant(True)
