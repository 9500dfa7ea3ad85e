"""A search leaves nothing in memory: tests and notebooks check many models in one process."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import plait
from plait.check.tabulate.tabulation import Tabulation
from plait.protocols.paxos import paxos
from plait.protocols.uniform_voting import uniform_voting
from plait.rounds.check import check_rounds


def living() -> int:
    gc.collect()
    return sum(isinstance(o, Tabulation) for o in gc.get_objects())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"native": "off"},
        {"search": "dfs", "reduce": "por"},
        {"search": "random", "walks": 5},
        {"reduce": "auto"},
    ],
    ids=str,
)
@pytest.mark.parametrize("faulty", ["", "acceptor"])
def test_the_answers_of_a_model_are_freed(faulty: str, options: dict[str, Any]) -> None:
    before = living()
    plait.check(paxos(**{"faulty": faulty} if faulty else {}), max_states=2000, **options)
    assert living() == before


def test_the_answers_of_a_sequential_program_are_freed() -> None:
    before = living()
    check_rounds(uniform_voting(), phases=1)
    assert living() == before
