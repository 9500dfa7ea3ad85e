"""Random functions as steps, guards and properties, on values of Python's library: natively as in CPython."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from plait import System
from tests.ir.against_cpython import restore
from tests.ir.random_functions import module
from tests.ir.random_library import LibraryWriter, value
from tests.ir.values import Node
from tests.support.natively import compare
from tests.support.sourced import compiled

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
