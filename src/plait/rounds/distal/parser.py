"""Distal text to a syntax tree, with errors that name file, line, column and what was expected.

The grammar is `distal.lark`. Blocks are indented. Comments (`// …`) and the paper's round markers (`► Ack`) are replaced by
blanks first, so that columns stay the same.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from plait.kernel.errors import ModelError
from plait.kernel.extras import needs

with needs("rounds"):
    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken
    from lark.indenter import DedentError, Indenter

HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A node of the syntax tree: its kind, its parts, and its place."""

    data: str
    children: tuple[Node | Token | None, ...]
    line: int = 1
    column: int = 1
    start: int = 0
    end: int = 0

    def node(self, index: int) -> Node:
        """A part that is a node."""
        part = self.children[index]
        assert isinstance(part, Node)
        return part

    def token(self, index: int) -> Token:
        """A part that is a word."""
        part = self.children[index]
        assert isinstance(part, Token)
        return part

    def nodes(self, start: int = 0) -> list[Node]:
        """The parts that are nodes, from this one on."""
        return [part for part in self.children[start:] if isinstance(part, Node)]

    def find(self, *kinds: str) -> Iterator[Node]:
        """The nodes of these kinds in this one, in the order of the text."""
        if self.data in kinds:
            yield self
        for part in self.nodes():
            yield from part.find(*kinds)


class _Layout(Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar[list[str]] = ["LPAR", "LSQB", "LBRACE"]
    CLOSE_PAREN_types: ClassVar[list[str]] = ["RPAR", "RSQB", "RBRACE"]
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 4


class Text:
    """A Distal text with its file, for errors."""

    def __init__(self, source: str, file: str) -> None:
        self.source, self.file = source, file

    def error(self, place: Node | Token, message: str, hint: str | None = None) -> ModelError:
        """An error at a place in the text."""
        return self.error_at(place.line, place.column, message, hint)

    def error_at(self, line: int | None, column: int | None, message: str, hint: str | None = None) -> ModelError:
        """An error at a line and a column."""
        lines = self.source.splitlines()
        if line is None or line < 1:  # the end of the text
            line, column = max(len(lines), 1), len(lines[-1]) + 1 if lines else 1
        shown = f"\n  {lines[line - 1]}\n  {' ' * ((column or 1) - 1)}^" if line <= len(lines) else ""
        return ModelError(f"{self.file}, line {line}, column {column}: {message}{shown}", hint=hint)

    def of(self, node: Node) -> str:
        """The text of a node, in one line."""
        return " ".join(_blank(self.source)[node.start : node.end].split())


def parse(text: Text, *, start: str = "start") -> Node:
    """The syntax tree of a Distal text."""
    try:
        return _node(_lark(start).parse(_blank(text.source) + "\n"))
    except UnexpectedToken as error:
        found = "the end of the text" if error.token.type == "$END" else _found(error.token)
        line, column = error.token.line, error.token.column
        if error.token.type == "_INDENT":
            line, column = error.token.end_line, error.token.end_column
        raise text.error_at(
            line if error.token.type != "$END" else None,
            column,
            f"expected {_spell(error.accepts or error.expected)}, not {found}",
            hint="docs/reference/distal.md has the grammar; blocks are indented, as in Python",
        ) from None
    except UnexpectedCharacters as error:
        raise text.error_at(
            error.line,
            error.column,
            f"{text.source.splitlines()[error.line - 1][error.column - 1]!r} does not belong here: "
            f"expected {_spell(error.allowed or set())}",
            hint="docs/reference/distal.md has the grammar",
        ) from None
    except DedentError:
        raise text.error_at(
            *_uneven(text.source),
            "the indentation of this line matches no block around it",
            hint="align it with its block",
        ) from None
    except UnexpectedEOF as error:
        raise text.error_at(
            None, None, f"expected {_spell({str(name) for name in error.expected})}, not the end of the text"
        ) from None


def _node(tree: Tree[Token]) -> Node:
    meta = tree.meta
    parts = tuple(_node(part) if isinstance(part, Tree) else part for part in tree.children)
    if meta.empty:
        return Node(str(tree.data), parts)
    return Node(str(tree.data), parts, meta.line, meta.column, meta.start_pos, meta.end_pos)


@functools.cache
def _lark(start: str) -> Lark:
    grammar = (HERE / "distal.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", postlex=_Layout(), propagate_positions=True, maybe_placeholders=True, start=start
    )


def _blank(source: str) -> str:
    """The text with comments and round markers replaced by blanks."""
    return re.sub(r'("[^"\n]*")|//[^\n]*|[►▶][\t ]*\w*', lambda m: m.group(1) or " " * len(m.group()), source)


def _uneven(source: str) -> tuple[int, int]:
    """The first line that is indented less than the line before, and matches no block around it."""
    open_blocks = [0]
    for number, line in enumerate(_blank(source).splitlines(), 1):
        if not line.strip():
            continue
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if indent > open_blocks[-1]:
            open_blocks.append(indent)
        while indent < open_blocks[-1]:
            open_blocks.pop()
        if indent != open_blocks[-1]:
            return number, len(line) - len(line.lstrip()) + 1
    return 1, 1


_WORDS = {
    "_NL": "the end of the line",
    "_INDENT": "an indented block",
    "_DEDENT": "the end of the block",
    "_SEMICOLON": "';'",
    "NAME": "a name",
    "NUMBER": "a number",
    "TEXT": "a text in quotes",
    "EMPTY": "ε",
    "TRUTH": "true or false",
    "OR": "or",
    "AND": "and",
    "NOT": "not",
    "COMPARE": "a comparison",
    "EQUAL": "'='",
    "SUM": "'+' or '-'",
    "PRODUCT": "'*' or '/'",
    "KIND": "always or reachable",
    "QUANTIFIER": "forall or exists",
    "ORDER": "greatest or least",
    "PHASE": "phase",
    "$END": "the end of the text",
    "__ANON_0": "'=='",
    "__ANON_1": "in",
    "IMPLIES": "implies",
    "ROUND": "round",
    "EXACTLY": "exactly",
    "START": "start or stop",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "COLON": "':'",
    "DOT": "'.'",
}
_EXPRESSION = {"NUMBER", "TEXT", "TRUTH", "EMPTY", "LSQB", "NAME", "LPAR"}
_OPERATORS = {"OR", "AND", "IMPLIES", "IN", "__ANON_1", "LSQB", "COMPARE", "EQUAL", "__ANON_0", "SUM", "PRODUCT", "DOT"}


def _spell(expected: set[str]) -> str:
    """What was expected, in words."""
    rest, words = set(expected), []
    if rest >= _EXPRESSION:
        rest -= _EXPRESSION | {"NOT", "ORDER", "IF", "QUANTIFIER", "LBRACE", "COUNT", "MBOX"}
        rest -= set() if "COMPARE" in rest else {"SUM"}
        words.append("an expression")
    if len(rest & _OPERATORS) > 3:
        rest -= _OPERATORS
        words.append("an operator")
    words += sorted(_WORDS.get(name, name.lower()) for name in rest)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" or {words[-1]}" if words else "something else"


def _found(token: Token) -> str:
    return _WORDS[token.type] if token.type in ("_NL", "_INDENT", "_DEDENT") else repr(str(token))
