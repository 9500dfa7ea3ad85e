"""The documentation is true: its Python runs, its links lead somewhere, its tables list what there is."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import plait
from plait import System, check
from plait.check.options import Options
from plait.cli.options import flag
from plait.kernel.errors import Argument
from plait.kernel.trace import Event, Trace
from plait.kernel.verdict import EXIT_CODES
from plait.protocols.paxos import paxos
from plait.protocols.ping_pong import ping_pong
from tests.support.markdown import FENCE, ROOT, blocks
from tests.support.patience import PATIENCE

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_LINK = re.compile(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"")


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Modules that a page makes are gone afterwards."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("page_"):
            del sys.modules[name]


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=page_name)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other, as one program; the models they make can be checked."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"page_{page.stem}")
    sys.modules[module.__name__] = module
    for block in blocks(page, "python"):
        if block.file is not None:
            continue  # a file of its own: see test_readme.py and test_sessions.py
        if ">>> " in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, vars(module), page.name, str(page), block.line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(test, clear_globs=False).failed == 0
            continue
        # With the line numbers of the page: tracebacks lead there, and so does `inspect.getsource`.
        source = "\n" * (block.line - 1) + block.text
        exec(compile(source, str(page), "exec"), vars(module))
    systems = [value for value in vars(module).values() if isinstance(value, System)]
    for system in systems:
        assert check(system, timeout=PATIENCE).bound in (None, "within")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for match in _LINK.finditer(FENCE.sub("", text)):
        target = match[1] or match[2]
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} is not there"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in anchors, f"{target}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_files_that_are_named_exist(page: Path) -> None:
    """Paths into the repository that stand in the text as code."""
    for name in re.findall(r"`((?:src|rust|tests|examples)/[\w./-]+)`", page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), f"{name} is not there"


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs" / "images").glob("*.svg"))], ids=page_name)
def test_published_work_is_referred_to_by_name(page: Path) -> None:
    """docs/references.md has the names. Numbers of ours mean nothing to a reader."""
    numbers = re.findall(r"[Pp]apers? 00\d|[Tt]hesis 00\d|\bDESIGN\b", page.read_text(encoding="utf-8"))
    assert numbers == []


def test_pages_that_the_code_names_exist() -> None:
    """Hints and comments refer to pages by path."""
    for folder, ending in (("src", "py"), ("src", "pyi"), ("src", "c"), ("src", "lark"), ("rust/src", "rs")):
        for file in (ROOT / folder).rglob(f"*.{ending}"):
            for page in re.findall(r"\bdocs/[\w./-]+\.md\b", file.read_text(encoding="utf-8")):
                assert (ROOT / page).exists(), f"{page_name(file)} names {page}"


def test_files_that_the_architecture_names_without_a_folder_exist() -> None:
    """`bfs.rs`, `tracing.py`: the folder is clear from the sentence, but a file of that name must exist."""
    names = {path.name for folder in ("src", "rust/src", "tests", "docs") for path in (ROOT / folder).rglob("*.*")}
    text = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:\w+/)*(\w+\.(?:py|rs|c|lark))`", text))
    assert len(named) > 100
    assert named - names == set()


@pytest.mark.slow
def test_the_numbers_of_the_architecture() -> None:
    text = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    found = check(paxos(proposers=3, quorum=False)).statistics
    assert f"{found.states:,} states and {found.transitions:,} transitions" in text
    assert found.questions < 2_000, "less than 2,000 questions"


def test_the_manual_mentions_everything_that_is_exported() -> None:
    pages = ("reference/models.md", "guides/liveness.md", "guides/notebooks.md")
    text = "".join((ROOT / "docs" / page).read_text("utf-8") for page in pages)
    unmentioned = [name for name in plait.__all__ if not re.search(rf"\b{name}\b", text)]
    assert [name for name in unmentioned if name not in ("Network", "Property", "Trace")] == []


def test_cli_lists_every_option() -> None:
    """All parameters of the commands, read from their source."""
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for command in (
        "bench",
        "check",
        "show",
        "graph",
        "replay",
        "diff",
        "zoo",
        "bmc",
        "analyze",
    ):
        places = {"analyze": "gyro"}
        file = places.get(command, command)
        tree = ast.parse((ROOT / "src" / "plait" / "cli" / f"{file}.py").read_text(encoding="utf-8"))
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == command)
        names = [argument.arg for argument in function.args.kwonlyargs]
        if "options" in names:  # those of the library
            names.remove("options")
            names += [field.name for field in dataclasses.fields(Options)]
        for name in names:
            option = {"parameters": "-p", "output": "-o"}.get(name, flag(Argument(name)))
            assert f"`{option}" in text, f"plait {command} {option} is not in docs/reference/cli.md"


def test_cli_lists_every_option_of_epa() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    tree = ast.parse((ROOT / "src" / "plait" / "cli" / "epa.py").read_text(encoding="utf-8"))
    for function in (n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")):
        assert f"| `{function.name}` " in text
        for argument in function.args.kwonlyargs:
            option = {"output": "-o", "quiet": "-q"}.get(argument.arg, f"--{argument.arg.replace('_', '-')}")
            assert f"`{option}`" in text, f"plait epa {function.name} {option} is not in docs/reference/cli.md"


def test_formats_list_every_field_of_the_json() -> None:
    text = (ROOT / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    for name in (*check(ping_pong()).to_json(), *Trace.__struct_fields__, *Event.__struct_fields__):
        assert f"`{name}`" in text, f"{name} is not in docs/reference/formats.md"


def test_cli_lists_the_exit_codes() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for status, code in EXIT_CODES.items():
        assert re.search(rf"\| {code} \| .*{status}", text)
