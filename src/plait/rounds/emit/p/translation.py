"""Expressions of a sequential program in Distal, translated to P.

What ranges over a collection becomes a function of its own, because P has no such expressions. A number that may be none
is a sequence of at most one number. The id of a process is its number, and -1 for nobody. `library.txt` has functions
that are the same in all programs.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable
from pathlib import Path

from plait.kernel.extras import needs
from plait.rounds.distal.parser import Node
from plait.rounds.distal.translation import Translation
from plait.rounds.distal.value_types import BOOL, INT, PID, TEXT, ValueType, list_of, merge, optional, set_of

with needs("rounds"):
    from lark import Token

KEYWORDS = {
    "to",
    "in",
    "on",
    "do",
    "entry",
    "exit",
    "state",
    "event",
    "machine",
    "send",
    "goto",
    "raise",
    "type",
    "fun",
}
KEYWORDS |= {"var", "this", "choose", "format", "keys", "values", "sizeof", "default", "spec", "test", "hot", "cold"}
KEYWORDS |= {
    "start",
    "with",
    "data",
    "any",
    "int",
    "bool",
    "string",
    "seq",
    "set",
    "map",
    "enum",
    "new",
    "null",
    "halt",
}
KEYWORDS |= {"case", "receive", "defer", "ignore", "assert", "assume", "print", "return", "break", "continue", "while"}
KEYWORDS |= {"foreach", "if", "else", "announce", "module", "main", "union", "compose", "observes", "receives", "sends"}
KEYWORDS |= {"interface", "float", "param", "pure", "init"}
"""Words of P, which are no names of fields."""
LETTERS = string.ascii_lowercase
RUN = ValueType("run")
"""The type of the process in a property."""


class Expressions:
    """Translates expressions. `functions` has the functions that they need."""

    def __init__(self, translation: Translation) -> None:
        self.names, self.declared = translation.names, translation.declared
        self.roots = [*self.declared.actions, *(upon.node for upon in self.declared.upons), *self.declared.properties]
        self.roots += [*self.declared.computed.values(), *(f.body for f in self.names.functions.values())]
        self.local: dict[str, ValueType | None] = {}
        self.functions: dict[str, list[str]] = {}
        self._numbered = 0
        self._loops: dict[str, ValueType | None] = {}
        """The types of loop variables."""

    # -- types -----------------------------------------------------------------------------------------------------------

    def type(self, kind: ValueType | None) -> str:
        """A type in P."""
        if kind is None:
            return "int"
        inside = self.type(kind.element)
        named = {
            "text": "string",
            "pid": "int",
            "list": f"seq[{inside}]",
            "set": f"set[{inside}]",
            "optional": f"seq[{inside}]",
        }
        return named.get(kind.name, kind.name)

    def field(self, name: str) -> str:
        """The name of a field, which is no word of P."""
        return f"{name}_" if name in KEYWORDS else name

    def default(self, kind: ValueType | None) -> str:
        """The value of an empty collection of a type."""
        return f"default({self.type(kind)})"

    def fit(self, code: tuple[str, ValueType | None], wanted: ValueType | None) -> str:
        """An expression as a value of a type: a number becomes one that may be none."""
        text, found = code
        if wanted is None or found is None:
            return text
        if text == "<empty>":
            return self.default(wanted)
        if wanted.name == "optional" and found.name != "optional":
            name = f"Some_{self._label(wanted.element)}"
            inside = self.type(wanted.element)
            self.functions.setdefault(
                name,
                [
                    f"fun {name}(x: {inside}): seq[{inside}] {{",
                    f"  var made: seq[{inside}];",
                    "  made += (0, x);",
                    "  return made;",
                    "}",
                ],
            )
            return f"{name}({text})"
        return text

    def _label(self, kind: ValueType | None) -> str:
        return "".join(c if c.isalnum() else "_" for c in self.type(kind))

    def helper(self, node: Node | list[Node], result: ValueType | None, body: Callable[[], list[str]]) -> str:
        """A call of a new function, whose parameters are the local names that the expression mentions."""
        nodes = node if isinstance(node, list) else [node]
        used = {str(found.children[0]) for one in nodes for found in one.find("name")}
        given = [name for name in self.local if name in used and self.local[name] != RUN]
        lines = body()
        self._numbered += 1
        name = f"Part{self._numbered}"
        parameters = ", ".join(f"{n}: {self.type(self.local[n])}" for n in given)
        self.functions[name] = [
            f"fun {name}({parameters}): {self.type(result)} {{",
            *(f"  {line}" for line in lines),
            "}",
        ]
        return f"{name}({', '.join(given)})"

    # -- expressions -----------------------------------------------------------------------------------------------------

    def code(self, node: Node) -> tuple[str, ValueType | None]:
        """An expression and its type."""
        made: tuple[str, ValueType | None] = getattr(self, f"_{node.data}")(node, *node.children)
        return made

    def of(self, node: Node, kind: ValueType | None) -> str:
        """An expression as a value of a type."""
        return self.fit(self.code(node), kind)

    def _number(self, node: Node, value: Token) -> tuple[str, ValueType | None]:
        return str(int(value)), INT

    def _text(self, node: Node, value: Token) -> tuple[str, ValueType | None]:
        return str(value), TEXT

    def _truth(self, node: Node, value: Token) -> tuple[str, ValueType | None]:
        return str(value), BOOL

    def _empty(self, node: Node, value: Token) -> tuple[str, ValueType | None]:
        return "<empty>", list_of()

    def _name(self, node: Node, name: Token) -> tuple[str, ValueType | None]:
        if name in self.local:
            return str(name), self.local[str(name)]
        if name == "none":
            return "<empty>", optional()
        if name == "nobody":
            return "-1", PID
        if name in self.names.constants:
            return f"k_{name}()", self.names.constants[name]
        return str(name), self.names.variables[name]

    def _access(self, node: Node, owner: Node, field: Token) -> tuple[str, ValueType | None]:
        text, kind = self.code(owner)
        if kind == RUN:
            return str(field), self.names.variables[field]
        if kind == PID and field == "index":
            return text, INT
        assert kind is not None
        return f"{text}.{self.field(field)}", self.names.records[kind.name][field]

    def _index(self, node: Node, owner: Node, place: Node) -> tuple[str, ValueType | None]:
        text, kind = self.code(owner)
        return f"{text}[{self.of(place, INT)}]", kind and kind.element

    def _negate(self, node: Node, sign: Token, operand: Node) -> tuple[str, ValueType | None]:
        return f"!({self.of(operand, BOOL)})", BOOL

    def _implies(self, node: Node, left: Node, sign: Token, right: Node) -> tuple[str, ValueType | None]:
        return f"(!({self.of(left, BOOL)}) || {self.of(right, BOOL)})", BOOL

    def _signed(self, node: Node, sign: Token, operand: Node) -> tuple[str, ValueType | None]:
        return f"({sign}{self.of(operand, INT)})", INT

    def _equal(self, node: Node, left: Node, right: Node, sign: str = "==") -> tuple[str, ValueType | None]:
        one, other = self.code(left), self.code(right)
        both = merge(one[1], other[1])
        return f"({self.fit(one, both)} {sign} {self.fit(other, both)})", BOOL

    def _within(self, node: Node, element: Node, owner: Node) -> tuple[str, ValueType | None]:
        text, kind = self.code(owner)
        return f"({self.of(element, kind and kind.element)} in {text})", BOOL

    def _binary(self, node: Node, left: Node, operator: Token, right: Node) -> tuple[str, ValueType | None]:
        words = {"∧": "&&", "and": "&&", "∨": "||", "or": "||", "≤": "<=", "≥": ">=", "≠": "!="}
        sign = words.get(operator, str(operator))
        if sign == "!=":
            return self._equal(node, left, right, sign)
        one, other = self.code(left), self.code(right)
        kind = merge(one[1], other[1])
        if kind is not None and kind.name == "list" and sign == "+":
            return self._joined(self.fit(one, kind), self.fit(other, kind), kind)
        if sign in ("div", "mod"):
            name = "FloorDiv" if sign == "div" else "FloorMod"
            self._library(name)
            return f"{name}({one[0]}, {other[0]})", INT
        if kind == TEXT and sign in ("<", "<=", ">", ">="):
            self._texts()
            return f"(Rank({one[0]}) {sign} Rank({other[0]}))", BOOL
        return f"({one[0]} {sign} {other[0]})", BOOL if sign in ("&&", "||", "<", "<=", ">", ">=") else kind

    def _joined(self, one: str, other: str, kind: ValueType) -> tuple[str, ValueType | None]:
        name, p = f"Join_{self._label(kind)}", self.type(kind)
        self.functions.setdefault(
            name,
            [
                f"fun {name}(one: {p}, other: {p}): {p} {{",
                "  var made: " + p + ";",
                "  var i: int;",
                "  made = one;",
                "  while (i < sizeof(other)) {",
                "    made += (sizeof(made), other[i]);",
                "    i = i + 1;",
                "  }",
                "  return made;",
                "}",
            ],
        )
        return f"{name}({one}, {other})", kind

    def _library(self, name: str) -> None:
        self.functions.setdefault(name, _letters() if name == "Letter" else _library()[name])

    def _choice(self, node: Node, condition: Node, yes: Node, no: Node) -> tuple[str, ValueType | None]:
        one, other = self.code(yes), self.code(no)
        kind = merge(one[1], other[1])
        test = self.of(condition, BOOL)
        lines = [f"if ({test}) {{", f"  return {self.fit(one, kind)};", "}", f"return {self.fit(other, kind)};"]
        return self.helper(node, kind, lambda: lines), kind

    def _list(self, node: Node, *parts: Node) -> tuple[str, ValueType | None]:
        return self._made(node, parts, list_of)

    def _set(self, node: Node, given: Node | None) -> tuple[str, ValueType | None]:
        return self._made(node, tuple(given.nodes()), set_of) if given else ("<empty>", set_of())

    def _made(self, node: Node, parts: tuple[Node, ...], of: Callable[..., ValueType]) -> tuple[str, ValueType | None]:
        codes = [self.code(part) for part in parts]
        inside: ValueType | None = None
        for _, kind in codes:
            inside = merge(inside, kind)
        whole = of(inside)
        add = [
            f"({i}, {self.fit(c, inside)})" if whole.name == "list" else f"({self.fit(c, inside)})"
            for i, c in enumerate(codes)
        ]
        lines = [f"var made: {self.type(whole)};", *(f"made += {one};" for one in add), "return made;"]
        return self.helper(node, whole, lambda: lines), whole

    def _range(self, node: Node, first: Node, last: Node) -> tuple[str, ValueType | None]:
        self._library("Numbers")
        return f"Numbers({self.of(first, INT)}, {self.of(last, INT)})", list_of(INT)

    def _call(self, node: Node, name: Token, given: Node | None) -> tuple[str, ValueType | None]:
        arguments = given.nodes() if given else []
        if name in self.names.records:
            fields = self.names.records[name]
            texts = [
                f"{self.field(f)} = {self.of(a, kind)}" for (f, kind), a in zip(fields.items(), arguments, strict=True)
            ]
            return f"({', '.join(texts)})", ValueType(str(name))
        if name in self.names.functions:
            function = self.names.functions[name]
            texts = [self.of(a, kind) for kind, a in zip(function.parameters.values(), arguments, strict=True)]
            return f"{name}({', '.join(texts)})", function.result
        codes = [self.code(argument) for argument in arguments]
        if name == "process":
            return codes[0][0], PID
        if name == "length":
            return f"sizeof({codes[0][0]})", INT
        if name in ("value", "last", "choose"):
            text, kind = codes[0]
            made = {"value": f"{text}[0]", "last": f"{text}[sizeof({text}) - 1]", "choose": f"choose({text})"}[name]
            return made, kind and kind.element
        if name in ("max", "min"):
            self._library("Max" if name == "max" else "Min")
            made = codes[0][0]
            for text, _ in codes[1:]:
                made = f"{name.capitalize()}({made}, {text})"
            return made, INT
        if name == "letter":
            self._library("Letter")
            return f"Letter({codes[0][0]})", TEXT
        if name in ("subsets", "subsets_of", "prefix", "union", "common", "without", "subset"):
            return self._collection(str(name), codes)
        raise AssertionError(name)

    def _collection(self, name: str, codes: list[tuple[str, ValueType | None]]) -> tuple[str, ValueType | None]:
        """A function of lists or sets, for their type."""
        kind = merge(codes[0][1], codes[1][1]) if len(codes) > 1 and name != "subsets_of" else codes[0][1]
        label, p, inside = self._label(kind), self.type(kind), self.type(kind and kind.element)
        texts = [self.fit(code, kind if name != "subsets_of" else code[1]) for code in codes]
        full = f"{name.capitalize()}_{label}"
        if full not in self.functions:
            lines = _library()[f"{name.capitalize()}_<L>"]
            self.functions[full] = [
                line.replace("<L>", label).replace("<T>", p).replace("<E>", inside) for line in lines
            ]
        result = {"prefix": BOOL, "subset": BOOL, "subsets": list_of(kind), "subsets_of": list_of(kind)}.get(name, kind)
        return f"{full}({', '.join(texts)})", result

    def _texts(self) -> None:
        """The order of texts, which P cannot compare: those of the program, and letters."""
        found = {str(part.token(0))[1:-1] for root in self.roots for part in root.find("text")}
        lines = ["fun Rank(x: string): int {"]
        for number, text in enumerate(sorted(found | set(LETTERS) | {""})):
            lines += [f'  if (x == "{text}") {{', f"    return {number};", "  }"]
        self.functions["Rank"] = [*lines, '  assert false, "an unknown text is compared";', "  return 0;", "}"]


@functools.cache
def _library() -> dict[str, list[str]]:
    """The functions of `library.txt`, by name."""
    text = (Path(__file__).parent / "library.txt").read_text(encoding="utf-8")
    functions = [part.split("\n") for part in text.strip().split("\n\n")[1:]]
    return {part[0].removeprefix("fun ").partition("(")[0]: part for part in functions}


def _letters() -> list[str]:
    """The text of a number, as there is no function of P for it."""
    lines = ["fun Letter(number: int): string {"]
    for number, letter in enumerate(LETTERS, 1):
        lines += [f"  if (number == {number}) {{", f'    return "{letter}";', "  }"]
    return [*lines, '  assert false, "letter of a number above 26";', '  return "";', "}"]
