"""The virtual machine gives the answers of CPython to every question of a search, on the zoo and the examples."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from plait import check
from plait.model.loading.loader import load
from tests.ir.compared import ASKED, BAILS, comparing
from tests.ir.models import EXAMPLES, ROOT, ZOO


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_the_machine_answers_as_cpython_does(name: str) -> None:
    model = getattr(importlib.import_module(f"plait.protocols.{name}"), name)
    with comparing():
        check(model(), max_states=200, keep_going=True)
        assert sum(ASKED.values()) > 20
        assert not BAILS


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_machine_answers_as_cpython_does_in_examples(name: str) -> None:
    with comparing():
        check(load(str(Path(ROOT) / "examples" / f"{name}.py")), max_states=100, keep_going=True)
        assert ASKED
        assert not BAILS
