"""Projections: the example of Saissi 2019, Theorem 5 on random runs, and what breaks it; litmus shapes."""

from __future__ import annotations

import itertools
import random as dice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.bmc import check, load, parse_program
from plait.bmc.analysis.dependence import depends, execute, projection
from plait.bmc.analysis.slices import slices
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.execution.interpreter import Cell, Interpreter, State, Step
from plait.bmc.language.compiler import compile_program
from plait.bmc.language.parser import parse
from tests.bmc import encodings
from tests.bmc.programs import Random, programs

_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}


# -- section 4.2 -------------------------------------------------------------------------------------------------------


def test_the_motivating_example() -> None:
    """Figure 13: three projections on y out of twelve runs, and what y is in each."""
    found = slices(load("projections"), ["y"])
    assert found.runs == 12
    steps = {tuple(sorted(label for _, label in p)): values["y"] for p, values in found.projections}
    last = ["x = B[a];", "y = x + 7;"]
    assert steps == {
        tuple(sorted(last)): 17,
        tuple(sorted(["a = 1;", *last])): 18,
        tuple(sorted(["a = 1;", "B[b] = 5;", *last])): 12,
    }


def test_slices_of_other_variables() -> None:
    program = load("projections")
    assert [len(p) for p, _ in slices(program, ["a"]).projections] == [1]
    assert len(slices(program, ["b"]).projections) == 1, "nobody writes it: the empty projection"
    assert len(slices(program, ["x", "y"]).projections) == 3


# -- section 4.4 -------------------------------------------------------------------------------------------------------


def walk(interpreter: Interpreter, seed: int) -> tuple[State, list[Step]]:
    """A random run."""
    chance = dice.Random(seed)
    start = state = chance.choice(list(interpreter.initial_states()))
    run: list[Step] = []
    while len(run) < 12 and (options := list(interpreter.successors(state))):
        run.append(chance.choice(options))
        state = run[-1].state
    return start, run


def preserved(interpreter: Interpreter, start: State, run: list[Step], cells: list[Cell], relation: Any) -> bool:
    """Lemma 7: the projection is a run, and ends with the same values of the cells."""
    kept = execute(interpreter, start, [run[i] for i in projection(run, cells, relation)])
    if kept is None:
        return False
    end, other = (run[-1].state if run else start), (kept[-1].state if kept else start)
    offsets = interpreter.offsets
    return all(end.values[offsets[v] + k] == other.values[offsets[v] + k] for v, k in cells)  # type: ignore[misc]


def cells_of(interpreter: Interpreter, names: list[str]) -> list[Cell]:
    found: list[Cell] = []
    for name in names:
        base, _, index = name.partition("[")
        variable = next((v for v in interpreter.program.variables if v.name == base), None)
        if variable is None:
            continue  # the flag of what cannot fail in this program
        found.append((variable, int(index[:-1]) if index else 0))
    return found


@pytest.mark.slow
@settings(max_examples=150, **_SETTINGS)
@given(programs(), st.integers(0, 10_000))
def test_theorem_5(random: Random, seed: int) -> None:
    """Every projection of a run is a run that ends with the same values of F."""
    interpreter = Interpreter(compile_program(parse(random.text, "random")))
    start, run = walk(interpreter, seed)
    assert preserved(interpreter, start, run, cells_of(interpreter, random.watched), depends)


