"""Errors of P texts: each names the construct or the mistake, and its line and column."""

from __future__ import annotations

import pytest

from plait import ModelError
from plait.rounds.p.lexer import Text
from plait.rounds.p.parser import parse
from plait.rounds.p.translation import translate

HEAD = "event eA: int; event eB;\n"


def machine(body: str) -> str:
    """A program whose line 3 is the statement under test."""
    return f"{HEAD}machine Main {{ start state Init {{ entry {{ var x: int; var b: bool;\n{body}\n}} }} }}"


STATEMENTS = [
    ("x = true;", 5, "has the type int, not bool"),
    ("y = 1;", 1, "only variables can be assigned"),
    ("x = y;", 5, "there is no variable y"),
    ("send this, eA;", 12, "the event eA needs a payload of the type int"),
    ("send this, eB, 1;", 16, "the event eB has no payload"),
    ("send this, eC;", 12, "there is no variable eC"),
    ("goto Nowhere;", 1, "there is no state Nowhere"),
    ("new Nobody();", 1, "there is no machine Nobody"),
    ("Nothing();", 1, "there is no function Nothing"),
    ("x = x + b;", 7, "the operand of + has the type int, not bool"),
    ("x = sizeof(x);", 5, "sizeof needs a collection"),
    ("x += (1);", 1, "+= needs a collection"),
    ("b = x == b;", 7, "cannot be compared"),
    ("x.f = 1;", 2, "has no field f"),
    ("break;", 1, "break outside of a loop"),
    ("return 1;", 1, "has no result"),
    ("receive { }", 1, "this receive has no case"),
    ("x = $$;", 5, "the fair choice $$ is not supported"),
    ("x = 1.5;", 5, "a number with a fraction is not supported"),
    ("assume x == 1;", 1, "assume is not supported"),
    ("b = b ==> b;", 7, "the operator ==> (of the P verifier) is not supported"),
    ("x = ;", 5, "expected an expression, not ';'"),
    ("x = 1", 1, "expected ';', not '}'"),
    ('print "a;', 7, "this string does not end"),
    ("x = #;", 5, "'#' is no character of P"),
    ("receive { case eA: (x: int) { return; } }", 31, "return in a case of a receive"),
]


@pytest.mark.parametrize(("statement", "column", "problem"), STATEMENTS)
def test_statements(statement: str, column: int, problem: str) -> None:
    with pytest.raises(ModelError) as found:
        translate(machine(statement), "program.p")
    assert problem in found.value.message
    line = 4 if "not '}'" in problem else 3
    assert f"program.p, line {line}, column {column}: " in found.value.message


DECLARATIONS = [
    ("param n: int;", "param is not supported"),
    ("eventset es = { eA };", "eventset is not supported"),
    ("interface I() receives eA;", "interface is not supported"),
    ("type T;", "the foreign type T is not supported"),
    ("fun F(): int;", "the foreign function F is not supported"),
    ("event eA;", "the name eA is declared twice"),
    ("type T = (a: T, b: int);", "the type T contains itself"),
    ("type T = float;", "the type float is not supported"),
    ("type T = set[any];", "any is not supported for the elements of a set"),
    ("enum E { A, A }", "the element A of E has the name of another"),
    ("invariant i: true;", "invariant (of the P verifier) is not supported"),
    ("machine M { state S { } }", "M has no start states"),
    ("machine M { start state S { on null do { } } }", "a handler for null is not supported"),
    ("machine M { start state S { on eA do F; } }", "there is no function F"),
    ("machine M { start state S { on eA do { } ignore eA; } }", "the state S handles eA twice"),
    ("machine M { start state S { on eB do (x: int) { } } }", "takes int"),
    ("machine M { start state S { exit { goto S; } } }", "goto in an exit function"),
    ("machine M { start state S { exit { receive { case eB: { } } } } }", "receive in an exit function"),
    ("spec S observes eA { start state T { entry { send this, eA, 1; } } }", "a spec cannot send"),
    ("spec S observes eA { start state T { entry { raise eB; } on eB do { } } }", "S does not observe eB"),
    ("spec S observes eA { start state T { entry { assert $; } } }", "a spec cannot choose"),
    ("spec S observes eA { start state T { defer eA; } }", "a spec cannot defer"),
    ("spec S observes eC { start state T { } }", "there is no event eC"),
    ("test t [main=Nobody]: { Main };", "there is no machine Nobody"),
    ("test t [main=Main]: assert S in { Main };", "there is no spec S"),
    ("test t [main=Main]: { Main -> Other };", "a binding of a machine to another name (->) is not supported"),
    ("test t [main=Main]: rename A to B in { Main };", "the module operator rename is not supported"),
    ("test t [main=Main]: { Main } refines { Main };", "refines is not supported"),
]


@pytest.mark.parametrize(("declaration", "problem"), DECLARATIONS)
def test_declarations(declaration: str, problem: str) -> None:
    with pytest.raises(ModelError) as found:
        translate(f"{HEAD}machine Main {{ start state Init {{ }} }}\n{declaration}", "program.p")
    assert problem in found.value.message
    assert "program.p, line 3, column " in found.value.message


def test_a_variable_that_is_read_and_changed_in_one_statement() -> None:
    """P calls the function first, Python reads the variable first."""
    text = (
        "machine Main {{ var n: int; start state S {{ entry {{ {} }} }} fun Next(): int {{ n = n + 1; return n; }} }}"
    )
    with pytest.raises(ModelError, match="Next changes n, which is read before"):
        translate(text.format("n = n + Next();"), "program.p")
    translate(text.format("n = Next() + n;"), "program.p")


def test_an_error_shows_the_line_and_has_a_hint() -> None:
    with pytest.raises(ModelError) as found:
        translate(machine("x = 1.5;"), "program.p")
    assert found.value.message.splitlines()[1:] == ["  x = 1.5;", "      ^"]
    assert found.value.hint == "use int"


def test_a_program_without_a_test_needs_main() -> None:
    with pytest.raises(ModelError, match="no test, and no machine Main"):
        translate("machine Other { start state S { } }", "program.p")


def test_the_tree_of_a_text() -> None:
    """Precedence, by the grammar of P: `as` binds looser than `+`, and tighter than `==`."""
    text = "fun F(a: any): bool { return a as int + 1 == 2 * 3 - 1 && !(a as int == 3) || true; }"
    with pytest.raises(ModelError, match=r"expected ';', not '\+'"):
        parse(Text(text, "program.p"))
    (function,) = parse(Text(text.replace("a as int + 1", "1 + a as int"), "program.p"))
    (result,) = function.body.statements  # type: ignore[union-attr]
    either = result.value
    assert (either.operator, either.left.operator) == ("||", "&&")
    equal = either.left.left
    assert (equal.operator, type(equal.left).__name__, equal.left.of.operator) == ("==", "Cast", "+")
    assert (equal.right.operator, equal.right.left.operator) == ("-", "*")
