"""Parse the text of a `.plait` file to a syntax tree (Saissi 2019, section 4.5.2, "Implementation").

A recursive descent: a method for each rule of the grammar, one token of lookahead. A word is a keyword only where the
grammar has this keyword; elsewhere it is a name. docs/reference/bmc.md has the grammar.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from plait.bmc.language import syntax as s
from plait.bmc.program.source import Place, Source

_TOKEN = re.compile(
    r"""
      (?P<ignored> [ \t\f\r\n]+ | //[^\n]* | /\*(?:.|\n)*?\*/ )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<number> [0-9]+ )
    | (?P<sign> ==> | == | != | <= | >= | && | \|\| | \.\. | [-+*/%<>=!?:;,.(){}\[\]] )
    | (?P<unknown> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_DECLARES = re.compile(r"(int|bool|lock)(?=[ \t\f\r\n\v]+[A-Za-z_])")
"""A word that begins a declaration. `lock(m)` is a statement."""
_KINDS, _PROPERTIES, _QUANTIFIERS = ("int", "bool", "lock"), ("always", "final", "reachable"), ("forall", "exists")
_LEVELS = {"||": 1, "&&": 2}
_LEVELS |= dict.fromkeys(("==", "!=", "<=", ">=", "<", ">"), 4) | {"+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
"""How strongly an operator binds. `!` is 3: weaker than a comparison."""
_NEGATION, _COMPARISON, _SUM = 3, 4, 5
_GROUPS = {1: "||", 2: "&&", 4: "a comparison", 5: "+ or -", 6: "*, / or %"}
"""The operators of each level, in a hint."""


class Token(NamedTuple):
    """A word, a number, a sign, an unknown character, or the end of the text."""

    kind: str
    text: str
    start: int
    end: int


def parse(text: str, name: str = "program") -> s.ProgramTree:
    """Parse a program to its syntax tree.

    >>> tree = parse("int x = 0; process p { x = x + 1; } always small: x < 2;", "counter")
    >>> tree.processes[0].body[0].place.text
    'x = x + 1;'
    """
    return _Parser(Source(name, text)).program()


def _tokens(text: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "ignored":
            yield Token(found.lastgroup or "", found[0], found.start(), found.end())
    yield Token("end", "", len(text), len(text))


class _Parser:
    """Reads the tokens of one text. Positions in the text become places of nodes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lines = [0, *(found.end() for found in re.finditer("\n", source.text))]
        self.tokens = _tokens(source.text)
        self.token = next(self.tokens)
        self.end = 0
        """The end of the last token that was taken."""
        self.wanted: set[str] = set()
        """What would fit instead of the token."""

    # -- tokens and places ---------------------------------------------------------------------------------------------

    def take(self) -> Token:
        taken = self.token
        self.end = taken.end
        if taken.kind != "end":
            self.token = next(self.tokens)
        self.wanted.clear()
        return taken

    def next_is(self, *texts: str, called: str = "") -> bool:
        """Whether the next token is one of these words or signs. If not, it is noted what would fit."""
        if self.token.text in texts and self.token.kind in ("word", "sign"):
            return True
        self.wanted.update([called] if called else texts)
        return False

    def accept(self, text: str) -> bool:
        if not self.next_is(text):
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail()

    def name(self) -> str:
        if self.token.kind != "word":
            self.wanted.add("a name")
            self.fail()
        return self.take().text

    def fail(self) -> NoReturn:
        words = sorted(self.wanted, key=lambda word: (not word.startswith("a "), word))
        hint = f"expected {', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else f"expected {''.join(words)}"
        if self.token.kind == "end":
            lines = self.source.text.splitlines() or [""]
            raise self.source.error(Place(len(lines), len(lines[-1]) + 1), "the program ends too early", hint)
        unknown = self.token.kind == "unknown"
        what = f"{self.token.text!r} {'is not part of the language' if unknown else 'does not fit'} here"
        raise self.source.error(self.place(self.token.start)._replace(text=""), what, hint)

    def place(self, start: int, end: int | None = None) -> Place:
        """The place of the text from a position to the end of the last token, or to another position."""
        line = bisect_right(self.lines, start)
        text = self.source.text[start : self.end if end is None else end]
        return Place(line, start - self.lines[line - 1] + 1, " ".join(text.split()))

    def header(self, start: int) -> Place:
        """The place of a compound statement, with its text up to the first brace."""
        return self.place(start, self.source.text.find("{", start))

    # -- declarations --------------------------------------------------------------------------------------------------

    def program(self) -> s.ProgramTree:
        constants: list[s.Constant] = []
        variables: list[s.Declaration] = []
        initial: list[s.Expression] = []
        processes: list[s.ProcessDeclaration] = []
        properties: list[s.PropertyDeclaration] = []
        counts: list[tuple[Place, s.Expression]] = []
        atomic = False
        while self.token.kind != "end":
            start = self.token.start
            if self.declares():
                variables += self.declarations()
            elif self.accept("const"):
                name = self.name()
                self.expect("=")
                value = self.ended(self.expression())
                constants.append(s.Constant(self.place(start), name, value))
            elif self.accept("processes"):
                count = self.ended(self.expression())
                counts.append((self.place(start), count))
            elif self.accept("init"):
                initial.append(self.ended(self.expression()))
            elif self.accept("atomic"):
                self.expect("statements")
                self.expect(";")
                atomic = True
            elif self.next_is(*_PROPERTIES, called="always, final or reachable"):
                kind, name = self.take().text, self.name()
                self.expect(":")
                condition = self.ended(self.expression())
                properties.append(s.PropertyDeclaration(self.place(start), kind, name, condition))
            elif self.accept("process"):
                processes.append(self.process(start))
            else:
                self.wanted.add("the end of the file")
                self.fail()
        if len(counts) > 1:
            raise self.source.error(counts[1][0], "processes is declared twice", "remove one of the declarations")
        return s.ProgramTree(
            self.source,
            self.source.name,
            tuple(constants),
            tuple(variables),
            tuple(initial),
            tuple(processes),
            tuple(properties),
            counts[0] if counts else None,
            atomic,
        )

    def ended(self, e: s.Expression) -> s.Expression:
        """The expression, after its semicolon."""
        self.expect(";")
        return e

    def declares(self) -> bool:
        """Whether a declaration begins here."""
        if _DECLARES.match(self.source.text, self.token.start) and self.token.text in _KINDS:
            return True
        self.wanted.add("int, bool or lock")
        return False

    def declarations(self) -> list[s.Declaration]:
        kind = self.take().text
        found = [self.declarator(kind)]
        while self.accept(","):
            found.append(self.declarator(kind))
        self.expect(";")
        return found

    def declarator(self, kind: str) -> s.Declaration:
        start, name = self.token.start, self.name()
        size = self.element()
        initial: tuple[s.Expression, ...] | None = None
        listed, low, high = False, None, None
        if self.accept("="):
            if listed := self.accept("{"):
                values = [self.expression()]
                while self.accept(","):
                    values.append(self.expression())
                self.expect("}")
                initial = tuple(values)
            else:
                initial = (self.expression(),)
        elif self.next_is("in"):
            low, high = self.range()
        return s.Declaration(self.place(start), kind, name, size, initial, listed, low, high)

    def range(self) -> tuple[s.Expression, s.Expression]:
        self.expect("in")
        low = self.operation(_SUM)
        self.expect("..")
        return low, self.operation(_SUM)

    def process(self, start: int) -> s.ProcessDeclaration:
        name, variable, low, high = self.name(), None, None, None
        if self.accept("["):
            variable = self.name()
            low, high = self.range()
            self.expect("]")
        parameters: list[s.Parameter] = []
        if self.accept("(") and not self.accept(")"):
            parameters.append(self.parameter())
            while self.accept(","):
                parameters.append(self.parameter())
            self.expect(")")
        self.expect("{")
        own: list[s.Declaration] = []
        while self.declares():
            own += self.declarations()
        body = self.statements()
        return s.ProcessDeclaration(
            self.header(start), name, variable, low, high, tuple(parameters), tuple(own), body
        )  # fmt: skip

    def parameter(self) -> s.Parameter:
        start = self.token.start
        if not self.declares():
            self.fail()
        self.take()
        name = self.name()
        self.expect("=")
        value = self.expression()
        return s.Parameter(self.place(start), name, value)

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self) -> tuple[s.Statement, ...]:
        self.expect("{")
        return self.statements()

    def statements(self) -> tuple[s.Statement, ...]:
        """The statements up to a closing brace."""
        found = []
        while not self.accept("}"):
            found.append(self.statement())
        return tuple(found)

    def statement(self) -> s.Statement:
        start = self.token.start
        if self.accept("havoc"):
            target = self.reference()
            low, high = self.range() if self.next_is("in") else (None, None)
            self.expect(";")
            return s.Havoc(self.place(start), target, low, high)
        if self.next_is("assume", "assert"):
            node = s.Assume if self.take().text == "assume" else s.Assert
            condition = self.condition()
            self.expect(";")
            return node(self.place(start), condition)
        if self.next_is("lock", "unlock"):
            taken = self.take().text == "lock"
            self.expect("(")
            target = self.reference()
            self.expect(")")
            self.expect(";")
            return s.Locking(self.place(start), target, taken)
        if self.accept("skip"):
            self.expect(";")
            return s.Skip(self.place(start))
        if self.accept("if"):
            return self.if_(start)
        if self.accept("while"):
            condition = self.condition()
            body = self.block()
            return s.While(self.header(start), condition, body)
        if self.accept("choose"):
            branches = [self.block()]
            self.expect("or")
            branches.append(self.block())
            while self.accept("or"):
                branches.append(self.block())
            return s.Choose(self.header(start), tuple(branches))
        if self.accept("atomic"):
            body = self.block()
            return s.Atomic(self.place(start), body)
        target = self.reference()
        self.expect("=")
        value = self.ended(self.expression())
        return s.Assign(self.place(start), target, value)

    def condition(self) -> s.Expression:
        self.expect("(")
        e = self.expression()
        self.expect(")")
        return e

    def if_(self, start: int) -> s.If:
        condition, then = self.condition(), self.block()
        place = self.header(start)
        place = place._replace(text=place.text.removeprefix("else "))
        again = self.token.start
        if not self.accept("else"):
            return s.If(place, condition, then, ())
        if self.accept("if"):
            return s.If(place, condition, then, (self.if_(again),))
        return s.If(place, condition, then, self.block())

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self) -> s.Expression:
        start = self.token.start
        if self.next_is(*_QUANTIFIERS, called="forall or exists"):
            universal, variable = self.take().text == "forall", self.name()
            low, high = self.range()
            self.expect(":")
            body = self.expression()
            return s.Quantified(self.place(start), universal, variable, low, high, body)
        condition = self.implication()
        if not self.accept("?"):
            return condition
        then = self.expression()
        self.expect(":")
        otherwise = self.expression()
        return s.Conditional(self.place(start), condition, then, otherwise)

    def implication(self) -> s.Expression:
        start = self.token.start
        left = self.operation(1)
        if not self.accept("==>"):
            return left
        right = self.implication()
        place = self.place(start)
        return s.Binary(place, "||", s.Unary(place, "!", left), right)

    def operation(self, weakest: int) -> s.Expression:
        """An expression with operators that bind at least this strongly."""
        start, strongest = self.token.start, 6
        left: s.Expression
        if weakest <= _NEGATION and self.accept("!"):
            operand = self.operation(_NEGATION)
            left, strongest = s.Unary(self.place(start), "!", operand), _NEGATION
        else:
            left = self.unary()
        while weakest <= (level := self.level()) <= strongest:
            operator = self.take().text
            right = self.operation(level + 1)
            left = s.Binary(self.place(start), operator, left, right)
            # a < b < c is refused.
            strongest = _NEGATION if level == _COMPARISON else level
        self.wanted |= {word for level, word in _GROUPS.items() if weakest <= level <= strongest}
        return left

    def level(self) -> int:
        """How strongly the next token binds, if it is an operator, else 0."""
        return _LEVELS.get(self.token.text, 0) if self.token.kind == "sign" else 0

    def unary(self) -> s.Expression:
        start = self.token.start
        if self.accept("-"):
            operand = self.unary()
            return s.Unary(self.place(start), "-", operand)
        if self.accept("("):
            e = self.expression()
            self.expect(")")
            return e
        if self.token.kind == "number":
            value = int(self.take().text)
            return s.Number(self.place(start), value)
        if self.next_is("true", "false"):
            truth = self.take().text == "true"
            return s.Truth(self.place(start), truth)
        if self.accept("done"):
            return self.done(start)
        self.wanted.add("a number")
        return self.reference()

    def done(self, start: int) -> s.Done:
        if not self.accept("("):
            return s.Done(self.place(start))
        name, index = self.name(), self.element()
        self.expect(")")
        return s.Done(self.place(start), name, index)

    def reference(self) -> s.Name:
        start, name = self.token.start, self.name()
        index = self.element()
        if not self.accept("."):
            return s.Name(self.place(start), name, index)
        owner, owner_index = name, index
        name, index = self.name(), self.element()
        return s.Name(self.place(start), name, index, owner, owner_index)

    def element(self) -> s.Expression | None:
        if not self.accept("["):
            return None
        index = self.expression()
        self.expect("]")
        return index
