"""`plait epa compare` shows no difference that need not come from the fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.cli.main import main
from plait.epa.comparison import compare
from plait.epa.faults import Fault
from plait.epa.output.html import comparison_html
from plait.epa.output.text import comparison_lines
from plait.epa.reversibility import check
from tests.epa.conftest import Record


@pytest.mark.slow
def test_runs_that_differ_by_chance_are_not_compared(
    record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """random_seed.c differs from run to run without a fault. Nothing is said to be a way of an error."""
    one, other = record("random_seed.c"), record("random_seed.c")
    page = tmp_path / "page.html"
    code = main(["epa", "compare", str(one.folder), str(other.folder), "--html", str(page)])
    said = capsys.readouterr().out
    assert code == 3
    assert "not comparable" in said
    assert "the golden run is not pseudo-deterministic" in said
    for text in (said, page.read_text(encoding="utf-8")):
        assert "first deviation" not in text.lower()
        assert "Propagation of the" not in text
        assert "propagation:" not in text
        assert "path of the error" not in text
    assert "Not comparable" in page.read_text(encoding="utf-8")
    assert main(["epa", "compare", str(one.folder), str(other.folder), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["comparable"], found["spots"], found["links"], found["threads"]) == (False, [], [], [])
    assert found["doubts"]


@pytest.mark.slow
def test_differences_are_shown_when_asked_for(record: Record) -> None:
    """With `--unsound`, differences are shown, and all forms say that they need not come from a fault."""
    one, other = record("random_seed.c"), record("random_seed.c")
    found = compare(one, other, require=False)
    assert (found.verdict.status, found.comparable) == ("violated", False)
    assert found.spots
    assert found.verdict.warnings
    text = "\n".join(comparison_lines(found))
    assert "NOT COMPARABLE" in text
    assert "path of the error" not in text
    assert "Not comparable" in comparison_html(found)


@pytest.mark.slow
def test_a_racy_golden_run(record: Record) -> None:
    golden = record("racy_counter.c")
    found = compare(golden, golden)
    assert (found.verdict.status, found.equal, found.comparable) == ("inconclusive", True, False)
    assert "reversible: counter" in "\n".join(comparison_lines(found))


@pytest.mark.slow
def test_other_arguments_are_not_a_fault(record: Record) -> None:
    """The golden run is fine, but the second run had another input."""
    one, other = record("kmeans.c", "2", "8"), record("kmeans.c", "2", "9")
    assert check(one).verdict.status == "holds"
    found = compare(one, other)
    assert (found.verdict.status, found.doubts) == (
        "inconclusive",
        ["the runs have different arguments: 2 8 and 2 9"],
    )


@pytest.mark.slow
def test_a_proven_golden_run_is_compared(record: Record) -> None:
    golden = record("listing4.c")
    faulty = record("listing4.c", fault=Fault("bitflip", 5, "T_0_0", 0, 1))
    found = compare(golden, faulty)
    assert (found.comparable, found.doubts, found.proof.verdict.status) == (True, [], "holds")
    assert "NOT COMPARABLE" not in "\n".join(comparison_lines(found))
