"""Places in the user's source. If a text was translated to Python, errors name the lines of the original text."""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Callable, Sequence
from types import TracebackType

from plait.kernel.trace import Frame, Raised

_OURS = ("plait.check.", "plait.kernel.", "plait.model.", "plait.rounds.")
_LIBRARY = frozenset(sys.stdlib_module_names) - {"__main__"}
Columns = Callable[[int, int, int, int], tuple[int, int] | None]
"""The line and column in the original text of a range of the translated code: line, column, last line, end column."""
_TRANSLATED: dict[str, tuple[str, Sequence[int], Columns | None]] = {}


def translated(code: str, original: str, lines: Sequence[int], columns: Columns | None = None) -> None:
    """Register code that was translated from another file. `lines` has the original line of each line, or 0."""
    _TRANSLATED[code] = (original, lines, columns)


def user_line(error: BaseException) -> str:
    """The deepest line of the user's code (or of the zoo) in the traceback of an error, as ` (file:line)`."""
    found, walk = "", error.__traceback__
    while walk is not None:
        file, line, column = _raised_at(walk)
        if line and not walk.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
            found = f" ({file}:{line}:{column})" if column else f" ({file}:{line})"
        walk = walk.tb_next
    return found


def raised(where: str, error: BaseException) -> Raised:
    """An exception as data. Of its traceback, the frames of Plait and of the standard library are left out.

    >>> try:
    ...     {}["key"]
    ... except KeyError as error:
    ...     raised("Client.ask", error).type
    'KeyError'
    """
    frames, walk = [], error.__traceback__
    while walk is not None:
        frame, module = walk.tb_frame, str(walk.tb_frame.f_globals.get("__name__", ""))
        file, line, column = _raised_at(walk)
        if line and not module.startswith(_OURS) and module.partition(".")[0] not in _LIBRARY:
            code = linecache.getline(file, line).strip()
            frames.append(Frame(file, line, frame.f_code.co_qualname, code, column))
        walk = walk.tb_next
    return Raised(where, type(error).__name__, text_of(error), frames)


def text_of(error: BaseException) -> str:
    """The text of an exception of the user, as Unicode without surrogates.

    >>> text_of(ValueError("\\udc80")), text_of(KeyError(1))
    ('\\\\udc80', '1')
    """
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:
        return "(its text cannot be made: __str__ or __repr__ raises an exception)"


def place(file: str, line: int) -> str:
    """File and line in the user's original text.

    >>> translated("<made>", "paxos.distal", [1, 4, 4])
    >>> place("<made>", 3), place("paxos.py", 3)
    ('paxos.distal:4', 'paxos.py:3')
    """
    return ":".join(map(str, _original(file, line)))


def _raised_at(walk: TracebackType) -> tuple[str, int, int | None]:
    """File and line of an entry of a traceback in the user's original text, and the column if it was translated."""
    code = walk.tb_frame.f_code
    original, _, columns = _TRANSLATED.get(code.co_filename, ("", (), None))
    if columns is not None and (found := columns(*_range(walk))) is not None:
        return original, *found
    return *_original(code.co_filename, walk.tb_lineno), None


def _range(walk: TracebackType) -> tuple[int, int, int, int]:
    """What an entry of a traceback was executing: line, column, last line, end column; -1 for what is not known."""
    positions = itertools.islice(walk.tb_frame.f_code.co_positions(), walk.tb_lasti // 2, None)
    line, last, column, end = (-1 if number is None else number for number in next(positions))
    return line, column, last, end


def _original(file: str, line: int) -> tuple[str, int]:
    if file in _TRANSLATED:
        original, lines, _ = _TRANSLATED[file]
        return original, lines[min(line, len(lines)) - 1]
    return file, line
