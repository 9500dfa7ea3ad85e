"""Formulas: what may be a part of one, and what is said about what may not."""

from __future__ import annotations

from typing import Any

import pytest

from plait import (
    F,
    G,
    ModelError,
    U,
    always,
    always_eventually,
    deadlock_free,
    eventually,
    final,
    leads_to,
    ltl,
    predicate,
    reachable,
    stable,
)


def calm(s: Any) -> bool:
    return True


@predicate
def busy(s: Any) -> bool:
    return True


@pytest.mark.parametrize("wrap", [always, reachable, final, eventually, always_eventually, stable])
@pytest.mark.parametrize(
    "use",
    [
        F,
        eventually,
        stable,
        ltl,
        predicate,
        lambda p: U(busy, p),
        lambda p: busy & p,
        lambda p: p >> busy,
        lambda p: leads_to(busy, p),
        lambda p: leads_to(p, busy),
        lambda p: ltl("F z", z=p),
    ],
)
def test_a_property_is_no_part_of_a_formula(wrap: Any, use: Any) -> None:
    """It would be read as its bare predicate: F(always(p)) as F p."""
    with pytest.raises(ModelError, match=r"calm is a property \(\w+\), and no part of a formula"):
        use(wrap(calm))


def test_what_to_write_instead() -> None:
    with pytest.raises(ModelError, match=r"give the predicate itself, or write G\(…\) for always"):
        F(always(calm))
    with pytest.raises(ModelError, match=r"F\(…\) for eventually"):
        G(eventually(calm))
    with pytest.raises(ModelError, match="give the predicate itself"):
        F(deadlock_free())


@pytest.mark.parametrize("outer", [always, reachable, final])
@pytest.mark.parametrize("inner", [always, reachable, final, eventually])
def test_a_property_is_no_predicate_of_another(outer: Any, inner: Any) -> None:
    with pytest.raises(ModelError, match="calm is a property already"):
        outer(inner(calm))


@pytest.mark.parametrize("given", [5, None, True, "busy", int, G(busy), ~busy])
def test_predicates_of_a_text_are_functions(given: Any) -> None:
    with pytest.raises(ModelError, match=r"ltl\(…, z=…\): .*expected a function of the view"):
        ltl("F z", z=given)


def test_a_predicate_of_a_text_has_the_name_it_has_there() -> None:
    [atom] = ltl("F z", z=busy).formula.atoms()
    assert (atom.name, atom.predicate) == ("z", busy.predicate)
    assert predicate(busy) is busy
