"""Parse the text of a `.plait` file to a syntax tree (Saissi 2019, section 4.5.2, "Implementation")."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from plait.bmc.language import syntax as s
from plait.bmc.program.source import Place, Source
from plait.kernel.errors import PlaitError
from plait.kernel.extras import needs

with needs("bmc"):
    from lark import Lark, Token, Transformer, v_args
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError

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

_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "KIND": "int, bool or lock",
    "COMPARE": "a comparison",
    "ADD": "+ or -",
    "MULTIPLY": "*, / or %",
    "AND": "&&",
    "OR": "||",
    "PROPERTY": "always, final or reachable",
    "QUANTIFIER": "forall or exists",
    "$END": "the end of the file",
}


@cache
def _parser() -> Lark:
    """The parser. Its tables take most of the start-up, so they are kept in the user's cache, with a hash of the grammar."""
    tables: str | bool = False
    with suppress(OSError, RuntimeError):  # a home that does not exist or that cannot be written: no cache
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plait"
        folder.mkdir(parents=True, exist_ok=True)
        tables = str(folder / "language.tables")
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True, cache=tables)


def parse(text: str, name: str = "program") -> s.ProgramTree:
    """Parse a program to its syntax tree.

    >>> tree = parse("int x = 0; process p { x = x + 1; } always small: x < 2;", "counter")
    >>> tree.processes[0].body[0].place.text
    'x = x + 1;'
    """
    source = Source(name, text)
    try:
        tree = _parser().parse(text)
        return _Builder(source).transform(tree)  # type: ignore[no-any-return]
    except UnexpectedInput as error:
        raise _syntax_error(source, error) from None
    except VisitError as error:
        if isinstance(error.orig_exc, PlaitError | RecursionError):
            raise error.orig_exc from None
        raise


def _syntax_error(source: Source, error: UnexpectedInput) -> PlaitError:
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
    words = sorted({_word(name) for name in expected}, key=lambda w: (not w.startswith("a "), w))
    hint = f"expected {', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else f"expected {''.join(words)}"
    ended = isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END")
    if ended:
        lines = source.text.splitlines() or [""]
        return source.error(Place(len(lines), len(lines[-1]) + 1), "the program ends too early", hint)
    if isinstance(error, UnexpectedCharacters):
        what = f"{source.text[error.pos_in_stream or 0]!r} is not part of the language here"
    else:
        what = f"{str(getattr(error, 'token', ''))!r} does not fit here"
    return source.error(Place(error.line, error.column), what, hint)


