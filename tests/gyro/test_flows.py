"""Where parameters flow, checked by running: random functions are analysed, then called with a connection that records.

Whatever is executed must have been foreseen: among the statements that the analysis found at that line there is one whose
parameters and constants are the values that were given. What the analysis calls unknown may be anything.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from plait.gyro.analysis import read
from plait.gyro.source import functions as functions_of_gyro
from plait.gyro.sql.terms import Constant, Parameter
from plait.gyro.transactions import Statement

HEAD = """\
SCHEMA = "CREATE TABLE t (id INTEGER, a INTEGER)"
WORD = 7


class Oops(Exception): ...


def _keep(x):
    return x


def _pick(x, y=5):
    if x:
        return y
    return x


def _run(db, x, y):
    db.execute("SELECT a FROM t WHERE id = ? AND a = ?", (x, y))
    y = x
    db.execute("SELECT a FROM t WHERE id = ? AND a = ?", (x, y))
    return y


"""
NAMES = ("p", "q", "x", "y")


class Writer:
    """Draws the body of a function."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def name(self) -> str:
        return self.pick(*NAMES)

    def value(self) -> str:
        a, b = self.name(), self.name()
        return self.pick(
            a, a, b, "3", "'s'", "WORD", f"{a} + 1", f"({a} if {b} else {self.name()})", f"_keep({a})", f"_pick({a}, {b})",
            f"_pick({a})", f"_run(db, {a}, {b})", f"({a}, {b})[0]", f"[{a}, {b}][1]", f"({a} or {b})", f"(x := {a})",
        )  # fmt: skip

    def block(self, indent: str, depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(indent, depth)

    def statement(self, indent: str, depth: int) -> None:
        kinds = [
            "assign",
            "assign",
            "execute",
            "execute",
            "pair",
            "walrus",
            "list",
            "augment",
            "comprehension",
            "unpack",
        ]
        kinds += ["if", "for", "try", "with", "match", "while", "raise", "return"] if depth else []
        kind = self.pick(*kinds)
        say, inner = self.lines.append, indent + "    "
        if kind == "assign":
            say(f"{indent}{self.name()} = {self.value()}")
        elif kind == "execute":
            say(f'{indent}db.execute("SELECT a FROM t WHERE id = ? AND a = ?", ({self.value()}, {self.value()}))')
        elif kind == "pair":
            say(f"{indent}{self.name()}, {self.name()} = {self.value()}, {self.value()}")
        elif kind == "walrus":
            say(f"{indent}{self.name()} and ({self.name()} := {self.value()})")
        elif kind == "list":
            say(f"{indent}z = [{self.name()}, {self.name()}]")
            if self.draw(st.booleans()):
                say(f"{indent}z{self.pick('[0] = ', '.append(', ' += [')}{self.name()}")
                self.lines[-1] += {"a": ")", "+": "]"}.get(self.lines[-1].strip()[2], "")
            say(f'{indent}db.execute("SELECT a FROM t WHERE id = ? AND a = ?", z)')
        elif kind == "augment":
            say(f"{indent}{self.name()} += 1")
        elif kind == "comprehension":
            element = self.pick("i", self.name(), f"({self.name()} := i)")
            say(
                f'{indent}[db.execute("SELECT a FROM t WHERE id = ? AND a = ?", ({element}, {self.name()})) for i in (1, 2)]'
            )
        elif kind == "unpack":
            say(f"{indent}z = ({self.name()}, {self.name()})")
            say(f"{indent}{self.name()}, {self.name()} = z")
        elif kind == "raise":
            say(f"{indent}if {self.name()}:")
            say(f"{inner}raise Oops")
        elif kind == "return":
            say(f"{indent}if not {self.name()}:")
            say(f"{inner}return {self.name()}")
        elif kind == "if":
            say(f"{indent}if {self.name()}:")
            self.block(inner, depth - 1)
            say(f"{indent}else:")
            self.block(inner, depth - 1)
        elif kind == "for":
            say(f"{indent}for {self.pick('i', *NAMES)} in {self.pick('(1, 2)', '()', f'[{self.name()}]')}:")
            self.block(inner, depth - 1)
        elif kind == "while":
            say(f"{indent}for n in (1, 2):")
            say(f"{inner}while n:")
            self.block(inner + "    ", depth - 1)
            say(f"{inner}    n = {self.pick('0', 'n - 1')}")
        elif kind == "try":
            say(f"{indent}try:")
            self.block(inner, depth - 1)
            say(f"{indent}except Oops:")
            self.block(inner, depth - 1)
            if self.draw(st.booleans()):
                say(f"{indent}finally:")
                self.block(inner, depth - 1)
        elif kind == "with":
            say(f"{indent}with db as d:")
            self.block(inner, depth - 1)
        elif kind == "match":
            say(f"{indent}match {self.name()}:")
            say(f"{inner}case {self.pick('10', '0', 'x', 'y', '[x, *y]')} if {self.name()}:")
            self.block(inner + "    ", depth - 1)
            say(f"{inner}case _:")
            self.block(inner + "    ", depth - 1)


@st.composite
def functions(draw: st.DrawFn) -> str:
    writer = Writer(draw)
    writer.block("    ", 2)
    writer.statement("    ", 0)
    writer.lines.append('    db.execute("SELECT a FROM t WHERE id = ? AND a = ?", (x, y))')
    return HEAD + "def act(db, p, q, x=1, y=2):\n" + "\n".join(writer.lines) + "\n"


class Recorder:
    """A connection that notes what is executed, and where."""

    def __init__(self) -> None:
        self.events: list[tuple[int, list[Any]]] = []

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, sql: str, given: Any) -> None:
        frame = sys._getframe(1)
        self.events.append((frame.f_lineno, list(given)[:2]))


