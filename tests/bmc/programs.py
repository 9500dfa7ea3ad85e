"""Random programs, small enough to enumerate: arrays, locks, loops, atomic blocks, choices, failing assertions."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn


class Random(NamedTuple):
    """A program, and the names of what to watch."""

    text: str
    watched: list[str]


_NUMBERS = ["x", "y"]
FLAGS = [["bounds"], ["assertions"]]
"""Failed indices and assertions; a program has the flag of what can fail in it."""


def _number(draw: DrawFn, depth: int = 0) -> str:
    kind = draw(st.sampled_from(["constant", "shared", "local", "cell", "cell", "sum"][: 6 if depth < 1 else 5]))
    match kind:
        case "constant":
            return str(draw(st.integers(0, 2)))
        case "shared":
            return draw(st.sampled_from(_NUMBERS))
        case "local":
            return "t"
        case "cell":
            return f"a[{_index(draw)}]"
        case _:
            operator = draw(st.sampled_from(["+", "-", "*", "+"]))
            return f"({_number(draw, depth + 1)} {operator} {_number(draw, depth + 1)}) % 3"


def _index(draw: DrawFn) -> str:
    # Out of range now and then: a[x] has two cells, and x may be 2.
    return draw(st.sampled_from(["0", "1", "x", "t", "i", "y % 2", "(t + 1) % 2"]))


def _truth(draw: DrawFn) -> str:
    kind = draw(st.sampled_from(["compare", "compare", "flag", "and", "or", "not"]))
    match kind:
        case "compare":
            operator = draw(st.sampled_from(["==", "!=", "<", "<="]))
            return f"{_number(draw, 1)} {operator} {_number(draw, 1)}"
        case "flag":
            return draw(st.sampled_from(["b", "f[i]", "f[x % 2]"]))
        case "and":
            return f"(x < 2 && a[x] == {draw(st.integers(0, 1))})"
        case "or":
            return f"(b || t == {draw(st.integers(0, 2))})"
        case _:
            return "!b"


def _simple(draw: DrawFn) -> str:
    kind = draw(
        st.sampled_from(
            ["number", "number", "cell", "cell", "local", "flag", "havoc", "assume", "assert", "lock", "unlock"]
        )
    )
    match kind:
        case "number":
            return f"{draw(st.sampled_from(_NUMBERS))} = {_number(draw)};"
        case "cell":
            return f"a[{_index(draw)}] = {_number(draw, 1)};"
        case "local":
            return f"t = {_number(draw)};"
        case "flag":
            return f"{draw(st.sampled_from(['b', 'f[i]', 'f[t % 2]']))} = {_truth(draw)};"
        case "havoc":
            return draw(st.sampled_from(["havoc x in 0..1;", "havoc t in 0..2;", "havoc b;"]))
        case "assume":
            return f"assume({_truth(draw)});"
        case "assert":
            return f"assert({_truth(draw)});"
        case "lock":
            return draw(st.sampled_from(["lock(m);", "lock(n[i]);"]))
        case _:
            return draw(st.sampled_from(["unlock(m);", "unlock(n[i]);", "unlock(n[x % 2]);"]))


def _statement(draw: DrawFn) -> str:
    kind = draw(st.sampled_from(["simple", "simple", "simple", "if", "while", "atomic", "choose"]))
    match kind:
        case "if":
            other = f" else {{ {_simple(draw)} }}" if draw(st.booleans()) else ""
            return f"if ({_truth(draw)}) {{ {_simple(draw)} }}{other}"
        case "while":
            return f"while (c < 1) {{ c = c + 1; {_simple(draw)} }}"
        case "atomic":
            inside = _simple(draw)
            if draw(st.booleans()):
                inside += f" if ({_truth(draw)}) {{ {_simple(draw)} }}"
            return f"atomic {{ {inside} {_simple(draw)} }}"
        case "choose":
            return f"choose {{ {_simple(draw)} }} or {{ {_simple(draw)} }}"
        case _:
            return _simple(draw)


@st.composite
def programs(draw: DrawFn) -> Random:
    """Two or three processes over a few variables; one initial value may be free."""
    free = draw(st.booleans())
    lines = [
        "int x = 0;" if not free else "int x in 0..1;",
        "int y = 0;",
        "bool b = false;",
        "int a[2] = {0, 1};",
        "bool f[2];" if draw(st.integers(0, 5)) == 0 else "bool f[2] = false;",
        "lock m, n[2];",
    ]
    count = draw(st.sampled_from([2, 2, 2, 3]))
    for p in range(count):
        body = [_statement(draw) for _ in range(draw(st.integers(1, 3 if count == 2 else 2)))]
        loop = " c = 0," if any("while" in s for s in body) else ""
        lines.append(f"process p{p}(int i = {p % 2}) {{ int{loop} t = {draw(st.integers(0, 1))};")
        lines += [f"  {s}" for s in body]
        lines.append("}")
    watched = draw(st.sampled_from([["x"], ["y"], ["a[0]"], ["a[1]", "y"], ["p0.t"], ["b", "p1.t"], ["f[0]", "x"], []]))
    flags = draw(st.sampled_from([*FLAGS, ["assertions", "bounds"], []] if watched else FLAGS))
    return Random("\n".join(lines) + "\n", [*watched, *flags])
