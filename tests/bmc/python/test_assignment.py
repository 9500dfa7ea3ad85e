"""Local variables that are read before they are assigned: CPython runs the same programs, as the oracle."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.bmc.python.programs import HEADER, load_text, violations

PROGRAMS: dict[str, str] = {
    "if": """
        def main(n):
            if n == 1:
                y = 1
            return y
    """,
    "for": """
        def main(n):
            for i in range(n):
                x = i
            return x + i
    """,
    "for over a tuple": """
        def main(n):
            for k in (1, 2):
                if k == n:
                    z = k
            return z
    """,
    "while": """
        def main(n):
            i = 0
            while i < 3:
                i += 1
                if i == n:
                    found = i
                    break
            return found
    """,
    "while True": """
        def main(n):
            while True:
                n += 1
                x = n
                if n > 1:
                    break
            return x
    """,
    "augmented": """
        def main(n):
            if n:
                x = 1
            x += 1
    """,
    "del": """
        def main(n):
            x = 1
            for i in range(n):
                del x
    """,
    "del of a parameter": """
        def main(n):
            m = n
            del n
            if m:
                n = 1
            return n
    """,
    "handler": """
        def main(n):
            e = 1
            try:
                if n:
                    raise KeyError
            except KeyError as e:
                pass
            return e
    """,
    "break in a handler": """
        def main(n):
            e = 1
            for i in range(n):
                try:
                    raise KeyError
                except KeyError as e:
                    break
            return e
    """,
    "try": """
        def main(n):
            try:
                if n:
                    raise KeyError
                x = 1
            except KeyError:
                pass
            finally:
                n += 1
            return x
    """,
    "comprehension": """
        def main(n):
            if n:
                q = 1
            return len([q for k in (1, 2)])
    """,
    "again": """
        def inner(n):
            if n == 0:
                y = 1
            return y
        def main(n):
            i = 0
            while i <= n:
                inner(i)
                i += 1
    """,
    "caught": """
        def main(n):
            try:
                if n:
                    x = 1
                return x
            except UnboundLocalError:
                return 2
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_as_cpython(name: str, n: int, tmp_path: Path) -> None:
    text = textwrap.dedent(PROGRAMS[name])
    names: dict[str, Any] = {}
    exec(HEADER + text, names)
    try:
        names["main"](n)
        expected: set[str] = set()
    except NameError:
        expected = {"assertions"}
    for call in (f"main({n})", f"main(random.randint({n}, {n}))"):
        assert violations(load_text(tmp_path, f"{text}\ndef test():\n    {call}\n", "test")) == expected
