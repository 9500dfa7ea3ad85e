"""One property of a program whose threads stop at a failed check: what follows is not called safe."""

from __future__ import annotations

from pathlib import Path

from plait.bmc import check
from plait.bmc.load import load

NULL = """#include <assert.h>
int *p = 0;
int main(void) { *p = 1; assert(0); return 0; }
"""


def test_a_property_does_not_hold_behind_a_failed_check(tmp_path: Path) -> None:
    (tmp_path / "null.c").write_text(NULL)
    program = load(str(tmp_path / "null.c"))
    verdict = check(program, properties=["assertions"])
    assert (verdict.status, [p.name for p in verdict.properties]) == ("inconclusive", ["assertions"])
    assert verdict.bound == "the check memory fails, and its thread stops there"
    assert check(program).property == "memory"
