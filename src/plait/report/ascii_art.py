"""Text for terminals and files that cannot show all characters: lines, arrows and marks become ASCII art."""

from __future__ import annotations

_ART = str.maketrans(
    {
        **dict.fromkeys("│┃║┼", "|"),
        **dict.fromkeys("─━═–—−┄", "-"),
        **dict.fromkeys("┌╭", ","),
        **dict.fromkeys("└╰", "`"),
        **dict.fromkeys("┐┘╮╯├┤┬┴", "+"),
        **dict.fromkeys("●•", "*"),
        "┊": ":",
        "○": "o",
        "×": "x",
        "▶": ">",
        "◀": "<",
        "◂": "^",
        "→": "->",
        "←": "<-",
        "…": "...",
        "·": "-",
        "µ": "u",
        "≥": ">=",
        "≤": "<=",
        "≠": "!=",
    }
)
"""A drawing keeps its columns: its characters are replaced one by one. A line that crosses another one is below it."""


def fitted(text: str, encoding: str) -> str:
    """The text in characters that an encoding has. If one is missing, art becomes ASCII, and the rest escapes.

    >>> print(fitted("│ ●◂1 → ▶2", "ascii"))
    | *^1 -> >2
    >>> fitted("naïve ●", "cp1252"), fitted("naïve", "ascii")
    ('naïve *', 'na\\\\xefve')
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ART).encode(encoding, "backslashreplace").decode(encoding)
    return text
