"""Emitted programs: executed exhaustively, they reach what `plait check --rounds` reaches."""

from __future__ import annotations

import ast
import dataclasses
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from plait import System, always, bmc, check
from plait.cli.main import main
from plait.kernel.errors import ModelError
from plait.model.loading.loader import load
from plait.model.system import with_properties
from plait.rounds.check import check_rounds
from plait.rounds.emit.c.program import emitted
from plait.rounds.emit.description import Description, describe
from plait.rounds.emit.python.program import python_text
from plait.rounds.sequential import sequentialize
from tests.rounds import c_runs

Local = tuple[str, bool, tuple[Any, ...]]
"""The name of a process, whether it has crashed, and its fields."""


def comparable(value: Any) -> Any:
    """A value, so that equal values of the protocol and of the emitted file are equal."""
    if type(value) in (list, tuple):
        return (type(value).__name__, *map(comparable, value))
    if isinstance(value, set | frozenset):
        return ("set", *sorted(map(repr, map(comparable, value))))
    return repr(value)


def local(process: Any, fields: Any) -> Local:
    return repr(process.id), bool(process.crashed), tuple(comparable(getattr(process, name)) for name in fields)


def of_engine(system: System, phases: int, assume: str) -> set[frozenset[Local]]:
    """The combinations of local states of the sequential program, as the engine finds them."""
    seen = set()
    fields = {cls.__name__: cls.__plait_fields__ for cls in system.classes}

    @always
    def spy(s: Any) -> bool:
        seen.add(frozenset(local(p, fields[p.id.role]) for p in s if p.status != "unborn"))
        return True

    check(sequentialize(with_properties(system, [spy]), phases=phases, assume=assume))
    return seen


def of_python(described: Description) -> tuple[set[frozenset[Local]], Any]:
    """The combinations of local states of the emitted Python program, and its module."""
    module: Any = types.ModuleType("emitted_program")
    sys.modules["emitted_program"] = module
    text = python_text(described)
    imported = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not any("plait" in ast.unparse(n) for n in imported)
    try:
        exec(compile(text, "<emitted>", "exec"), module.__dict__)
        seen, observe = set(), module.observe

        def observed(s: Any) -> None:
            alive = [p for p in s.process if p is not None]
            seen.add(frozenset(local(p, [f.name for f in dataclasses.fields(p)]) for p in alive))
            observe(s)

        module.observe = observed
        module.explore()
    finally:
        del sys.modules["emitted_program"]
    return seen, module


def locals_of(found: set[frozenset[Local]]) -> set[Local]:
    return {entry for combination in found for entry in combination}


# -- Python --------------------------------------------------------------------------------------------------------------

