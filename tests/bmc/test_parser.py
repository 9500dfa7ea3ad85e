"""The parser of the small language against its grammar: a generated parser accepts the same texts."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import UnexpectedInput

from plait.bmc.language import syntax as s
from plait.bmc.language.parser import _tokens, parse
from plait.bmc.load import ZOO
from plait.kernel.errors import ModelError

EXAMPLES = Path(__file__).parents[2] / "examples"
EVERYTHING = """
const n = 3;
int a[n] = {1, 2, 3}, b in 0..3, c;
bool d = !(1 < 2) && !true == false || -1 * (2 + 3) % 2 == 1 ==> (exists i in 0..n-1: a[i] > 0 ? true : false);
init b < 2 ==> c == 1 ==> d;
processes 3;
process p[i in 0..n - 1](int left = (i + 1) % n, bool even = i % 2 == 0) {
  int t = 0, u;
  lock m;
  if (t < 1) { t = 1; } else if (t == 2) { skip; } else { havoc t in 0..3; }
  choose { skip; } or { assume(done(p[1])); } or { assert(done || !done); }
  while (p[0].t < 3) { atomic { t = t + 1; u = a[t]; } }
  lock(m); unlock(m); havoc u;
}
/* c */ final f: forall x in 0..2: done(p[x]) && p[x].t >= 0; // end
reachable r: true;
"""
TEXTS = [EVERYTHING, *(file.read_text() for file in sorted([*ZOO.glob("*.plait"), *EXAMPLES.rglob("*.plait")]))]
GRAMMAR = r"""
start: item*
?item: "const" NAME "=" expr ";"                                        -> constant
     | KIND declarator ("," declarator)* ";"                            -> declaration
     | "processes" expr ";"                                             -> count
     | "init" expr ";"                                                  -> initial
     | "atomic" "statements" ";"                                        -> atomic_statements
     | PROPERTY NAME ":" expr ";"                                       -> property
     | "process" NAME instances? parameters? "{" local* statement* "}"  -> process
instances: "[" NAME "in" sum ".." sum "]"
parameters: "(" [parameter ("," parameter)*] ")"
parameter: KIND NAME "=" expr
local: KIND declarator ("," declarator)* ";"
declarator: NAME size? (initializer | range)?
size: "[" expr "]"
initializer: "=" expr | "=" "{" expr ("," expr)* "}" -> listed
range: "in" sum ".." sum

?statement: reference "=" expr ";"                        -> assign
          | "havoc" reference range? ";"                  -> havoc
          | "assume" "(" expr ")" ";"                     -> assume
          | "assert" "(" expr ")" ";"                     -> assertion
          | "lock" "(" reference ")" ";"                  -> lock
          | "unlock" "(" reference ")" ";"                -> unlock
          | "skip" ";"                                    -> skip
          | "if" "(" expr ")" block alternative?          -> if_
          | "while" "(" expr ")" block                    -> while_
          | "choose" block ("or" block)+                  -> choose
          | "atomic" block                                -> atomic
alternative: "else" block | "else" "if" "(" expr ")" block alternative? -> else_if
block: "{" statement* "}"

?expr: QUANTIFIER NAME "in" sum ".." sum ":" expr         -> quantified
     | conditional
?conditional: implication | implication "?" expr ":" expr -> choice
?implication: disjunction | disjunction "==>" implication -> implies
?disjunction: conjunction | disjunction OR conjunction    -> binary
?conjunction: negation | conjunction AND negation         -> binary
?negation: comparison | "!" negation                      -> not_
?comparison: sum | sum COMPARE sum                        -> binary
?sum: product | sum ADD product                           -> binary
?product: unary | product MULTIPLY unary                  -> binary
?unary: atom | "-" unary                                  -> negative
?atom: NUMBER                                             -> number
     | "true"                                             -> true
     | "false"                                            -> false
     | "done" ["(" NAME element? ")"]                     -> done
     | reference
     | "(" expr ")"
