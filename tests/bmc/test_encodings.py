"""Both encodings, with and without projections, against the enumeration of all states: on random programs."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.bmc.api import check
from plait.bmc.encoding.steps import StepsEncoding
from plait.bmc.language.compiler import compile_program
from plait.bmc.language.parser import parse
from tests.bmc.encodings import WAYS, compare
from tests.bmc.programs import Random, programs

OTHERS: dict[str, Any] = {
    "steps, ordered": functools.partial(StepsEncoding, projection="none", ordered=True),
    "steps, projected, not ordered": functools.partial(StepsEncoding, projection="later", ordered=False),
    "steps, projected to what is live": functools.partial(StepsEncoding, projection="live"),
}


_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.slow
@settings(max_examples=500, **_SETTINGS)
@given(programs())
def test_encodings_agree_with_the_enumeration(random: Random) -> None:
    compare(random, WAYS)


@pytest.mark.slow
@settings(max_examples=40, **_SETTINGS)
@given(programs())
def test_variants_agree_too(random: Random) -> None:
    compare(random, OTHERS)


@pytest.mark.slow
@settings(max_examples=40, **_SETTINGS)
@given(programs())
def test_bits_wrap_around_as_in_the_interpreter(random: Random) -> None:
    """In four bits, sums and products overflow all the time."""
    compare(Random(random.text.replace("% 3", "* 2"), random.watched), WAYS, width=4)


@pytest.mark.slow
@settings(max_examples=25, **_SETTINGS)
@given(programs())
def test_integers_agree_too(random: Random) -> None:
    """The same formulas over integers instead of bits."""

    def unbounded(kind: Any) -> Any:
        return lambda program, depth, known, _bits, **more: kind(program, depth, known, None, **more)

    compare(random, {"steps": unbounded(WAYS["steps, projected"]), "clock": unbounded(WAYS["clock, projected"])})


@pytest.mark.slow
@settings(max_examples=60, **_SETTINGS)
@given(programs(), st.integers(0, 3), st.sampled_from(["steps", "clock"]), st.sampled_from(["auto", "on"]))
def test_verdicts_of_any_depth_agree_with_the_enumeration(random: Random, depth: int, encoding: Any, how: Any) -> None:
    """Whatever the depth: what is said to hold does so in all states, and what is said to be violated is reached."""
    wanted = {"x": "x != 2", "b": "!b", "p0.t": "p0.t != 2", "f[0]": "!f[0]", "a[0]": "a[0] != 1"}
    clauses = [wanted.get(name, f"{name} != 2") for name in random.watched if name not in ("assertions", "bounds")]
    text = random.text + (f"always wanted: {' && '.join(clauses)};\n" if clauses else "")
    program = compile_program(parse(text, "random"))
    if not program.properties:
        return
    truth = {r.name: r.status for r in check(program, encoding="explicit").properties}
    for result in check(program, depth=depth, encoding=encoding, projection=how).properties:
        assert result.status in (truth[result.name], "inconclusive"), text
