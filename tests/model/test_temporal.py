"""Formulas: what may be a part of one, and what is said about what may not."""

from __future__ import annotations

from typing import Any

import pytest

from plait import (
    F,
    G,
    ModelError,
    Process,
    System,
    U,
    always,
    always_eventually,
    check,
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
    with pytest.raises(ModelError, match=r"calm is a property \(\w+\), which cannot be part of a formula"):
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


# -- what predicates are called ----------------------------------------------------------------------------------------

LONG = predicate(lambda s: s.a_very_long_name_of_a_role_of_processes == s.another_name_that_is_no_shorter)
LONGER = predicate(lambda s: s.a_very_long_name_of_a_role_of_processes != s.another_name_that_is_no_shorter)


@pytest.mark.parametrize(
    ("made", "name", "formula"),
    [
        (eventually(lambda s: s.up, name="rises"), "rises", "F rises"),
        (eventually(lambda s: s.up), "eventually", "F s.up"),
        (always_eventually(LONG), "always_eventually", "G F λ1"),
        (stable(~predicate(lambda s: s.up)), "stable", "G (!s.up -> G !s.up)"),
        (leads_to(lambda s: s.up, lambda s: s.a or s.b), "s.up leads to (s.a or s.b)", "G (s.up -> F (s.a or s.b))"),
        (leads_to(LONG, lambda s: (s.up ==
                                   1), name="it"), "it", "G (p -> F q)"),
        (leads_to(~LONG, LONGER), "!λ1 leads to q", "G (!λ1 -> F q)"),
        (leads_to(LONG, LONG), "p leads to p", "G (p -> F p)"),
        (leads_to(busy, LONG), "busy leads to q", "G (busy -> F q)"),
        (ltl(G(LONG >> F(busy)), name="it"), "it", "G (λ1 -> F busy)"),
        (ltl(F(lambda s: s.up) & F(lambda s: s.up), name="it"), "it", "(F s.up & F λ2)"),
        (ltl(F(lambda s: True)), "F λ1", "F λ1"),
        (ltl(F(lambda s: all(p.up for p in s.all))), "F all(p.up for p in s.all)", "F all(p.up for p in s.all)"),
        (ltl("F z", z=lambda s: s.up), "F z", "F z"),
        (ltl(F(eval("lambda s: s.up"))), "F λ1", "F λ1"),
    ],
)  # fmt: skip
def test_lambdas_are_told_apart(made: Any, name: str, formula: str) -> None:
    assert (made.name, str(made.formula)) == (name, formula)


def test_an_error_says_which_property_it_is_in() -> None:
    class Idle(Process):
        n: int = 0

    with pytest.raises(ModelError, match="wrong raised ZeroDivisionError"):
        check(System([Idle()], properties=[eventually(lambda s: 1 // s[Idle][0].n, name="wrong")]))


# -- what is said ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [always, reachable, final])
def test_a_formula_is_to_be_wrapped(kind: Any) -> None:
    said = r"\(F busy\): expected a function of the view\n.*for a formula, which is about runs, write ltl\(…\)"
    with pytest.raises(ModelError, match=said):
        kind(F(busy))


@pytest.mark.parametrize(
    ("formula", "text"), [(G(F(busy)), "G F busy"), (busy, "busy"), (F(lambda s: s.up) | busy, r"\(F s\.up \| busy\)")]
)
def test_a_formula_in_a_system_is_to_be_wrapped(formula: Any, text: str) -> None:
    with pytest.raises(ModelError, match=rf"System: {text} in properties .*\n.*wrap a formula in ltl\(…\)"):
        System([], properties=[formula])


@pytest.mark.parametrize("text", ["busy <- calm", "busy until calm", "(busy then calm)", "[busy]", "busy & -> calm"])
def test_an_unknown_operator(text: str) -> None:
    with pytest.raises(ModelError, match=r"\n.*operators: G F X ! \[\] <>, then U R W, then &, then \|, then -> =>"):
        ltl(text, busy=busy, calm=calm)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("[](busy => <>calm)", G(busy >> F(calm))),
        ("busy <-> calm", (busy >> calm) & (calm >> busy)),
        ("busy <=> calm => busy", (busy >> (calm >> busy)) & ((calm >> busy) >> busy)),
        ("<>[]!busy", F(G(~busy))),
    ],
)
def test_operators_as_in_tla(text: str, formula: Any) -> None:
    assert str(ltl(text, busy=busy, calm=calm).formula) == str(formula)


@pytest.mark.parametrize("word", ["F", "G", "X", "U", "R", "W", "true", "false", "not", "and", "or"])
def test_words_of_formulas_are_reserved(word: str) -> None:
    with pytest.raises(ModelError, match=rf"ltl\(…, {word}=…\): {word} is a reserved word of formulas"):
        ltl(f"F {word}", **{word: busy})


def test_a_misspelt_predicate() -> None:
    with pytest.raises(ModelError, match=r"found 'buzy'\nhint: did you mean 'busy'\? predicates given: calm, busy"):
        ltl("G(calm -> F buzy)", calm=calm, busy=busy)
    with pytest.raises(ModelError, match="hint: predicates given: none"):
        ltl("F anything")


def test_a_predicate_may_have_the_name_of_the_first_parameter() -> None:
    assert ltl("F given", given=busy).name == "F given"