reference: NAME element? ["." NAME element?]
element: "[" expr "]"

KIND.2: /(int|bool|lock)(?=\s+[A-Za-z_])/
PROPERTY.2: /(always|final|reachable)\b/
QUANTIFIER.2: /(forall|exists)\b/
OR: "||"
AND: "&&"
COMPARE: "==" | "!=" | "<=" | ">=" | "<" | ">"
ADD: "+" | "-"
MULTIPLY: "*" | "/" | "%"
NAME: /[A-Za-z_][A-Za-z0-9_]*/
NUMBER: /[0-9]+/
%import common.WS
%ignore WS
%ignore /\/\/[^\n]*/
%ignore /\/\*(.|\n)*?\*\//
"""


@cache
def grammar() -> Lark:
    return Lark(GRAMMAR, parser="lalr")


def accepted(text: str) -> bool:
    try:
        grammar().parse(text)
    except UnexpectedInput:
        return False
    return True


def parsed(text: str) -> bool:
    try:
        parse(text)
    except ModelError:
        return False
    return True


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_programs(text: str) -> None:
    assert accepted(text)
    assert parsed(text)


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), st.integers(1, 2))
def test_random_changes(text: str, dice: random.Random, changes: int) -> None:
    """Both accept, or refuse, a program in which tokens are removed, doubled, replaced or exchanged."""
    words = [token.text for token in _tokens(text)]
    for _ in range(changes):
        here, there = dice.randrange(len(words)), dice.randrange(len(words))
        match dice.randrange(4):
            case 0:
                del words[here]
            case 1:
                words.insert(here, words[there])
            case 2:
                words[here] = words[there]
            case _:
                words[here], words[there] = words[there], words[here]
    changed = " ".join(words)
    assert parsed(changed) == accepted(changed)


def condition(text: str) -> str:
    """The expression with all its parentheses."""

    def shown(e: s.Expression) -> str:
        match e:
            case s.Binary(_, operator, left, right):
                return f"({shown(left)} {operator} {shown(right)})"
            case s.Unary(_, operator, operand):
                return f"{operator}{shown(operand)}"
            case s.Conditional(_, test, then, otherwise):
                return f"({shown(test)} ? {shown(then)} : {shown(otherwise)})"
        return e.place.text

    return shown(parse(f"always a: {text};").properties[0].condition)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!a == b", "!(a == b)"),
        ("!a && b", "(!a && b)"),
        ("a || b && c || d", "((a || (b && c)) || d)"),
        ("a ==> b ==> c", "(!a || (!b || c))"),
        ("a - b - c * -d % e", "((a - b) - ((c * -d) % e))"),
        ("a < b + 1 && (c || d)", "((a < (b + 1)) && (c || d))"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a || b ? c : d ==> e", "((a || b) ? c : (!d || e))"),
    ],
)
def test_operators(text: str, expected: str) -> None:
    assert condition(text) == expected


def test_places() -> None:
    text = "int x = 0;\nprocess p {\n  if (x < (1))  { x = (x) + 1; } else   if (x == 2) { skip; }\n}"
    branch = parse(text).processes[0].body[0]
    assert isinstance(branch, s.If)
    assert branch.place == (3, 3, "if (x < (1))", "")
    assert branch.condition.place == (3, 7, "x < (1)", "")
    assert isinstance(branch.then[0], s.Assign)
    assert branch.then[0].place == (3, 19, "x = (x) + 1;", "")
    assert branch.then[0].value.place.text == "(x) + 1"
    assert branch.otherwise[0].place == (3, 34, "if (x == 2)", "")


def test_a_keyword_can_be_a_name() -> None:
    tree = parse("int range = 0; int process = 1; process done { range = process; }")
    assert [v.name for v in tree.variables] == ["range", "process"]
    assert tree.processes[0].name == "done"