MUTANTS = {
    "program counters are left out": lambda a, b: any(c in b.reads for c in a.writes if not isinstance(c, int)),
    "shared variables are left out": lambda a, b: any(c in b.reads for c in a.writes if isinstance(c, int)),
    "arrays are left out": lambda a, b: any(c in b.reads for c in a.writes if isinstance(c, int) or c[0].size is None),
    "who reads instead of who writes": lambda a, b: (
        not a.reads.isdisjoint(b.reads - {b.process}) or a.process == b.process
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_of_the_dependence_relation_are_caught(mutant: str) -> None:
    """With a wrong relation, some projection of some run of these is none, or ends elsewhere."""
    texts = [
        "int x = 0, y = 0; process p { x = 1; y = 2; }",
        "int x = 0, y = 0; process p { x = 1; x = x + 1; y = x; }",
        "int x = 0, y = 0; process p { x = 1; } process q { y = x; }",
        "int a[2] = 0; int y = 0; process p { a[1] = 1; } process q { y = a[1]; }",
        "int x = 0, y = 0; process p { x = 5; } process q { x = 6; y = x; } process r { y = x; }",
    ]
    caught = 0
    for text, seed in itertools.product(texts, range(20)):
        interpreter = Interpreter(parse_program(text))
        start, run = walk(interpreter, seed)
        cells = cells_of(interpreter, ["y"])
        assert preserved(interpreter, start, run, cells, depends)
        caught += not preserved(interpreter, start, run, cells, MUTANTS[mutant])
    assert caught


@pytest.mark.parametrize("broken", ["reads", "counters"])
def test_mutants_of_the_constraint_are_caught(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C_F without a part of the dependence excludes runs that matter, and the comparison with the enumeration notices."""
    original = StepsEncoding._project

    def mutated(self: StepsEncoding) -> None:
        if broken == "reads":
            self.reads = [{} for _ in self.reads]
            original(self)
            return
        f = self.f
        needed: dict[Cell, Any] = {(v, k): True for v in self.relevant for k in range(v.cells)}
        for i in reversed(range(self.depth)):
            matters = [f.all(flag, needed.get(cell, False)) for cell, flag in self.writes[i].items()]
            f.add(f.implies(f.any(*self.running[i]), f.any(*matters)))
            for cell, flag in self.reads[i].items():
                needed[cell] = f.any(flag, needed.get(cell, False))

    text = "int x = 0, y = 0, z = 0; process p { x = 1; } process q { z = 1; y = x; y = y + 1; }"
    way = {"steps": encodings.WAYS["steps, projected"]}
    encodings.compare(Random(text, ["y"]), way)
    monkeypatch.setattr(StepsEncoding, "_project", mutated)
    with pytest.raises(AssertionError):
        encodings.compare(Random(text, ["y"]), way)


# -- litmus shapes -----------------------------------------------------------------------------------------------------

_MP = "process w { x = 1; y = 1; } process r { int a = 0, b = 0; a = y; b = x; }"
_SB = "process p { int a = 0; x = 1; a = y; } process q { int a = 0; y = 1; a = x; }"
_LB = "process p { int a = 0; a = y; x = 1; } process q { int a = 0; a = x; y = 1; }"
_IRIW = (
    "process w { x = 1; } process v { y = 1; } process r { int a = 0, b = 0; a = x; b = y; }"
    "process s { int a = 0, b = 0; a = y; b = x; }"
)
_2W = "process p { x = 1; y = 2; } process q { y = 1; x = 2; }"
_CORR = "process w { x = 1; x = 2; } process r { int a = 0, b = 0; a = x; b = x; }"

SHAPES: dict[str, tuple[str, list[str], set[tuple[int, ...]]]] = {
    "MP": (_MP, ["r.a", "r.b"], {(0, 0), (0, 1), (1, 1)}),
    "SB": (_SB, ["p.a", "q.a"], {(0, 1), (1, 0), (1, 1)}),
    "LB": (_LB, ["p.a", "q.a"], {(0, 0), (0, 1), (1, 0)}),
    "IRIW": (
        _IRIW,
        ["r.a", "r.b", "s.a", "s.b"],
        set(itertools.product((0, 1), repeat=4)) - {(1, 0, 1, 0)},
    ),
    "2+2W": (_2W, ["x", "y"], {(2, 2), (2, 1), (1, 2)}),
    "CoRR": (_CORR, ["r.a", "r.b"], {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)}),
}
"""Program, what is observed when all have ended, and the outcomes that sequential consistency allows."""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["steps", "clock", "explicit"])
@pytest.mark.parametrize("shape", SHAPES)
def test_litmus_shapes(shape: str, encoding: Any) -> None:
    """All and only the sequentially consistent outcomes."""
    text, names, allowed = SHAPES[shape]
    values = (1, 2) if shape == "2+2W" else (0, 1, 2) if shape == "CoRR" else (0, 1)
    lines, expected = [], {}
    for n, outcome in enumerate(itertools.product(values, repeat=len(names))):
        condition = " && ".join(f"{name} == {value}" for name, value in zip(names, outcome, strict=True))
        lines.append(f"reachable o{n}: done && {condition};")
        expected[f"o{n}"] = "holds" if outcome in allowed else "violated"
    program = parse_program(f"int x = 0, y = 0; {text} {' '.join(lines)}")
    for switch in ("on", "off") if encoding != "explicit" else ("off",):
        verdict = check(program, encoding=encoding, projection=switch)  # type: ignore[arg-type]
        assert {p.name: p.status for p in verdict.properties} == expected
