"""What is not supported is refused with the construct, the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.bmc import check
from plait.kernel.errors import PlaitError
from tests.bmc.python.programs import HEADER, load_text

REFUSED: dict[str, tuple[str, str]] = {
    "x = [1, 2][0:1]": ("slice", "x = [1, 2][0:1]"),
    "x = 1 / 2": ("integers", "x = 1 / 2"),
    "x = 1.5 + 1": ("integers", "x = 1.5 + 1"),
    "x = 1\n    x = [2]": ("x is a number elsewhere, and a list object here", "x = [2]"),
    "x = open('file')": ("io.open", "x = open('file')"),
    "x = time.time()": ("time.time", "x = time.time()"),
    "match 1:\n        case 1:\n            pass": ("match", "match 1:"),
    "x = sorted([2, 1])": ("sorted", "x = sorted([2, 1])"),
    "x = 'a' + 'b'": ("arithmetic with a text", "x = 'a' + 'b'"),
    "x = threading.local()": ("local", "x = threading.local()"),
    "x = threading.Timer(1, main)": ("Timer", "x = threading.Timer(1, main)"),
    "x = {}\n    x |= {}": ("arithmetic", "x |= {}"),
    "x = [y for y in 'abc']": ("for over a text", "x = [y for y in 'abc']"),
    "n = 0\n    while n < 2:\n        n = (lambda q=n: q)() + 1": ("the default argument q", "lambda q=n"),
    "x, *y = (1, 2, 3)": ("* in an assignment", "x, *y = (1, 2, 3)"),
    "x, *y = [1, 2, 3]": ("* in an assignment", "x, *y = [1, 2, 3]"),
    "x = f'{1}' == '1'": ("cannot be compared", "x = f'{1}' == '1'"),
    "x = threading.current_thread().name == 'MainThread'": ("cannot be compared", "current_thread().name"),
    "x = threading.get_ident() == 1": ("cannot be compared", "get_ident() == 1"),
    "x = []\n    while len(x) < 2:\n        x.append([lambda: n for n in range(2)])": (
        "a function in a comprehension uses n",
        "lambda: n",
    ),
    "x = concurrent.futures.ThreadPoolExecutor(2).map(main, [1])": ("the method map", "map(main"),
    "x = (yield 1)": ("generator", "def main():"),
    "x = missing": ("no variable missing", "x = missing"),
    "x = threading.Lock().missing": ("missing", "x = threading.Lock().missing"),
    "x = asyncio.wait([])": ("asyncio.wait", "x = asyncio.wait([])"),
    "x = range(3)": ("range", "x = range(3)"),
    "del threading.x": ("del threading.x", "del threading.x"),
    "x = (1, 2)[random.randint(0, 1)]": ("index of a tuple", "x = (1, 2)[random.randint(0, 1)]"),
    "x = collections.defaultdict(int)": ("defaultdict", "x = collections.defaultdict(int)"),
    "x = queue.PriorityQueue()": ("PriorityQueue", "x = queue.PriorityQueue()"),
}
"""A statement, a part of the error, and the line that it names."""


@pytest.mark.parametrize("statement", REFUSED)
def test_refused(statement: str, tmp_path: Path) -> None:
    text = f"def main():\n    {statement}\n"
    part, line = REFUSED[statement]
    with pytest.raises(PlaitError) as caught:
        load_text(tmp_path, text)
    number = (HEADER + text).splitlines().index(next(x for x in text.splitlines() if line in x)) + 1
    assert part in str(caught.value)
    assert f"program.py, line {number}" in str(caught.value)
    assert caught.value.hint


def test_no_such_function(tmp_path: Path) -> None:
    with pytest.raises(PlaitError, match="has no other"):
        load_text(tmp_path, "def main():\n    pass\n", "other")


def test_the_module_cannot_be_imported(tmp_path: Path) -> None:
    with pytest.raises(PlaitError, match="ZeroDivisionError"):
        load_text(tmp_path, "x = 1 // 0\ndef main():\n    pass\n")


def test_closure_of_a_function_in_a_loop(tmp_path: Path) -> None:
    """Each call has variables of its own, which the translation does not have."""
    text = """
    def start(n):
        def work():
            assert n >= 0
        Thread(target=work).start()
    def main():
        n = 0
        while n < 2:
            start(n)
            n += 1
    """
    with pytest.raises(PlaitError, match="work uses n of start, which a loop calls"):
        load_text(tmp_path, text)


def test_closure_that_outlives_its_call_in_a_loop(tmp_path: Path) -> None:
    text = """
    def make(v):
        n = v
        def get():
            return n
        return get
    def main():
        found = []
        while len(found) < 2:
            found.append(make(len(found)))
        assert found[0]() == 0
    """
    with pytest.raises(PlaitError, match="get uses n of make, which a loop calls, after make has ended"):
        load_text(tmp_path, text)


def test_attribute_of_an_exception(tmp_path: Path) -> None:
    text = """
    class Refused(Exception):
        def __init__(self, code):
            self.code = code
    def main():
        try:
            raise Refused(3)
        except Refused as error:
            assert error.code == 3
    """
    with pytest.raises(PlaitError, match="the attribute code of an exception is not supported"):
        load_text(tmp_path, text)


def test_limits_are_reported(tmp_path: Path) -> None:
    """A list that grows beyond the bound is no proof."""
    program = load_text(tmp_path, "def main():\n    a = []\n    while len(a) < 5:\n        a.append(1)\n", objects=4)
    assert {p.status for p in check(program, encoding="explicit").properties} == {"inconclusive"}
    program = load_text(tmp_path, "def main():\n    a = []\n    while len(a) < 5:\n        a.append(1)\n", objects=5)
    assert {p.status for p in check(program, encoding="explicit").properties} == {"holds"}
