"""The guide for people who know another checker: its listings are the same model, and each checker finds the same states.

The number of states is published: TwoPhase with three resource managers in TLC, examples/2pc.rs of Stateright.
Spin, TLC and Stateright run where they are installed, as in tests/bench/peers/.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plait import check
from plait.bench.errors import MissingError
from plait.bench.peers import process
from plait.bench.peers.checker import MODELS, Case, Checker, Counts, Run
from plait.bench.peers.spin import Spin
from plait.bench.peers.stateright import CRATE, Stateright
from plait.bench.peers.tlc import Tlc
from plait.model.loading.loader import load
from tests.oracle.explorer import explore
from tests.support.markdown import ROOT, blocks
from tests.support.patience import PATIENCE

PAGE = ROOT / "docs" / "guides" / "coming-from.md"
CASE = Case("two_phase_commit", (3,), 288)
TRANSITIONS = 1_145


def listing(language: str) -> str:
    """The parts of the model in one language, one after the other."""
    found = [block for block in blocks(PAGE, language) if block.file is not None]
    assert len(found) == 3
    assert len({block.file for block in found}) == 1
    return "\n\n".join(block.text for block in found)


def code(text: str, comment: str) -> list[str]:
    """The lines of a text, without empty ones and those that begin as a comment."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith(comment)]


def measured(checker: Checker, run: Run) -> Counts:
    done = process.run(run.command, cwd=run.cwd, timeout=PATIENCE)
    return checker.read(done.output, done.code)


def installed(checker: Checker) -> None:
    """Skip the test if a checker is not here."""
    try:
        checker.version()
    except MissingError as missing:
        pytest.skip(f"{missing}; {missing.hint}")


def test_plait(workplace: Path) -> None:
    (workplace / "commit.py").write_text(listing("python"))
    found = check(load("commit.py", {}))
    truth = explore(load("commit.py", {}))
    assert (found.status, found.statistics.states, found.statistics.transitions) == ("holds", CASE.states, TRANSITIONS)
    assert (truth.states, truth.transitions, truth.violated) == (CASE.states, TRANSITIONS, set())
    assert f"same {CASE.states} states and {TRANSITIONS:,} transitions" in PAGE.read_text(encoding="utf-8")


def test_a_wrong_model_in_plait(workplace: Path) -> None:
    guard = " and len(self.noted) == self.managers"
    assert listing("python").count(guard) == 1
    (workplace / "commit.py").write_text(listing("python").replace(guard, ""))
    assert check(load("commit.py", {})).property == "consistency"


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_spin(wrong: bool, tmp_path: Path) -> None:
    spin = Spin(optimization="-O0")
    installed(spin)
    guard = " && noted[0] && noted[1] && noted[2]"
    model = listing("promela")
    assert model.count(guard) == 1
    run = spin.verifier(model.replace(guard, "") if wrong else model, CASE.states, tmp_path)
    found = measured(spin, run)
    assert found.violated == wrong
    if not wrong:
        assert (found.states, found.transitions) == (CASE.states, TRANSITIONS)


@pytest.mark.slow
def test_tlc(tmp_path: Path) -> None:
    tlc = Tlc()
    if not tlc.fetched.exists():
        pytest.skip("TLC is not fetched: plait bench peers does")
    installed(tlc)
    run = tlc.prepare(CASE, 1, tmp_path)
    assert run.cwd is not None
    (run.cwd / "TwoPhaseCommit.tla").write_text(listing("tla"), encoding="ascii")
    found = measured(tlc, run)
    assert (found.states, found.transitions, found.violated) == (CASE.states, TRANSITIONS, False)


@pytest.mark.slow
def test_stateright(tmp_path: Path) -> None:
    """The program is built from the listing: see below."""
    stateright = Stateright()
    if not stateright.program.exists():
        pytest.skip("Stateright is not built: plait bench peers does")
    installed(stateright)
    found = measured(stateright, stateright.prepare(CASE, 1, tmp_path))
    assert (found.states, found.transitions) == (CASE.states, TRANSITIONS)


@pytest.mark.parametrize(
    ("language", "file", "comment"),
    [
        ("tla", MODELS / "TwoPhaseCommit.tla", "(*"),
        ("rust", CRATE / "src" / "two_phase_commit.rs", "//!"),
    ],
    ids=["TLA+", "Rust"],
)
def test_the_listing_is_the_model_of_the_benchmark(language: str, file: Path, comment: str) -> None:
    """So `plait bench peers` compares the states of the listing with Plait's."""
    assert code(listing(language), comment) == code(file.read_text(encoding="utf-8"), comment)
