"""A page of the documentation, followed as a terminal session in an empty folder.

What a page has, in its order:

- a listing with a title, ```python title="cache.py"```, goes into that file. A definition replaces the one of the same
  name that the file has; new definitions go before it, or to the end of the file. A title that ends in ", complete"
  shows what the file is by now.
- a command of a ```console block, `$ plait check cache.py`, is run, and must print what the page shows. A line `…` stands
  for any number of lines, and `…` within a line for any text; columns of such a line may be wider or narrower.
- of a workflow for CI, ```yaml title="….yml"```, the steps that run `plait` or `pytest` must succeed.
- a picture or a report after `<!-- drawn from: FILE -->` must be what Plait makes of that file of the session. With
  PLAIT_WRITE=1 in the environment it is written anew.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from plait.report.itf import load_trace
from plait.report.space_time.svg import space_time
from tests.support.command import ELLIPSIS
from tests.support.markdown import ROOT

COMPLETE = ", complete"
"""Ends the title of a listing that shows a whole file once more."""

_PART = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?(?: hl_lines="[^"]+")?\n(?P<text>.*?)^```$'
    r"|^<!-- drawn from: (?P<source>\S+) -->\n!?\[[^\]]*\]\((?P<target>[^)]+)\)",
    re.MULTILINE | re.DOTALL,
)
_VARYING = re.compile(
    r"<dt>(?:time|states/s|memory|visited set|workers|states|transitions|collision probability|python calls|questions|"
    r"local states)</dt>"
    r"<dd>[^<]*</dd>|<p class=\"claim\">.*</p>"
)
"""What in a report depends on the machine."""
_PROGRESS = re.compile(r"^\w+ [\d.]+s · .* states · .*\n", re.MULTILINE)
"""A line of progress: a search that takes long prints it, even if no terminal shows it. On a busy machine all take long."""


class Command(NamedTuple):
    """A command and the lines that it is said to print."""

    line: str
    expected: list[str]


class Listing(NamedTuple):
    """A file, or definitions that go into it."""

    file: str
    text: str


class Drawing(NamedTuple):
    """A picture or a report of the page, and the file of the session that it is made from."""

    target: str
    source: str


def parts(page: Path) -> Iterator[Command | Listing | Drawing]:
    """What a reader does on a page, in order."""
    for match in _PART.finditer(page.read_text(encoding="utf-8")):
        if match["source"]:
            yield Drawing(match["target"], match["source"])
        elif match["title"]:
            yield Listing(match["title"], match["text"])
        elif match["language"] == "console":
            yield from _commands(match["text"])


def _commands(block: str) -> list[Command]:
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        else:
            found[-1].expected.append(line)
    return found


def follow(page: Path, folder: Path) -> None:
    """Do all that a page shows; fail where something else happens."""
    session = Session(folder)
    for part in parts(page):
        if isinstance(part, Command):
            session.run(part)
        elif isinstance(part, Listing):
            session.write(part)
        else:
            session.compare(part, page)


class Session:
    """A terminal in a folder of its own, with the examples in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.code = 0
        programs = folder / "bin"
        programs.mkdir()
        for name, module in (("plait", "plait.cli.main"), ("pytest", "pytest"), ("python", None)):
            arguments = f"-m {module} " if module else ""
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        ignored = ("FORCE_COLOR", "COLUMNS", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
        self.environment = {
            k: v for k, v in os.environ.items() if k not in ignored and not k.startswith("PYTEST_XDIST")
        }
        self.environment["PATH"] = f"{programs}{os.pathsep}{self.environment['PATH']}"
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, command: Command) -> None:
        """Run a command; its output must be what is shown."""
        result = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {command.line}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        self.code = result.returncode
        shown = "\n".join(command.expected)
        if not re.fullmatch(_pattern(command.expected), _PROGRESS.sub("", result.stdout)):
            pytest.fail(f"$ {command.line}\nprints\n{result.stdout}\nand not\n{shown}", pytrace=False)
        assert self.code in (0, 1, 3) or "error:" in shown, f"$ {command.line}: exit code {self.code}"

    def write(self, listing: Listing) -> None:
        """Put a listing into its file."""
        file = self.folder / listing.file.removesuffix(COMPLETE)
        text = listing.text
        if file.exists() and file.suffix == ".py":
            text = edited(file.read_text(encoding="utf-8"), text)
        if listing.file.endswith(COMPLETE):
            assert file.read_text(encoding="utf-8") == listing.text
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if file.suffix == ".yml":
            for line in re.findall(r"^ *- run: ((?:plait|pytest) .*)$", text, re.MULTILINE):
                self.run(Command(line, [ELLIPSIS]))
                assert self.code == 0, f"{line}: exit code {self.code}"

    def compare(self, drawing: Drawing, page: Path) -> None:
        """Draw a picture of the page again."""
        source, target = self.folder / drawing.source, page.parent / drawing.target
        is_report = source.suffix == ".html"
        drawn = source.read_text(encoding="utf-8") if is_report else space_time(load_trace(source))
        if os.environ.get("PLAIT_WRITE"):
            target.write_text(drawn, encoding="utf-8")
        assert _VARYING.sub("", target.read_text(encoding="utf-8")) == _VARYING.sub("", drawn), (
            f"write {target.name} anew: PLAIT_WRITE=1 pytest tests/test_sessions.py"
        )


def _pattern(expected: list[str]) -> str:
    """A regular expression for the shown lines."""
    return "".join(r"(?:.*\n)*?" if line == ELLIPSIS else f"{_line_pattern(line)}\n" for line in expected)


def _line_pattern(line: str) -> str:
    if ELLIPSIS not in line:
        return re.escape(line)
    columns = [".*".join(map(re.escape, column.split(ELLIPSIS))) for column in re.split(" {2,}", line)]
    return " {2,}".join(columns)


def edited(file: str, listing: str) -> str:
    """The text of a Python file after the definitions of a listing have been put into it."""
    pieces = definitions(file)
    waiting: dict[str, str] = {}
    for name, text in definitions(listing).items():
        if name not in pieces:
            waiting[name] = text
            continue
        order = list(pieces)
        place = order.index(name)
        before = {key: pieces[key] for key in order[:place]}
        after = {key: pieces[key] for key in order[place + 1 :]}
        pieces = before | waiting | {name: text} | after
        waiting = {}
    return "\n\n\n".join((pieces | waiting).values()) + "\n"


def definitions(source: str) -> dict[str, str]:
    """The text of a module's top-level statements by name; imports have one name together."""
    found: dict[str, str] = {}
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first, name = min(n.lineno for n in (node, *node.decorator_list)), node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            first, name = node.lineno, "import"
        else:
            first, name = node.lineno, ast.unparse(node)
        text = "\n".join(lines[first - 1 : node.end_lineno])
        found[name] = f"{found[name]}\n{text}" if name in found else text
    return found