ZOO = [
    ("distal_paxos", {"replicas": 2}, 2),
    ("distal_paxos", {"replicas": 2, "faulty": "printed"}, 2),
    ("commit_rounds", {"participants": 2}, 2),
    ("commit_rounds", {"participants": 2, "transactions": 1, "faulty": "doubt"}, 1),
    ("ben_or", {}, 1),
    ("ben_or", {"inputs": (0, 1), "f": 0, "phases": 2, "faulty": "estimate"}, 2),
    ("uniform_voting", {"inputs": (0, 1)}, 1),
    ("view_change", {"replicas": 2, "leaders": "any", "faulty": "quorum"}, 1),
    ("raft_membership", {"servers": 2, "candidates": (0,)}, 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters", "phases"), ZOO, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(ZOO)])
def test_the_python_program_reaches_the_states_of_the_engine(
    name: str, parameters: dict[str, Any], phases: int
) -> None:
    system = load(name, parameters)
    found, module = of_python(describe(system, phases=phases, assume="none"))
    assert found == of_engine(system, phases, "none")
    for prop in system.properties:
        direct = check(sequentialize(system, phases=phases), properties=[prop.name]).status
        assert direct == (
            "holds" if (prop.name in (*module.FAILED, *module.REACHED)) == (prop.kind == "reachable") else "violated"
        )


@pytest.mark.slow
@pytest.mark.parametrize("assume", ["reliable", "n-1", "majority", "kernel", "common", "tests.rounds.test_emit:mutual"])
@pytest.mark.parametrize("target", ["uniform_voting", "flood"])
def test_network_assumptions(assume: str, target: str) -> None:
    """Under an assumption the same local states are reached; combinations within a round depend on the order of turns."""
    if target == "flood":
        system, phases = load("tests.rounds.flood_set:flood_set", {"inputs": (0, 1), "phases": 2}), 2
    else:
        system, phases = load("uniform_voting", {"inputs": (0, 1), "least": 1}), 1
    found, _ = of_python(describe(system, phases=phases, assume=assume))
    assert locals_of(found) == locals_of(of_engine(system, phases, assume))


def mutual(hears: Any) -> bool:
    """Each process that is heard by another one hears it."""
    return all(p in hears[q] for p in hears for q in hears[p])


CRASH = """
from plait import Message, Process, System, action, always, crash_stop, on, tagged

@tagged(round="A")
class A(Message):
    v: int

class N(Process):
    x: int = 0

    @action(when=lambda self: self.x == 0)
    def step(self):
        self.x = 1
        self.broadcast(N, A(self.id.index))

    @on(A)
    def send_part(self, m):
        self.x += 2 + m.v

@always
def local(s):
    return not all(p.crashed for p in s)

def late() -> System:
    return System([N(), N()], properties=[local], rounds=["A"], faults=[crash_stop(budget=1)])
"""


def test_crashes_and_names_of_the_emitted_file(tmp_path: Path) -> None:
    """Names of the protocol that the program uses itself are no problem."""
    file = tmp_path / "crashing.py"
    file.write_text(CRASH)
    system = load(f"{file}:late")
    found, module = of_python(describe(system, phases=1, assume="none"))
    assert found == of_engine(system, 1, "none")
    assert module.FAILED == {}
    assert any(crashed for _, crashed, _ in locals_of(found))


def test_the_python_file_runs_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sequential.py"
    arguments = ["distal_paxos", "-p", "replicas=2", "-p", "faulty=printed", "--phases", "2", "--to", "python"]
    assert main(["rounds", "emit", *arguments, "-o", str(file)]) == 0
    assert f"python {file}" in capsys.readouterr().err
    made = subprocess.run([sys.executable, "-I", file], capture_output=True, text=True)
    states = len(of_engine(load("distal_paxos", {"replicas": 2, "faulty": "printed"}), 2, "none"))
    assert made.stdout.startswith(f"{states:,} states")
    assert made.returncode == ("VIOLATED" in made.stdout)
    again = subprocess.run([sys.executable, "-I", file, "20"], capture_output=True, text=True)
    assert again.returncode in (0, 1), again.stderr


def test_what_plain_python_does_not_have(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(
        CRASH.replace("self.x += 2 + m.v", "raise ModelError('x')").replace(
            "import Message", "import Message, ModelError"
        )
    )
    with pytest.raises(ModelError, match=r"uses ModelError of Plait \(.*odd.py:\d+\)"):
        python_text(describe(load(f"{file}:late"), phases=1, assume="none"))


# -- C -------------------------------------------------------------------------------------------------------------------

C_ZOO = [
    ("distal_paxos", {"replicas": 2, "ballots": 1}, 1, "none"),
    ("commit_rounds", {"participants": 2, "transactions": 1}, 1, "none"),
    ("commit_rounds", {"participants": 2, "transactions": 1, "faulty": "hasty"}, 1, "reliable"),
    ("ben_or", {"inputs": (0, 1), "f": 0}, 1, "none"),
    ("view_change", {"replicas": 2}, 1, "none"),
]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize(("name", "parameters", "phases", "assume"), C_ZOO)
def test_the_c_program_reaches_the_local_states(
    name: str, parameters: dict[str, Any], phases: int, assume: str, tmp_path: Path
) -> None:
    compared(load(name, parameters), phases, assume, tmp_path)


def compared(system: System, phases: int, assume: str, folder: Path) -> set[tuple[int, str]]:
    """The local states of the emitted C program, which are those of the engine."""
    described = describe(system, phases=phases, assume=assume)
    found, failed = c_runs.run(described, folder)
    unit = emitted(described)[1]
    numbers = {text: unit.text_numbers()[macro] for text, macro in unit.texts.items()}
    expected, seen = set(), set()
    fields = {cls.__name__: cls.__plait_fields__ for cls in system.classes}

    @always
    def spy(s: Any) -> bool:
        seen.update((system.index[p.id], p.id.role, tuple(getattr(p, f) for f in fields[p.id.role])) for p in s)
        return True

    check(sequentialize(with_properties(system, [spy]), phases=phases, assume=assume))
    for position, role, values in seen:
        shown = (c_runs.shown(v, unit.fields[f], numbers) for f, v in zip(fields[role], values, strict=True))
        expected.add((position, "".join(shown)))
    assert found == expected
    verdict = check(sequentialize(system, phases=phases, assume=assume))
    assert (failed > 0) == any(p.kind == "always" and p.status == "violated" for p in verdict.properties)
    return found


EXPRESSIONS = """
import itertools
from typing import Literal
from plait import Message, Process, System, action, always, on, tagged

@tagged(round="A")
class A(Message):
    values: tuple[int, ...]
    best: tuple[int, int]

def twice(x):
    return 2 * x

class N(Process):
    stage: Literal["new", "sent", "done"] = "new"
    numbers: tuple[int, ...] = ()
    found: int | None = None
    flags: tuple[bool, ...] = ()
    order: tuple[int, ...] = ()

    def score(self, x):
        return (x % 3, -x)

    @action(when=lambda self: self.stage == "new")
    def go(self):
        a = self.choose([-7, -1, 0, 2, 5])
        b = self.choose(range(1, 4))
        self.stage = "sent"
        values = [a // b, a % b, -a, twice(b), max(a, b), min(a, b, 1), abs(a)]
        self.numbers = tuple(v for v in values if v != 0)
        self.send(N.pid(0), A(self.numbers[:3] + (b,), (a, b)))

    @on(A, where=lambda self, m: len(m.values) > 1 and 0 <= m.values[-1] < 4)
    def take(self, m):
        self.stage = "done"
        a, b = m.best
        ordered = sorted(m.values)
        self.found = next((x for x in m.values if x > 1), None)
        by_key = sorted(m.values, key=lambda x: self.score(x))
        top = max(m.values, key=self.score)
        pairs = sum(y - x for x, y in itertools.pairwise(ordered))
        at = sum(i * x for i, x in enumerate(m.values, 1))
        self.order = (*by_key, top, pairs, at, m.values.count(b), len({x % 2 for x in m.values}))
        low = -1 if self.found is None else self.found
        self.flags += (
            {a, b} == {b, a},
            {x for x in m.values} == set(ordered),
            (a, b) < (b, a),
            ordered[1:] == list(m.values)[:-1],
            a in m.values or (self.found is not None and self.found > 2),
            any(x < 0 for x in m.values),
            all(x < 3 for x in m.values) and not self.numbers,
            self.stage in ("new", "done"),
            low > 1,
            m.sender == self.id,
        )

@always
def fine(s):
    return all(p.stage != "lost" for p in s[N])

def expressions() -> System:
    return System([N()], properties=[fine], rounds=["A"])
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_expressions_in_c(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(EXPRESSIONS)
    found = compared(load(f"{file}:expressions"), 1, "none", tmp_path)
    assert len(found) > 15  # each of 15 choices, and what follows


REFUSED = {
    "self.x = self.y or 3": "and, or: a value that is a number",
    "self.x = {1: 2}[1]": "dict display",
    "self.x = len(str(self.x))": r"str\(…\)",
    "self.b = self.x": "a number where true or false is expected",
    "self.spawn(N)": r"self.spawn|spawns N",
    "self.x = self.again(3)": "a recursive function",
    "z = (1,); z += (2,); self.x = len(z)": r"\+= on a local",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_c_does_not_have(statement: str, tmp_path: Path) -> None:
    text = EXPRESSIONS.partition("class N(")[0]
    file = tmp_path / "model.py"
    file.write_text(f"""{text}
class N(Process):
    x: int = 0
    y: int = 0
    b: bool = False

    def again(self, k):
        return self.again(k - 1) if k > 0 else 0

    @on(A)
    def take(self, m):
        {statement}

def refused() -> System:
    return System([N()], rounds=["A"])
""")
    with pytest.raises(ModelError, match=REFUSED[statement]) as caught:
        emitted(describe(load(f"{file}:refused"), phases=1, assume="none"))
    assert "model.py:" in caught.value.message


POLL = """
from plait import Message, Process, System, always, init, on, tagged

@tagged(phase="question", round="Ask")
class Ask(Message):
    question: int

@tagged(phase="question", round="Hand")
class Hand(Message):
    question: int
    yes: bool

class Member(Process):
    question: int = 0

    @on(Ask, where=lambda self, m: m.question > self.question)
    def raise_hand(self, m):
        self.question = m.question
        self.send(m.sender, Hand(m.question, self.choose([True, False])))

class Chair(Process):
    most: int
    yes: int = 0

    @init
    def ask(self):
        self.broadcast(Member, Ask(1))

    @on(Hand, quorum=2)
    def count(self, hands):
        self.yes += sum(m.yes for m in hands)

@always
def few(s):
    return all(chair.yes <= chair.most for chair in s[Chair])

def poll(most: int = 2) -> System:
    return System([Chair(most=most), Member(), Member()], properties=[few], rounds=["Ask", "Hand"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("most", "status"), [(2, "holds"), (1, "violated")])
def test_plait_bmc_checks_the_c_program(most: int, status: str, tmp_path: Path) -> None:
    pytest.importorskip("clang")
    file, program = tmp_path / "poll.py", tmp_path / "poll.c"
    file.write_text(POLL)
    assert check_rounds(load(f"{file}:poll", {"most": most}), phases=1).status == status
    assert (
        main(["rounds", "emit", f"{file}:poll", "-p", f"most={most}", "--phases", "1", "--to", "c", "-o", str(program)])
        == 0
    )
    verdict = bmc.check(bmc.load(str(program)), encoding="explicit")
    assert verdict.status == status


SPAWN = """
from plait import Message, Process, System, action, always, on, tagged

@tagged(round="A")
class A(Message): ...

class Child(Process):
    old: bool = False

    @action(when=lambda self: not self.old)
    def grow(self):
        self.old = True

class Parent(Process):
    done: int = 0

    @action(when=lambda self: self.done == 0)
    def begin(self):
        self.done = 1
        self.send(Parent.pid(0), A())

    @on(A)
    def take(self, m):
        self.done = 2
        self.spawn(Child)

@always
def fine(s):
    return len(s[Child]) < 2

def family() -> System:
    return System([Parent()], properties=[fine], rounds=["A"], spare={Child: 1})
"""


def test_processes_that_are_created_in_the_last_round(tmp_path: Path) -> None:
    file = tmp_path / "family.py"
    file.write_text(SPAWN)
    system = load(f"{file}:family")
    found, _ = of_python(describe(system, phases=1, assume="none"))
    assert found == of_engine(system, 1, "none")
    assert ("Child0", False, ("True",)) in locals_of(found)
    with pytest.raises(ModelError, match="creates processes, which --to c does not support"):
        emitted(describe(system, phases=1, assume="none"))
