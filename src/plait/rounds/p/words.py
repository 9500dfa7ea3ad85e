"""A stream of the words of a P text, from which the parsers read, and the refusals of constructs that are not supported."""

from __future__ import annotations

import ast
from typing import NoReturn

from plait.rounds.p.lexer import Place, Text, Word
from plait.rounds.p.syntax import Name, TypeName

SUPPORTED = "docs/reference/p.md has what is supported"


class Words:
    """The words of a text, read from left to right."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._words = text.words()
        self._at = 0

    @property
    def next(self) -> Word:
        """The next word."""
        return self._words[self._at]

    def ahead(self, count: int = 1) -> Word:
        """A word after the next one."""
        return self._words[min(self._at + count, len(self._words) - 1)]

    @property
    def place(self) -> Place:
        return self.next.place

    def sees(self, *texts: str) -> bool:
        """Whether the next word is one of these keywords or signs."""
        return self.next.kind in ("keyword", "sign") and self.next.text in texts

    def take(self) -> Word:
        """Read the next word."""
        word = self.next
        self._at += 1
        return word

    def skip(self, *texts: str) -> bool:
        """Read the next word if it is one of these."""
        if self.sees(*texts):
            self.take()
            return True
        return False

    def expect(self, *texts: str) -> Word:
        """Read the next word, which must be one of these."""
        if not self.sees(*texts):
            self.wrong(" or ".join(f"'{text}'" for text in texts))
        return self.take()

    def name(self, what: str) -> Name:
        """Read a name."""
        if self.next.kind != "name":
            self.wrong(what)
        word = self.take()
        return Name(word.place, word.text)

    def number(self, what: str) -> int:
        if self.next.kind != "number":
            self.wrong(what)
        return int(self.take().text)

    def string(self) -> str:
        """Read a string."""
        if self.next.kind != "text":
            self.wrong("a string")
        word = self.take()
        try:
            return str(ast.literal_eval(f'"""{word.text[1:-1]}"""' if "\n" in word.text else word.text))
        except (SyntaxError, ValueError):
            raise self.text.error(word.place, "this string has an escape that is not known", "write \\\\") from None

    def names(self, what: str) -> tuple[Name, ...]:
        """Names, separated by commas."""
        found = [self.name(what)]
        while self.skip(","):
            found.append(self.name(what))
        return tuple(found)

    def wrong(self, expected: str) -> NoReturn:
        """Refuse the next word. It raises; `raise` before a call says so to readers."""
        found = "the end of the text" if self.next.kind == "end" else f"'{self.next.text}'"
        raise self.text.error(self.place, f"expected {expected}, not {found}", SUPPORTED)

    def refuse(self, what: str, hint: str = SUPPORTED, place: Place | None = None) -> NoReturn:
        """Refuse a construct of P by its name."""
        raise self.text.error(place or self.place, f"{what} is not supported", hint)

    # -- types -------------------------------------------------------------------------------------------------------------

    def type(self) -> TypeName:
        """A type."""
        place = self.place
        if self.next.kind == "name":
            return TypeName(place, self.take().text)
        if self.skip("("):
            if self.next.kind == "name" and self.ahead().text == ":":
                fields, types = [], []
                while True:
                    fields.append(self.name("the name of a field").name)
                    self.expect(":")
                    types.append(self.type())
                    if not self.skip(",") or self.sees(")"):
                        break
                self.expect(")")
                return TypeName(place, "record", tuple(types), tuple(fields))
            types = [self.type()]
            while self.skip(",") and not self.sees(")"):
                types.append(self.type())
            self.expect(")")
            return TypeName(place, "tuple", tuple(types))
        if self.sees("seq", "set", "map"):
            name = self.take().text
            self.expect("[")
            types = [self.type()]
            if name == "map":
                self.expect(",")
                types.append(self.type())
            self.expect("]")
            return TypeName(place, name, tuple(types))
        if self.sees("float"):
            self.refuse("the type float", "use int")
        if self.sees("int", "bool", "string", "event", "machine", "any", "data"):
            return TypeName(place, self.take().text)
        raise self.wrong("a type")
