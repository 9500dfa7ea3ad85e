"""Every model of the zoo and every example is lowered: which functions CPython still runs, and why."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from plait._native import Codec
from plait.check.live.search import flattened
from plait.ir.lower import Lowered, lower
from plait.kernel.errors import ModelError
from plait.kernel.pid import Pid
from plait.model.loading.loader import load
from plait.model.system import System
from tests.ir.models import EXAMPLES, ROOT, ZOO, variants

IN_PYTHON: dict[str, str] = {}
"""Functions that CPython runs, by model and label, and the reason."""


def lowered(system: System) -> Lowered:
    return lower(flattened(system, system.properties), Codec(Pid).encode)


@pytest.mark.parametrize("name", ZOO)
def test_every_variant_of_a_protocol_is_lowered(name: str) -> None:
    model = getattr(importlib.import_module(f"plait.protocols.{name}"), name)
    made = 0
    for parameters in variants(model, name):
        try:
            system = model(**parameters)
        except ModelError:  # these parameters exclude each other
            continue
        made += 1
        found = {f"{name}: {f.label}": str(f.reason) for f in lowered(system).functions if f.reason is not None}
        assert {k: v for k, v in found.items() if IN_PYTHON.get(k) != v} == {}, parameters
    assert made > 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_lowered(name: str) -> None:
    target = f"examples/{name}.py"
    found = lowered(load(str(ROOT / target)))
    assert {f.label: str(f.reason) for f in found.functions if f.reason is not None} == {}


def test_labels_files_and_lines() -> None:
    from plait.protocols.raft import raft

    found = {f.label: f for f in lowered(raft()).functions}
    assert {"Server.vote", "guard of Server.vote", "quorum of Server.win", "property log_matching"} <= set(found)
    vote = found["Server.vote"]
    lines = Path(vote.file).read_text(encoding="utf-8").splitlines()
    assert "RequestVote" in lines[vote.line - 1]  # the decorator
