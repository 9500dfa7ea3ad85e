"""The C programs of this folder, and what their first lines say about them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.[ci]"))
SILENT = {"races", "leaks"}
"""Properties that are not a part of what a program expects, unless it says so."""


def said(path: Path, word: str) -> str | None:
    found = re.search(rf"^// {word}: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found and found[1].strip()


def options(path: Path) -> dict[str, Any]:
    given = dict(option.split("=") for option in (said(path, "options") or "").split())
    return {name: value == "true" if value in ("true", "false") else int(value) for name, value in given.items()}
