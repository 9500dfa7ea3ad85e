"""The pages of the repository, and the fenced blocks in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
"""The clone."""

FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?(?: hl_lines="[^"]+")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
"""A block: its language, the file that its title names, and its text."""

_FILE = re.compile(r"<!-- file: (\S+) -->\n\Z")


class Block(NamedTuple):
    """A fenced block of a page; `file` is the name of the file it shows, if it says so."""

    language: str
    text: str
    line: int
    file: str | None


def blocks(page: Path, language: str) -> list[Block]:
    """The blocks of a page that are in this language, in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        if match[1] == language:
            name = _FILE.search(text[: match.start()])
            line = text[: match.start(3)].count("\n") + 1
            found.append(Block(match[1], match[3], line, name[1] if name else match[2]))
    return found
