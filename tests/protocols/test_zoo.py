"""What holds for every protocol of the zoo: how it is listed and documented, and that each of its faults is found.

A new protocol with a parameter `faulty` gets lines in `tests/support/twins.py`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import get_args, get_type_hints

import pytest

from plait import System, check
from plait.cli.main import main
from plait.model.loading.loader import zoo
from tests.oracle.explorer import evaluate, explore
from tests.oracle.replay import replay
from tests.support.twins import TWINS, Twin, model

PROTOCOLS = sorted(name.replace("-", "_") for name in zoo())


EVERY_PROTOCOL = pytest.mark.parametrize("name", PROTOCOLS)
EVERY_WALKED_TWIN = pytest.mark.parametrize("twin", [twin for twin in TWINS if twin.walks], ids=str)
EVERY_SHALLOW_TWIN = pytest.mark.parametrize("twin", [twin for twin in TWINS if twin.shallow], ids=str)


def faults(name: str) -> tuple[str, ...]:
    """The faults that a protocol's parameter `faulty` can plant."""
    faulty = get_type_hints(model(name)).get("faulty")
    return tuple(fault for fault in get_args(faulty) if fault != "none")


# -- documentation ----------------------------------------------------------------------------------------------------


def test_the_zoo_lists_each_protocol_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0].replace("-", "_") for line in lines] == PROTOCOLS
    assert all(line.endswith(".") for line in lines), lines


@EVERY_PROTOCOL
def test_a_protocol_says_what_was_simplified(name: str) -> None:
    doc = inspect.getdoc(importlib.import_module(f"plait.protocols.{name}")) or ""
    assert re.search(r"^Simplifi(ed|cations)\b", doc, re.MULTILINE), "add a paragraph that begins with 'Simplified: '"


@EVERY_PROTOCOL
def test_a_protocol_has_a_documented_model(name: str) -> None:
    function = model(name)
    assert get_type_hints(function)["return"] is System
    assert inspect.getdoc(function)
    assert function().name == name
    assert all(p.default is not p.empty for p in inspect.signature(function).parameters.values())


@EVERY_PROTOCOL
def test_properties_have_a_line_of_documentation_and_one_says_that_something_happens(name: str) -> None:
    properties = model(name)().properties
    assert all(prop.doc for prop in properties), [prop.name for prop in properties if not prop.doc]
    assert {"always", "reachable"} <= {prop.kind for prop in properties}


@EVERY_PROTOCOL
def test_faults_are_documented_and_tested(name: str) -> None:
    doc = inspect.getdoc(importlib.import_module(f"plait.protocols.{name}")) or ""
    for fault in faults(name):
        assert re.search(rf"[`\"]{fault}[`\"]", doc), f"the module does not say what faulty={fault!r} is"
        assert any(t.protocol == name and t.parameters.get("faulty") == fault for t in TWINS), f"add {fault} to TWINS"


# -- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@EVERY_PROTOCOL
@pytest.mark.parametrize("reduce", ["none", "auto"])
def test_the_protocol_is_sound(name: str, reduce: str) -> None:
    verdict = check(model(name)(), reduce=reduce)
    assert verdict.status == "holds", str(verdict)
    assert verdict.statistics.states < 1_000_000
    assert verdict.warnings == []


@pytest.mark.slow
@EVERY_SHALLOW_TWIN
def test_twins_are_violated(twin: Twin) -> None:
    """The oracle can run the counterexample, and finds the property broken. Where there are few states, it counts, too."""
    system = twin.system()
    verdict = check(system, workers=1)
    assert verdict.trace is not None
    assert (verdict.property, len(verdict.trace)) == (twin.violated, twin.length)
    end = replay(system, verdict.trace)
    assert end is not None
    assert not evaluate(system, end, next(prop for prop in system.properties if prop.name == twin.violated))
    if verdict.statistics.states < 2_000:
        truth = explore(twin.system(), limit=5_000, until=twin.violated)
        assert truth.properties[twin.violated].length == twin.length


@pytest.mark.slow
@EVERY_SHALLOW_TWIN
def test_twins_are_violated_with_every_reduction(twin: Twin) -> None:
    assert check(twin.system(), reduce="auto").property == twin.violated


@pytest.mark.slow
@EVERY_WALKED_TWIN
def test_random_walks_find_twins(twin: Twin) -> None:
    found = check(twin.system(), search="random", walks=twin.walks, properties=[twin.violated], workers=1)
    assert found.property == twin.violated
    assert found.trace is not None
    assert len(found.trace) >= twin.length


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_description_does_not_refer_to_a_module(name: str) -> None:
    """`plait show` prints it where there is no module to see."""
    module = importlib.import_module(f"plait.protocols.{name}")
    assert "module" not in (inspect.getdoc(getattr(module, name)) or "").splitlines()[0]
