"""Places in the user's source. If a text was translated to Python, errors name the lines of the original text."""

from __future__ import annotations

from collections.abc import Sequence

_OURS = ("plait.check.", "plait.kernel.", "plait.model.", "plait.rounds.")
_TRANSLATED: dict[str, tuple[str, Sequence[int]]] = {}


def translated(code: str, original: str, lines: Sequence[int]) -> None:
    """Register code that was translated from another file. `lines` has the original line of each line."""
    _TRANSLATED[code] = (original, lines)


def user_line(error: BaseException) -> str:
    """The deepest line of the user's code (or of the zoo) in the traceback of an error, as ` (file:line)`."""
    found, walk = "", error.__traceback__
    while walk is not None:
        if not walk.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
            found = f" ({place(walk.tb_frame.f_code.co_filename, walk.tb_lineno)})"
        walk = walk.tb_next
    return found


def place(file: str, line: int) -> str:
    """File and line in the user's original text.

    >>> translated("<made>", "paxos.distal", [1, 4, 4])
    >>> place("<made>", 3), place("paxos.py", 3)
    ('paxos.distal:4', 'paxos.py:3')
    """
    if file in _TRANSLATED:
        original, lines = _TRANSLATED[file]
        return f"{original}:{lines[min(line, len(lines)) - 1]}"
    return f"{file}:{line}"
