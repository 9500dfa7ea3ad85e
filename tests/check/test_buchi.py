"""Automata of formulas: they accept the words on which the formulas are true, also after they were made smaller."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plait import F, G, X
from plait.check.live.buchi import Automaton, Node, automaton, merged, with_fewer_choices
from plait.model.temporal import Atom, Formula, Not
from tests.oracle.cyclic_systems import formulas
from tests.oracle.lassos import holds_on

ATOMS = [Atom("p", lambda s: True), Atom("q", lambda s: True)]
P, Q = ATOMS


def accepts(found: Automaton, word: list[int], begin: int) -> bool:
    """Whether an automaton accepts a word, of which the letters from `begin` on repeat for ever."""
    after = [*range(1, len(word)), begin]

    def fits(node: Node, letter: int) -> bool:
        return node.yes & ~letter == 0 and node.no & letter == 0

    product = networkx.DiGraph()
    for at, letter in enumerate(word):
        for number, node in enumerate(found.nodes):
            if fits(node, letter):
                targets = (n for n in node.next if fits(found.nodes[n], word[after[at]]))
                product.add_edges_from(((at, number), (after[at], n)) for n in targets)
    product.add_nodes_from((0, n) for n in found.initial if fits(found.nodes[n], word[0]))
    starts = [node for node in product if node[0] == 0 and node[1] in found.initial]
    reached = set(starts).union(*(networkx.descendants(product, node) for node in starts))
    for part in networkx.strongly_connected_components(product.subgraph(reached)):
        sets = 0
        for _, number in part:
            sets |= found.nodes[number].accepting
        if sets & (1 << found.sets) - 1 == (1 << found.sets) - 1 and product.subgraph(part).number_of_edges():
            return True
    return False


words = st.lists(st.integers(0, 3), min_size=1, max_size=6).flatmap(
    lambda word: st.tuples(st.just(word), st.integers(0, len(word) - 1))
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(formula=formulas(ATOMS), lasso=words)
@example(formula=G(F(P)) >> G(F(Q)), lasso=([1, 2, 3, 0], 1))
@example(formula=G(F(P)) & F(G(Q)), lasso=([0, 2, 3], 1))
@example(formula=X(F(P)), lasso=([1, 0], 1))
def test_an_automaton_accepts_the_words_on_which_its_formula_is_true(
    formula: Formula, lasso: tuple[list[int], int]
) -> None:
    word, begin = lasso
    letters = list(range(len(word)))  # each position a state of its own
    truths = {str(atom): {at for at in letters if word[at] >> bit & 1} for bit, atom in enumerate(ATOMS)}
    expected = holds_on(formula, letters, begin, truths)  # type: ignore[arg-type]
    assert accepts(automaton(formula, ATOMS), word, begin) == expected
    assert accepts(automaton(Not(formula), ATOMS), word, begin) != expected


def test_again_and_again_needs_one_node_a_state() -> None:
    found = automaton(G(F(P)), ATOMS)
    assert sorted((n.yes, n.no, n.next, n.accepting) for n in found.nodes) == [(0, 1, [0, 1], 0), (1, 0, [0, 1], 1)]


def test_nodes_that_are_alike_are_one() -> None:
    found = automaton(F(G(P)), ATOMS)
    assert len(found.nodes) == 2
    alike = Node(1, 0, [0], 1)
    assert merged(Automaton([alike, alike._replace(next=[1])], [0, 1], 1)).nodes == [alike, Node(1, 0, [1], 1)]
    assert merged(Automaton([alike, alike], [0, 1], 1)) == Automaton([alike], [0], 1)


@pytest.mark.parametrize(
    "found",
    [
        Automaton([Node(1, 0, [0, 1], 0), Node(0, 0, [0, 1], 1)], [0, 1], 1),  # in fewer sets
        Automaton([Node(1, 0, [0], 1), Node(0, 0, [0, 1], 1)], [0, 1], 1),  # leads to less
        Automaton([Node(1, 0, [0, 1], 1), Node(0, 0, [0, 1], 0)], [1], 1),  # does not begin
        Automaton([Node(1, 0, [0, 1], 1), Node(0, 0, [0, 1], 0), Node(2, 0, [1], 0)], [0, 1, 2], 1),  # does not follow
        Automaton([Node(3, 0, [0, 1], 1), Node(0, 0, [0, 1], 0)], [0, 1], 1),  # two literals more
    ],
)
def test_a_node_that_does_less_takes_nothing_over(found: Automaton) -> None:
    assert with_fewer_choices(found).nodes[1] == found.nodes[1]
