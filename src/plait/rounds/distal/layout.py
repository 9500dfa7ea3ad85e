"""The layout of a Distal text: `plait rounds format` changes spaces, line ends, and semicolons at the ends of statements.

The text is read line by line, so comments and the order of lines stay. The result has the same syntax tree.
"""

from __future__ import annotations

import dataclasses
import itertools
import re

from plait.kernel.extras import needs
from plait.rounds.distal.parser import Node, Text, parse

with needs("rounds"):
    from lark import Token

STEP = 2
"""Blanks per block."""
FAR = 60
"""Trailing comments of lines up to this length have one column."""
_TOKEN = re.compile(r'"[^"\n]*"|[^\W\d]\w*|\d+|\.\.|==|!=|<=|>=|&&|\|\||[^\s\w]')
_COMMENT = re.compile(r'("[^"\n]*")|//[^\n]*|[►▶][^\n]*')
_WORDS = {
    "if",
    "then",
    "else",
    "do",
    "with",
    "times",
    "exactly",
    "in",
    "by",
    "give",
    "for",
    "and",
    "or",
    "not",
    "implies",
}
_WORDS |= {"div", "mod", "to", "upon", "until", "type", "parameter", "constant", "require", "spawns", "function"}
_BINARY = {"=", "==", "!=", "≠", "<", "≤", "<=", ">", "≥", ">=", "+", "-", "*", "∧", "∨", "&&", "||", "⇒", "∈", ".."}
_OPEN, _CLOSE = {"(", "[", "{"}, {")", "]", "}"}
_NO_SEMICOLON = re.compile(r"(do|then|else|:|\{|,)$|^(init|loop)$|^type\b.*\}$")


@dataclasses.dataclass
class _Line:
    """A line of the text: its code, its comment, and how it is indented."""

    code: str
    comment: str
    level: int = 0
    """How many blocks are around it."""
    within: bool = False
    """Whether it continues a line within parentheses."""


def formatted(source: str, file: str) -> str:
    """The text in its layout."""
    before = parse(Text(source, file))
    lines = _lines(source)
    _indent(lines)
    for line in lines:
        line.code = _spaced(line.code)
    _end(lines)
    _align_types(lines)
    made = _joined(lines)
    if _shape(parse(Text(made, file))) != _shape(before):
        raise AssertionError(f"formatting would change the meaning of {file}")
    return made


def _shape(node: Node | Token | None) -> object:
    """A tree without its places."""
    if isinstance(node, Node):
        return (node.data, *(_shape(part) for part in node.children))
    return None if node is None else str(node)


def _lines(source: str) -> list[_Line]:
    found = []
    for text in source.splitlines():
        comment = next((m.group() for m in _COMMENT.finditer(text) if m.group(1) is None), "")
        code = text[: len(text) - len(comment)] if comment else text
        found.append(_Line(code.rstrip(), re.sub(r"^[►▶]\s*", "► ", comment.strip())))
    return found


def _indent(lines: list[_Line]) -> None:
    """Find the block of each line. A comment belongs to the block of the next line of code."""
    blocks, depth = [0], 0
    for line in lines:
        if not line.code.strip():
            line.level = -1
            continue
        if depth:
            line.within, line.level = True, len(blocks) - 1
        else:
            width = len(line.code.expandtabs(4)) - len(line.code.expandtabs(4).lstrip())
            while width < blocks[-1]:
                blocks.pop()
            if width > blocks[-1]:
                blocks.append(width)
            line.level = len(blocks) - 1
        tokens = _TOKEN.findall(line.code)
        depth += sum(token in _OPEN for token in tokens) - sum(token in _CLOSE for token in tokens)
    level = 0
    for line in reversed(lines):
        level = line.level = line.level if line.level >= 0 else level


def _spaced(code: str) -> str:
    """The tokens of a line with the usual spaces."""
    made, before, sign = "", "", False
    braces: list[bool] = []
    for token in _TOKEN.findall(code):
        if token == "{":
            braces.append(before in ("struct", "record"))
        made += " " if made and _blank_between(before, token, sign, bool(braces and braces[-1])) else ""
        sign = token in ("¬", "!") or (token == "-" and (before in _BINARY | _OPEN | _WORDS | {"", ",", ";"}))
        if token == "}" and braces:
            braces.pop()
        made, before = made + token, token
    return made


def _blank_between(before: str, token: str, sign: bool, fields: bool) -> bool:
    """Whether there is a blank between two tokens. `sign`: the first is a sign, `fields`: in the braces of a struct."""
    if before == "{" or token == "}":
        return fields and not (before == "{" and token == "}")
    if sign or before in ("(", "[", ".", "/") or token in (")", "]", ".", "/", ",", ";", ":", "?"):
        return False
    if token in _BINARY or before in _BINARY:
        return True
    if token in ("(", "["):
        return not (re.fullmatch(r"\w+", before) or before in (")", "]")) or before in _WORDS or before.isdigit()
    return True


def _end(lines: list[_Line]) -> None:
    """Statements and declarations end with a semicolon."""
    depth = 0
    for line in lines:
        tokens = _TOKEN.findall(line.code)
        depth += sum(token in _OPEN for token in tokens) - sum(token in _CLOSE for token in tokens)
        if not line.code or depth or line.code.endswith(";") or _NO_SEMICOLON.search(line.code):
            continue
        line.code += ";"


def _align_types(lines: list[_Line]) -> None:
    """Message types that follow each other have their = in one column."""
    for is_type, group in itertools.groupby(lines, key=lambda line: bool(re.match(r"type \w+ = struct", line.code))):
        if is_type:
            block = list(group)
            width = max(line.code.index(" =") for line in block)
            for line in block:
                head, _, rest = line.code.partition(" =")
                line.code = f"{head.ljust(width)} ={rest}"


def _joined(lines: list[_Line]) -> str:
    """The lines with their indentation; comments at the ends of lines have one column; no two empty lines in a row."""
    texts = []
    for line in lines:
        closes = line.code[:1] in _CLOSE and bool(line.code)
        texts.append(" " * (STEP * (line.level + (line.within and not closes))) + line.code)
    commented = [len(text) for text, line in zip(texts, lines, strict=True) if line.code and line.comment]
    column = max((length for length in commented if length <= FAR), default=0) + 2
    made: list[str] = []
    for text, line in zip(texts, lines, strict=True):
        if line.comment:
            text = text.ljust(column) + line.comment if line.code else text + line.comment
            if line.code and len(text) - len(line.comment) > column:
                text = f"{text[: -len(line.comment)]}  {line.comment}"
        text = text.rstrip()
        if text or (made and made[-1]):
            made.append(text)
    return "\n".join(made).rstrip("\n") + "\n"