def foreseen(statement: Statement, given: list[Any], parameters: dict[str, Any]) -> bool:
    for term, value in zip(statement.bindings.values(), given, strict=True):
        if isinstance(term, Parameter) and parameters[term.name] is not value:
            return False
        if isinstance(term, Constant) and term.value != value:
            return False
    return True


def surprise(source: str, folder: Path) -> str | None:
    """Something that was executed and not foreseen."""
    file = folder / "application.py"
    file.write_text(source)
    _, (transaction,) = read(file, None)
    space: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), space)
    for p, q in ((1000, 2000), (0, 2000), (1000, 0), (10, "s")):
        recorder = Recorder()
        parameters = {"p": p, "q": q, "x": 3000, "y": 4000}
        # What was executed until it failed still counts.
        with suppress(space["Oops"], UnboundLocalError, TypeError):
            space["act"](recorder, **parameters)
        for line, values in recorder.events:
            found = [s for s in transaction.statements if s.place.endswith(f":{line}")]
            if not transaction.refusals and not any(foreseen(s, values, parameters) for s in found):
                return f"line {line}: {values}"
    return None


@settings(max_examples=120, deadline=None, suppress_health_check=[*HealthCheck])
@given(source=functions())
def test_what_is_executed_was_foreseen(source: str, tmp_path: Path) -> None:
    problem = surprise(source, tmp_path)
    assert problem is None, f"{problem}\n{source}"


def test_much_of_it_is_known(tmp_path: Path) -> None:
    """Or there would be nothing to be wrong about."""
    source = (
        HEAD + "def act(db, p, q):\n    if p:\n        x = q\n    else:\n        x = _keep(q)\n    _run(db, x, p)\n"
    )
    (tmp_path / "application.py").write_text(source)
    _, (transaction,) = read(tmp_path / "application.py", None)
    found = [list(s.bindings.values()) for s in transaction.statements]
    assert found == [[Parameter("q"), Parameter("p")], [Parameter("q"), Parameter("q")]]


def forgets_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(functions_of_gyro.Walk, "forget", lambda *_: None)


def believes_the_first_branch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(functions_of_gyro, "merge", lambda one, other: one if one is not None else other)


@pytest.mark.parametrize("mutate", [forgets_nothing, believes_the_first_branch])
def test_a_careless_walk_is_noticed(mutate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    quiet = settings(
        max_examples=2_000,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    found = find(functions(), lambda source: surprise(source, tmp_path) is not None, settings=quiet)
    monkeypatch.undo()
    assert surprise(found, tmp_path) is None
