"""Inputs that are only compared with constants: a few of their values give the same verdicts as all of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from plait.bmc import check, parse_program
from plait.bmc.analysis.representatives import Representatives, Source
from plait.bmc.c.load import load_c
from plait.bmc.execution import lowering
from plait.bmc.execution.native import Enumeration
from plait.bmc.program.definition import Domain, Program


def random_text(seed: int) -> str:
    """Two processes that choose numbers from -8 to 8, copy them and compare them, mostly with constants."""
    rng = random.Random(seed)

    def condition() -> str:
        one = rng.choice(["t", "x", "y"])
        other = rng.choice(["t", "x"]) if rng.random() < 0.04 else str(rng.randint(-9, 9))
        return f"{one} {rng.choice(['==', '!=', '<', '<=', '>', '>='])} {other}"

    def statement(depth: int) -> str:
        kind = rng.choice(["havoc", "havoc", "copy", "copy", "constant", "if", "if", "assume", "assert", "sum"])
        to, source = rng.choice(["t", "x", "y"]), rng.choice(["t", "x", "y"])
        match kind:
            case "havoc":
                return f"havoc {to} in -8..8;"
            case "copy":
                return f"{to} = {condition()} ? {source} : {rng.choice(['t', '3'])};" if depth else f"{to} = {source};"
            case "constant":
                return f"{to} = {rng.randint(-3, 3)};"
            case "sum" if rng.random() < 0.1:
                return f"{to} = {source} + 1;"
            case "assume":
                return f"assume({condition()});"
            case "assert":
                return f"assert({condition()});"
            case _ if depth < 2:
                return f"if ({condition()}) {{ {statement(depth + 1)} }} else {{ {statement(depth + 1)} }}"
            case _:
                return "skip;"

    def process(name: str) -> str:
        body = " ".join(statement(0) for _ in range(rng.randint(3, 5)))
        return f"process {name} {{ int t = 0; havoc t in -8..8; {body} }}"

    properties = f"always one: {condition().replace('t', 'p.t')}; final two: {condition().replace('t', 'q.t')};"
    return f"int x = 0, y = 0; {process('p')} {process('q')} {properties}"


def found(program: Program) -> tuple[object, ...]:
    """Whether all states were seen, and the lengths of the shortest runs to each violation and to a deadlock."""
    watched = [p.bad for p in program.properties]
    result = Enumeration(program, watched=watched, deadlock=True).run()
    runs = [*result.found, result.deadlock]
    return result.stopped, [None if run is None else len(run.steps) for run in runs]


@pytest.mark.slow
def test_a_few_values_decide_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = 0
    for seed in range(60):
        program = parse_program(random_text(seed))
        everything = found(program)
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "MOST_VALUES", 4)  # 17 values are too many now
            few = found(program)
        if few[0] != "inputs":
            decided += 1
            assert few == everything, random_text(seed)
    assert decided > 20


def first(body: str) -> list[int] | None:
    """The values for the input of the first step."""
    program = parse_program(f"int x = 0, a[3] = 0; process p {{ int t = 0; havoc t; {body} }}")
    return Representatives(program, []).values(Source(0, 0, 0), Domain("int"))


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("if (t > 3) { x = 1; }", [2, 3, 4]),
        ("x = t; if (x == 1 || 5 < t) { skip; }", [0, 1, 2, 5, 6]),
        ("x = t > 0 ? t : 9; assume(x != 2);", [-1, 0, 1, 2, 3]),
        ("x = t;", [0]),
        ("if (t > x) { skip; }", None),
        ("x = t + 1; assert(x != 4);", None),
        ("a[1] = t; assert(a[1] != 4);", None),
        ("assume(0 <= t && t < 3); a[t] = 1;", None),
    ],
)
def test_which_values_stand_for_all(body: str, values: list[int] | None) -> None:
    assert first(body) == values


ENDLESS = """
#include <assert.h>
#include <pthread.h>
int __VERIFIER_nondet_int(void);
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int busy;
void *worker(void *arg) {
  for (;;) {
    int command = __VERIFIER_nondet_int();
    if (command == 77) break;
    if (command > 0) pthread_mutex_lock(&lock);
    busy = 1;
    busy = 0;
    if (command > LIMIT) pthread_mutex_unlock(&lock);
  }
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  while (__VERIFIER_nondet_int()) {
    pthread_mutex_lock(&lock);
    int seen = busy;
    assert(seen == 0 || seen == 1);
    pthread_mutex_unlock(&lock);
  }
  return 0;
}
"""


@pytest.mark.parametrize(("limit", "expected"), [(0, {"holds"}), (1, {"holds", "violated"})])
def test_an_endless_loop_with_inputs_is_enumerated(limit: int, expected: set[str], tmp_path: Path) -> None:
    file = tmp_path / "endless.c"
    file.write_text(ENDLESS, encoding="utf-8")
    verdict = check(load_c(file, macros={"LIMIT": limit}), encoding="explicit")
    assert {p.status for p in verdict.properties} == expected
