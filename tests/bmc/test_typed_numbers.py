"""Numbers with a type, bitwise operators and C's division: formulas against the interpreter and Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.bmc.encodings import WAYS, compare_program
from tests.bmc.typed_programs import Typed, text, typed_programs

_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
STEPS = {name: way for name, way in WAYS.items() if name.startswith("steps")}
ORDERED = {"steps, ordered": WAYS["steps"].func}
DEEPEST = 4


@pytest.mark.slow
@settings(max_examples=400, **_SETTINGS)
@given(typed_programs())
def test_encodings_agree_with_the_enumeration(typed: Typed) -> None:
    compare_program(typed.program, typed.watched, WAYS | ORDERED, text(typed.program), deepest=DEEPEST)


@pytest.mark.slow
@settings(max_examples=200, **_SETTINGS)
@given(typed_programs(exclusive=True, counters=True))
def test_atomic_sections_and_program_counters(typed: Typed) -> None:
    compare_program(typed.program, typed.watched, STEPS | ORDERED, text(typed.program), deepest=DEEPEST)
