"""Algorithms with shared memory: as many states and transitions as Spin finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait import check
from plait.bench.errors import MissingError
from plait.bench.peers.spin import Spin
from plait.kernel.verdict import Statistics
from plait.model.loading.loader import load

EXAMPLES = Path(__file__).parents[3] / "examples" / "shared"

PETERSON = """
bool flag[2];
byte turn;

active [2] proctype thread() {
again:
  flag[_pid] = true;
  turn = 1 - _pid;
  (!flag[1 - _pid] || turn == _pid);
  flag[_pid] = false;
  goto again
}
"""
DEKKER = """
bool wants[2];
byte turn;

active [2] proctype thread() {
again:
  wants[_pid] = true;
look:
  if
  :: !wants[1 - _pid]
  :: d_step { wants[1 - _pid] && turn != _pid -> wants[_pid] = false }
     d_step { turn == _pid -> wants[_pid] = true }
     goto look
  fi;
  turn = 1 - _pid;
  wants[_pid] = false;
  goto again
}
"""


def counted(name: str) -> Statistics:
    return check(load(str(EXAMPLES / f"{name}.py"), {}, parse=False), keep_going=True).statistics


@pytest.mark.parametrize(("name", "states", "transitions"), [("peterson", 20, 34), ("dekker", 32, 54)])
def test_counts_of_spin(name: str, states: int, transitions: int) -> None:
    """The numbers that Spin 6.5.2 gives for the models below."""
    found = counted(name)
    assert (found.states, found.transitions) == (states, transitions)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), [("peterson", PETERSON), ("dekker", DEKKER)])
def test_spin_counts_the_same(name: str, model: str, tmp_path: Path) -> None:
    spin = Spin(optimization="-O1")
    try:
        spin.version()
    except MissingError as missing:
        pytest.skip(str(missing))
    run = spin.verifier(model, 100, tmp_path)
    import subprocess

    done = subprocess.run(run.command, cwd=run.cwd, capture_output=True, text=True, check=False)
    theirs, ours = spin.read(done.stdout, done.returncode), counted(name)
    assert (theirs.states, theirs.transitions) == (ours.states, ours.transitions)
