"""Values of Python's library and of derived classes: checks say the same natively and in CPython, and run natively.

`tests/ir/random_library.py` writes random functions on these values. Here they are steps, guards and properties.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plait import System, check
from plait.model.loading.loader import load
from tests.ir.against_cpython import restore
from tests.ir.random_functions import module
from tests.ir.random_library import LibraryWriter, value
from tests.ir.values import Node
from tests.support.library_models import MODELS, NATIVE
from tests.support.natively import compare, share
from tests.support.sourced import compiled

EXAMPLE = Path(__file__).parents[2] / "examples" / "stock.py"
WAYS: dict[str, dict[str, Any]] = {
    "bfs": {},
    "dfs": {"search": "dfs"},
    "symmetry": {"reduce": "symmetry"},
    "por": {"reduce": "por", "counts": False},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_models(kind: str, way: str) -> None:
    found = compare(MODELS[kind], keep_going=True, max_states=2_000, **WAYS[way])
    native, functions = share(found)
    assert native == functions > 0 or kind not in NATIVE


@pytest.mark.parametrize("kind", NATIVE)
def test_the_machine_answers(kind: str) -> None:
    """The first states of a check are asked in CPython, once."""
    statistics = check(MODELS[kind](), native="only", workers=1, max_states=2_000).statistics
    assert statistics.questions - statistics.native_answers <= 1


def test_the_example() -> None:
    statistics = check(load(f"{EXAMPLE}:stock"), native="only", workers=1).statistics
    assert statistics.native_share > 0.99


_ACTOR = """
from plait import Process, System, action, always, durable


class Actor(Process):
{fields}
    left: int = durable(2)
    result: object = None

    @action(when=lambda self: self.left > 0 and len(function_1({tested})) > 0)
    def act(self):
        self.left -= 1
        self.result = function_0({changed})


@always(each=Actor)
def fine(actor):
    return function_2({seen})[0] != 1
"""
PLACES = ("changed", "tested", "seen")


def random_system(seed: int) -> Callable[[], System]:
    """A process that calls random functions on its fields: one in a step, one in a guard, one in a property."""
    source, kinds = module(seed, 3, LibraryWriter)
    of = dict(zip(PLACES, kinds.values(), strict=True))
    fields = [f"{place}{i}" for place in PLACES for i in range(len(of[place]))]
    given = {
        place: ", ".join(f"{'actor' if place == 'seen' else 'self'}.{place}{i}" for i in range(len(of[place])))
        for place in PLACES
    }
    made = compiled(source + _ACTOR.format(fields="\n".join(f"    {name}: object" for name in fields), **given))

    def make() -> System:
        restore()
        r = random.Random(seed)
        values = {f"{place}{i}": value(kind, r) for place in PLACES for i, kind in enumerate(of[place])}
        return System([made.Actor(**values), Node(), Node(), Node()], properties=[made.fine])

    return make


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_systems(first: int) -> None:
    for seed in range(first, first + 20):
        compare(random_system(seed), keep_going=True)