def _word(name: str) -> str:
    if name in _WORDS:
        return _WORDS[name]
    found = next((t for t in _parser().terminals if t.name == name), None)
    return str(found.pattern.value) if found is not None else name.lower()


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    """Turns the parse tree into nodes of the syntax tree, from the leaves up."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def _at(self, meta: Any, *, end: int | None = None) -> Place:
        text = self.source.text[meta.start_pos : meta.end_pos if end is None else end]
        return Place(meta.line, meta.column, " ".join(text.split()))

    def _header(self, meta: Any) -> Place:
        """The place of a compound statement, with its text up to the first brace."""
        brace = self.source.text.find("{", meta.start_pos)
        return self._at(meta, end=brace)

    def start(self, meta: Any, items: list[Any]) -> s.ProgramTree:
        flat = [i for item in items for i in (item if isinstance(item, list) else [item])]

        def those(kind: type) -> tuple[Any, ...]:
            return tuple(i for i in flat if isinstance(i, kind))

        counts = [i[1:] for i in flat if isinstance(i, tuple) and i[0] == "count"]
        if len(counts) > 1:
            raise self.source.error(counts[1][0], "processes is declared twice", "remove one of the declarations")
        return s.ProgramTree(
            self.source,
            self.source.name,
            those(s.Constant),
            those(s.Declaration),
            tuple(i[1] for i in flat if isinstance(i, tuple) and i[0] == "init"),
            those(s.ProcessDeclaration),
            those(s.PropertyDeclaration),
            counts[0] if counts else None,
            ("atomic statements",) in flat,
        )

    def constant(self, meta: Any, c: list[Any]) -> s.Constant:
        return s.Constant(self._at(meta), str(c[0]), c[1])

    def declaration(self, meta: Any, c: list[Any]) -> list[s.Declaration]:
        kind = str(c[0])
        return [s.Declaration(place, kind, *rest) for place, *rest in c[1:]]

    local = declaration

    def declarator(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        size = initial = low = high = None
        listed = False
        for part in c[1:]:
            match part:
                case ("size", e):
                    size = e
                case ("initial", values, listed):
                    initial = values
                case ("range", low, high):
                    pass
        return (self._at(meta), str(c[0]), size, initial, listed, low, high)

    def size(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("size", c[0])

    def initializer(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("initial", tuple(c), False)

    def listed(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("initial", tuple(c), True)

    def range(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("range", c[0], c[1])

    def count(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("count", self._at(meta), c[0])

    def initial(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("init", c[0])

    def atomic_statements(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("atomic statements",)

    def property(self, meta: Any, c: list[Any]) -> s.PropertyDeclaration:
        return s.PropertyDeclaration(self._at(meta), str(c[0]), str(c[1]), c[2])

    def instances(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("instances", str(c[0]), c[1], c[2])

    def parameters(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("parameters", tuple(p for p in c if p is not None))

    def parameter(self, meta: Any, c: list[Any]) -> s.Parameter:
        return s.Parameter(self._at(meta), str(c[1]), c[2])

    def process(self, meta: Any, c: list[Any]) -> s.ProcessDeclaration:
        variable = low = high = None
        parameters: tuple[s.Parameter, ...] = ()
        locals_: list[s.Declaration] = []
        body = []
        for part in c[1:]:
            match part:
                case ("instances", variable, low, high):
                    pass
                case ("parameters", parameters):
                    pass
                case list():
                    locals_ += part
                case _:
                    body.append(part)
        place = self._header(meta)
        return s.ProcessDeclaration(place, str(c[0]), variable, low, high, parameters, tuple(locals_), tuple(body))

    def block(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return tuple(c)

    def assign(self, meta: Any, c: list[Any]) -> s.Assign:
        return s.Assign(self._at(meta), c[0], c[1])

    def havoc(self, meta: Any, c: list[Any]) -> s.Havoc:
        return s.Havoc(self._at(meta), c[0], *(c[1][1:] if len(c) > 1 else ()))

    def assume(self, meta: Any, c: list[Any]) -> s.Assume:
        return s.Assume(self._at(meta), c[0])

    def assertion(self, meta: Any, c: list[Any]) -> s.Assert:
        return s.Assert(self._at(meta), c[0])

    def lock(self, meta: Any, c: list[Any]) -> s.Locking:
        return s.Locking(self._at(meta), c[0], True)

    def unlock(self, meta: Any, c: list[Any]) -> s.Locking:
        return s.Locking(self._at(meta), c[0], False)

    def skip(self, meta: Any, c: list[Any]) -> s.Skip:
        return s.Skip(self._at(meta))

    def if_(self, meta: Any, c: list[Any]) -> s.If:
        return s.If(self._header(meta), c[0], c[1], c[2] if len(c) > 2 else ())

    def alternative(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return tuple(c[0])

    def else_if(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        place = self._header(meta)
        place = place._replace(text=place.text.removeprefix("else "))
        return (s.If(place, c[0], c[1], c[2] if len(c) > 2 else ()),)

    def while_(self, meta: Any, c: list[Any]) -> s.While:
        return s.While(self._header(meta), c[0], c[1])

    def choose(self, meta: Any, c: list[Any]) -> s.Choose:
        return s.Choose(self._header(meta), tuple(c))

    def atomic(self, meta: Any, c: list[Any]) -> s.Atomic:
        return s.Atomic(self._at(meta), c[0])

    def quantified(self, meta: Any, c: list[Any]) -> s.Quantified:
        return s.Quantified(self._at(meta), c[0] == "forall", str(c[1]), c[2], c[3], c[4])

    def choice(self, meta: Any, c: list[Any]) -> s.Conditional:
        return s.Conditional(self._at(meta), c[0], c[1], c[2])

    def implies(self, meta: Any, c: list[Any]) -> s.Binary:
        place = self._at(meta)
        return s.Binary(place, "||", s.Unary(place, "!", c[0]), c[1])

    def binary(self, meta: Any, c: list[Any]) -> s.Binary:
        return s.Binary(self._at(meta), str(c[1]), c[0], c[2])

    def not_(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary(self._at(meta), "!", c[0])

    def negative(self, meta: Any, c: list[Any]) -> s.Unary:
        return s.Unary(self._at(meta), "-", c[0])

    def number(self, meta: Any, c: list[Any]) -> s.Number:
        return s.Number(self._at(meta), int(c[0]))

    def true(self, meta: Any, c: list[Any]) -> s.Truth:
        return s.Truth(self._at(meta), True)

    def false(self, meta: Any, c: list[Any]) -> s.Truth:
        return s.Truth(self._at(meta), False)

    def done(self, meta: Any, c: list[Any]) -> s.Done:
        named = [p for p in c if p is not None]
        if not named:
            return s.Done(self._at(meta))
        return s.Done(self._at(meta), str(named[0]), named[1][1] if len(named) > 1 else None)

    def element(self, meta: Any, c: list[Any]) -> tuple[Any, ...]:
        return ("element", c[0])

    def reference(self, meta: Any, c: list[Any]) -> s.Name:
        names: list[tuple[str, Any]] = []
        for part in c:
            if isinstance(part, Token):
                names.append((str(part), None))
            elif part is not None:
                names[-1] = (names[-1][0], part[1])
        name, index = names[-1]
        if len(names) == 1:
            return s.Name(self._at(meta), name, index)
        owner, owner_index = names[0]
        return s.Name(self._at(meta), name, index, owner, owner_index)
