"""The words of a P text, each with its line and column, and errors at a place of the text."""

from __future__ import annotations

import re
from typing import NamedTuple

from plait.kernel.errors import ModelError


class Place(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


class Word(NamedTuple):
    """A word: its kind (name, keyword, number, text, sign or end), its text and its place."""

    kind: str
    text: str
    place: Place


KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    any bool enum event eventset float int machine interface map set string seq data announce as
    assert assume break case cold continue default defer do else entry exit foreach format fun goto
    halt hot if ignore in keys new observes on print raise receive return scenario send sizeof spec
    start state this type values var param while with choose module implementation test refines
    compose union hidee hidei rename main receives sends creates to true false null
    """,
    )
)
_WORD = re.compile(
    r"""(?P<blank>[ \t\r\f\n]+|//[^\n]*|/\*(?s:.*?)\*/)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9]+)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<sign>\$\$|<==>|==>|&&|\|\||==|!=|<=|>=|->|\+=|-=|[$!<>=+\-*/%{}\[\]();,.:])""",
    re.VERBOSE,
)


class Text:
    """A P text with its file, for errors."""

    def __init__(self, source: str, file: str) -> None:
        self.source, self.file = source, file
        self.lines = source.split("\n")

    def error(self, place: Place, message: str, hint: str | None = None) -> ModelError:
        """An error at a place of the text."""
        line, column = place
        shown = self.lines[line - 1].rstrip("\r").replace("\t", " ") if line <= len(self.lines) else ""
        return ModelError(
            f"{self.file}, line {line}, column {column}: {message}\n  {shown}\n  {' ' * (column - 1)}^", hint=hint
        )

    def where(self, place: Place) -> str:
        """A place as text, for errors at run time."""
        return f"{self.file}, line {place.line}, column {place.column}"

    def words(self) -> list[Word]:
        """The words of the text, and the end.

        >>> [word.text for word in Text("send this, eUp; // up", "light.p").words()]
        ['send', 'this', ',', 'eUp', ';', '']
        """
        found, at, line, start = [], 0, 1, 0
        while at < len(self.source):
            match = _WORD.match(self.source, at)
            place = Place(line, at - start + 1)
            if match is None:
                rest = self.source[at:]
                if rest.startswith("/*"):
                    raise self.error(place, "this comment does not end", "end it with */")
                if rest.startswith('"'):
                    raise self.error(place, "this string does not end", 'end it with "')
                raise self.error(place, f"{rest[0]!r} is no character of P", "remove it")
            text, kind = match.group(), str(match.lastgroup)
            if kind == "name" and text in KEYWORDS:
                kind = "keyword"
            if kind != "blank":
                found.append(Word(kind, text, place))
            if newlines := text.count("\n"):
                line += newlines
                start = at + text.rindex("\n") + 1
            at = match.end()
        found.append(Word("end", "", Place(line, at - start + 1)))
        return found
