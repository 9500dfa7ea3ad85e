"""The skill for coding agents does what it says: every listing is a file, every command is run and prints what is shown."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from plait.model.loading.loader import zoo
from tests.support.markdown import ROOT, blocks

SKILL = ROOT / "docs" / "agents" / "plait" / "SKILL.md"
LLMS = ROOT / "docs" / "llms.txt"
ELLIPSIS = "…"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the skill, and with `plait` and `python` to run."""
    for block in blocks(SKILL, "python"):
        assert block.file is not None, f"line {block.line}: a listing without the name of its file"
        (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("plait", "-m plait.cli.main"), ("python", "")):
        file = programs / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', encoding="utf-8")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def commands() -> list[tuple[str, list[str]]]:
    """The commands of the skill in their order, each with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(SKILL, "console"):
        for line in block.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


@pytest.mark.slow
def test_commands_print_what_is_shown(folder: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"
    assert len(commands()) >= 6
    for command, expected in commands():
        result = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if expected[0].startswith("error:") else subprocess.PIPE,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        pattern = "".join(
            r"(?:.*\n)*?" if line == ELLIPSIS else re.escape(line.rstrip()) + r" *\n" for line in expected
        )
        assert re.fullmatch(pattern, result.stdout), f"{command}\n{result.stdout}\n{result.stderr}"


@pytest.mark.slow
def test_the_exit_codes_are_those_of_the_table(folder: Path) -> None:
    for arguments, code in (
        (["payment.py", "-p", "remembers=true"], 0),
        (["payment.py"], 1),
        (["payment.py", "-p", "repeats=many"], 2),
        (["payment.py", "-p", "remembers=true", "--max-states", "5"], 3),
    ):
        result = subprocess.run(
            [sys.executable, "-m", "plait.cli.main", "check", *arguments, "--json", "--quiet"],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert result.returncode == code, result.stderr
        assert re.search(rf"\| {code} \|", SKILL.read_text(encoding="utf-8"))


def test_the_skill_begins_as_skills_do() -> None:
    text = SKILL.read_text(encoding="utf-8")
    assert re.match(r"---\nname: plait\ndescription: .*?\n---\n", text, re.DOTALL)
    assert len(text.splitlines()) < 300, "an agent reads all of it"


def test_names_that_the_skill_mentions_exist() -> None:
    import plait

    rules = SKILL.read_text(encoding="utf-8").partition("Rules of a model file")[2].partition("## Check")[0]
    for name in set(re.findall(r"`(?:@)?([a-z_]+)\(", rules)) - {"self"}:
        assert name in plait.__all__, name


@pytest.mark.slow
def test_links_of_llms_txt_lead_somewhere() -> None:
    text = LLMS.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 10
    for target in targets:
        assert (LLMS.parent / target).exists(), target
    assert f"{len(zoo())} protocols" in text
