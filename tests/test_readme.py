"""The README does what it says: its code is the example, its commands print what it shows, its picture is the tool's.

After a change of the drawing, write the pictures anew: PLAIT_WRITE=1 pytest tests/test_readme.py
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from plait.check.api import check
from plait.model.loading.loader import load, zoo
from plait.report.itf import load_trace
from plait.report.space_time.svg import space_time
from tests.support.command import ELLIPSIS, plait
from tests.support.markdown import ROOT, Block, blocks

README = ROOT / "README.md"
EXAMPLE = ROOT / "examples" / "lease.py"
PICTURE = ROOT / "docs" / "images" / "lease.svg"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that has the examples where a clone has them."""
    shutil.copytree(EXAMPLE.parent, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def commands() -> list[tuple[str, list[str]]]:
    """The `plait` commands of the README, each with the lines it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(README, "console"):
        for line in block.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return [(command, lines) for command, lines in found if command.startswith("plait ")]


def test_the_code_is_the_example() -> None:
    code = blocks(README, "python")[0].text
    assert code == EXAMPLE.read_text(encoding="utf-8")


def test_the_example_is_about_forty_lines() -> None:
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len([line for line in lines if not line.strip().startswith('"""')]) <= 42


@pytest.mark.slow
@pytest.mark.parametrize(("command", "expected"), commands(), ids=[c for c, _ in commands()])
def test_commands_print_what_is_shown(clone: Path, command: str, expected: list[str]) -> None:
    """Line by line, where an ellipsis stands for any number of lines."""
    result = plait(command.split()[1:], clone)
    assert result.returncode == (1 if expected[0].startswith("VIOLATED") else 0), result.stderr
    pattern = "".join(r"(?:.*\n)*?" if line == ELLIPSIS else re.escape(line) + r"\n" for line in expected)
    assert re.fullmatch(pattern, result.stdout), result.stdout


@pytest.mark.slow
def test_the_replay_command_replays(clone: Path) -> None:
    plait(["check", "examples/lease.py"], clone)
    shown = next(line for _, lines in commands() for line in lines if line.startswith("replay: plait "))
    result = plait(shown.split()[2:], clone)
    assert result.returncode == 0, result.stderr
    assert "reproduced: property no_stale_write is violated after 7 steps" in result.stdout


@pytest.mark.slow
def test_the_picture_is_what_the_tool_draws(clone: Path) -> None:
    plait(["check", "examples/lease.py", "--trace", "lease.itf.json"], clone)
    drawn = space_time(load_trace(clone / "lease.itf.json"))
    if os.environ.get("PLAIT_WRITE"):
        PICTURE.write_text(drawn, encoding="utf-8")
    shown = PICTURE.read_text(encoding="utf-8")
    assert shown == drawn, "draw it anew: PLAIT_WRITE=1 pytest tests/test_readme.py"
    size = re.search(r'width="(\d+)"', drawn)
    assert size is not None
    assert 'src="docs/images/lease.svg"' in README.read_text(encoding="utf-8")
    assert f'width="{size[1]}"' in README.read_text(encoding="utf-8")


GRAPHS = [
    ("two_messages", "none", "two_messages"),
    ("two_messages", "decomposition", "two_messages_decomposition"),
    ("two_actors", "none", "two_actors"),
    ("two_actors", "symmetry", "two_actors_symmetry"),
    ("diamond", "none", "diamond"),
    ("diamond", "por", "diamond_por"),
]
"""Example, reductions, and the picture in docs/images that shows its states."""


@pytest.mark.slow
@pytest.mark.parametrize(("example", "reduce", "picture"), GRAPHS, ids=[picture for *_, picture in GRAPHS])
def test_the_graphs_are_what_the_tool_draws(clone: Path, example: str, reduce: str, picture: str) -> None:
    result = plait(["graph", f"examples/{example}.py", "--reduce", reduce, "-o", "graph.svg"], clone)
    assert result.returncode == 0, result.stderr
    drawn = (clone / "graph.svg").read_text(encoding="utf-8")
    file = PICTURE.with_name(f"{picture}.svg")
    if os.environ.get("PLAIT_WRITE"):
        file.write_text(drawn, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == drawn, "draw it anew: PLAIT_WRITE=1 pytest tests/test_readme.py"


def test_the_numbers_for_five_clients() -> None:
    text = README.read_text(encoding="utf-8")
    found = check(load(str(EXAMPLE), {"clients": 5, "fencing": True}, parse=False), workers=1).statistics
    assert f"`-p clients=5`), this model has {found.states:,} states and {found.transitions:,} transitions" in text
    assert 1100 < found.questions < 1300, "about 1,200 questions"
    assert found.native_share > 0.8, "most of these questions"


@pytest.mark.slow
def test_the_numbers_of_the_reductions() -> None:
    text = README.read_text(encoding="utf-8")
    full = check(load("paxos", {"quorum": False}, parse=False), workers=1).statistics.states
    reduced = check(load("paxos", {"quorum": False}, parse=False), workers=1, reduce="auto").statistics.states
    assert f"searches {reduced:,} states instead of {full:,}" in text


def test_the_size_of_the_zoo() -> None:
    assert f"**{len(zoo())} protocols**" in README.read_text(encoding="utf-8")


def test_the_speeds_are_those_of_the_tables() -> None:
    """The README shows some rows of the peers' table."""
    table = (ROOT / "docs" / "internals" / "results.md").read_text(encoding="utf-8")
    rows = {
        "Paxos (3, 3, 1)": "Paxos (3, 3, 1)",
        "Two-phase commit, 8": "Two-phase commit, 8 resource managers",
        "Raft, 4 servers": "Raft, 4 servers",
        "Lamport's mutual exclusion, 3": "Lamport mutex, 3 processes, clocks to 6",
    }
    for shown, setting in rows.items():
        measured = dict(re.findall(rf"^\| {re.escape(setting)} \| (\w+) \| [\d,]+ \| ([\d.]+) s ", table, re.MULTILINE))
        states = re.search(rf"^\| {re.escape(setting)} \| Plait \| ([\d,]+) ", table, re.MULTILINE)
        assert states is not None
        times = [
            f" {measured[name]} s " if name in measured else " " for name in ("Plait", "Spin", "Stateright", "TLC")
        ]
        assert f"| {shown} | {states[1]} |{'|'.join(times)}|" in README.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/index.md", "docs/reference/cli.md"])
def test_files_of_tests_pass(pytester: pytest.Pytester, page: str) -> None:
    """What the pages show as a test file, run by pytest next to the examples."""
    files: list[Block] = [block for block in blocks(ROOT / page, "python") if block.file is not None]
    assert files
    for block in files:
        (pytester.path / str(block.file)).write_text(block.text, encoding="utf-8")
    shutil.copy(EXAMPLE, pytester.path)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-W", "error")
    assert result.ret == 0
    result.assert_outcomes(passed=4 if page == "docs/index.md" else 9)


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)", README.read_text(encoding="utf-8"), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
