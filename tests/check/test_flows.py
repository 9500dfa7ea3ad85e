"""No flow from a field to an observation is missed: by the analysis alone, by the audit alone, and by both together."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plait.check.api import check
from plait.check.reduce import plan, relevance
from plait.check.reduce.decomposition import Decomposition, decompose
from plait.kernel.errors import ModelError
from plait.model.loading.loader import load
from plait.model.system import System
from tests.oracle.explorer import explore
from tests.support.agreement import projected
from tests.support.flows import flow
from tests.support.programs import random_program
from tests.support.selections import ALL, RAISES
from tests.support.sourced import compiled


def named(name: str) -> System:
    return flow(**ALL[name])


@pytest.fixture
def unaudited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relevance, "SAMPLED", 0)


@contextlib.contextmanager
def believing(patch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    """The analysis takes this field, and no other, for proven auxiliary."""

    def wrong(system: System, inference: Any) -> Decomposition:
        found = decompose(system, inference)
        fields = [dataclasses.replace(f, auxiliary=f.name == name, reason=()) for f in found.fields]
        return dataclasses.replace(found, fields=tuple(fields))

    with patch.context() as context:
        context.setattr(plan, "decompose", wrong)
        yield


@pytest.mark.parametrize("name", ALL)
def test_a_field_that_flows_into_a_property_is_relevant(name: str) -> None:
    (k,) = (f for f in decompose(named(name), "auto").fields if f.name == "k")
    assert k.reason


def test_a_field_that_flows_nowhere_is_auxiliary() -> None:
    """Otherwise the flows would show nothing."""
    for body in ("pass", "x = [self.k]\nx.append(self.k)", "if self.k:\n    pass", "x = self.k + 1"):
        assert [f.name for f in decompose(flow(body), "auto").fields if f.auxiliary] == ["k"]


@pytest.mark.parametrize("name", RAISES)
def test_a_field_that_decides_whether_a_step_raises_is_relevant(name: str) -> None:
    (k,) = (f for f in decompose(flow(RAISES[name]), "auto").fields if f.name == "k")
    assert k.reason


def test_a_model_with_the_name_of_a_library_module_is_no_library(tmp_path: Path) -> None:
    """Otherwise its special methods would not be seen."""
    file = tmp_path / "mailbox.py"
    file.write_text(inspect.getsource(sys.modules[type(named("operator __eq__").processes[0]).__module__]), "utf-8")
    (k,) = (f for f in decompose(load(str(file)), "auto").fields if f.name == "k")
    assert k.reason


def test_a_decorator_that_wraps_the_handler_is_not_understood() -> None:
    (k,) = (f for f in decompose(flow("pass", decorator="@wrapping"), "auto").fields if f.name == "k")
    assert k.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_audit_alone_ends_a_check_that_would_be_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system = named(name)
    if name == "id":
        with pytest.raises(ModelError, match=r"P\.flow uses id\(\)"):
            check(system, workers=1)
        return
    assert check(system, workers=1).status == "violated"
    with believing(monkeypatch, "k"), pytest.raises(RuntimeError, match=r"took P\.k for auxiliary") as caught:
        check(system, workers=1, reduce="decomposition")
    said = str(caught.value)
    assert "k = 0" in said
    assert "k = 1" in said


def test_without_the_audit_a_wrong_analysis_would_give_a_wrong_verdict(
    monkeypatch: pytest.MonkeyPatch, unaudited: None
) -> None:
    with believing(monkeypatch, "k"):
        assert check(named("map of a bound method"), workers=1, reduce="decomposition").status == "holds"


# -- random programs ---------------------------------------------------------------------------------------------------


def outcome(system: System, **options: Any) -> Any:
    """The verdicts and the number of states; "error" if a step raises."""
    try:
        verdict = check(system, workers=1, keep_going=True, max_states=1500, **options)
    except ModelError:
        return "error", 0
    if verdict.bound is not None:
        return "limit", 0
    return sorted((p.name, p.status) for p in verdict.properties), verdict.statistics.states


def compare(seed: int) -> bool:
    """Whether some field was auxiliary. Then the reduced search gives the same verdicts and reaches the same values."""
    system = compiled(random_program(random.Random(seed))).system
    found = decompose(system, "auto")
    if not found:
        return False
    plain, states = outcome(system)
    if plain == "limit":
        return False
    reduced, fewer = outcome(system, reduce="decomposition")
    assert reduced == plain, seed
    assert outcome(system, reduce="auto")[0] == plain, seed
    if plain != "error" and states <= 300:
        truth = explore(system, limit=400)
        assert truth.complete
        assert fewer == len({projected(system, found, state) for state in truth.seen}), seed
    return True


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.slow
def test_random_programs(unaudited: None) -> None:
    """By the analysis alone."""
    assert sum(map(compare, range(40))) > 10


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.slow
def test_random_programs_pass_the_audit() -> None:
    """A right proof is not refused."""
    assert sum(map(compare, range(40, 60))) > 5


# -- what the proof assumes --------------------------------------------------------------------------------------------

_ASSUMING = """
import importlib
from dataclasses import dataclass
from plait import *

class Note(Message):
    value: int
    more: object = None

{hidden}
class Sender(Process):
    sent: bool = False
    @action(when=lambda self: not self.sent)
    def start(self):
        self.sent = True
        self.send(Receiver.pid(0), Note({sent}))

class Receiver(Process):
    n: int = 0
    log: list[object] = field(default_factory=list)
    @on(Note)
    def hear(self, m):
        self.log = [m.more]
        if self.log == [1]:
            self.log = [m.value + 1]
        self.n += 1

@always
def few(s):
    return all(p.n < 9 for p in s[Receiver])

system = System([Sender(), Receiver()], properties=[few])
"""


def test_an_annotation_of_a_message_that_the_proof_relies_on_is_checked() -> None:
    system = compiled(_ASSUMING.format(hidden="", sent="1")).system
    assert [f.label for f in decompose(system, "auto").fields if f.auxiliary] == ["Receiver.log"]
    assert check(system, reduce="decomposition").status == "holds"
    system = compiled(_ASSUMING.format(hidden="", sent="None")).system
    with pytest.raises(ModelError, match=r"Note\.value is annotated int, but a message has None there"):
        check(system, reduce="decomposition")


def test_a_class_that_the_analysis_did_not_see_is_refused() -> None:
    hidden = "TABLE = {'Odd': 0}\nfor name in TABLE:\n    @dataclass\n    class Odd:\n        x: int = 0\n"
    hidden += "        def __eq__(self, other):\n            return bool(other)\n"
    system = compiled(_ASSUMING.format(hidden=hidden, sent="1, globals()['Odd']()")).system
    assert "Receiver.log" in [f.label for f in decompose(system, "auto").fields if f.auxiliary]
    with pytest.raises(ModelError, match="a message has a value of Odd, which no handler refers to by its name"):
        check(system, reduce="decomposition")
