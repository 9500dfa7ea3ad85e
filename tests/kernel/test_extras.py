"""Optional packages: `plait check` needs none, and a missing one gives an error with the command that installs it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plait.kernel.errors import MissingPackageError
from plait.kernel.extras import EXTRAS, missing, needs, require

ROOT = Path(__file__).parents[2]
OPTIONAL = {module for extra in EXTRAS.values() for module in extra.packages}

COMMANDS = """
import contextlib, io, json, sys

for module in json.loads(sys.argv[1]):
    sys.modules[module] = None  # import raises ModuleNotFoundError, as if it were not installed
from plait.cli.main import main

ran = []
for command in json.loads(sys.argv[2]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command)
    ran.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(ran))
"""


def without(modules: set[str], *commands: list[str]) -> list[tuple[int, str, str]]:
    """The exit code, stdout and stderr of commands in a Python that lacks these modules."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(sorted(modules)), json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@pytest.mark.slow
def test_checking_needs_no_optional_package() -> None:
    ran = without(
        OPTIONAL,
        ["--help"],
        ["bmc", "--help"],
        ["zoo"],
        ["show", "distal_paxos"],
        ["check", "ping_pong", "--quiet"],
        ["check", "distal_paxos", "-p", "ballots=1", "--quiet"],
        ["rounds", "show", "distal_paxos"],
        ["graph", "ping_pong"],
    )
    assert [code for code, _, _ in ran] == [0] * len(ran), ran
    assert "distal-paxos" in ran[2][1]


BMC = "plait bmc needs z3-solver, which is not installed", "bmc"
GYRO = "plait gyro needs sqlglot, pyyaml and z3-solver, which are not installed", "gyro"
DISTAL = "reading Distal needs lark, which is not installed", "rounds"
SERVE = (
    (
        "plait gyro serve needs sqlglot, pyyaml, z3-solver, apsw, httptools, psycopg, pymysql, starlette, uvicorn and "
        "nats-py, which are not installed"
    ),
    "serve",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("bmc projections --encoding clock", BMC),
        ("bmc examples/bmc/counter.plait --encoding steps", BMC),
        ("bench bmc --quick", BMC),
        ("gyro analyze examples/gyro/store.py", GYRO),
        ("gyro analyze examples/gyro/store.yaml", GYRO),
        ("gyro serve examples/gyro/store.py", SERVE),
        ("bench gyro --quick", SERVE),
        ("rounds import src/plait/protocols/distal_paxos.distal", DISTAL),
        ("check distal_paxos.distal", DISTAL),
    ],
)
def test_a_command_names_the_missing_packages_and_installs_them(command: str, expected: tuple[str, str]) -> None:
    message, extra = expected
    assert without(OPTIONAL, command.split()) == [(2, "", f"error: {message}\nhint: pip install 'plait[{extra}]'\n")]


@pytest.mark.slow
def test_a_python_program_for_bmc_names_the_missing_packages() -> None:
    ((code, _, err),) = without({"z3"}, ["bmc", "examples/bmc/counter.py", "--encoding", "clock"])
    assert (code, err) == (
        2,
        "error: plait bmc needs z3-solver, which is not installed\nhint: pip install 'plait[bmc]'\n",
    )


@pytest.mark.slow
def test_another_solver_is_named() -> None:
    ((code, _, err),) = without({"cvc5"}, ["bmc", "philosophers", "--depth", "6", "--solver", "cvc5", "--quiet"])
    assert (code, err) == (2, "error: the solver cvc5 is not installed\nhint: pip install 'plait[solvers]'\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("plait.epa.solver", "epa"),
        ("plait.gyro.analysis", "gyro"),
        ("plait.gyro.belt.server", "gyro"),
        ("plait.gyro.belt.databases.sqlite.database", "serve"),
        ("plait.rounds.distal.module", "rounds"),
    ],
)
def test_an_import_names_the_missing_packages(module: str, extra: str) -> None:
    program = f"""
import sys
for module in {sorted(OPTIONAL)!r}:
    sys.modules[module] = None
import plait
try:
    import {module}
except plait.PlaitError as error:
    assert isinstance(error, ModuleNotFoundError)
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"pip install 'plait[{extra}]'\n", "")


def test_reversibility_names_z3_when_a_pair_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.epa.events import settle

    monkeypatch.setitem(sys.modules, "z3", None)
    monkeypatch.delitem(sys.modules, "plait.epa.solver", raising=False)
    pair = SimpleNamespace(schedule=None, early=0, late=1)
    report: Any = SimpleNamespace(pairs=[pair], nodes=[], before=[], sections=[])
    with pytest.raises(MissingPackageError, match="plait epa needs z3-solver, which is not installed") as caught:
        settle(report)
    assert caught.value.hint == "pip install 'plait[epa]'"


def test_other_missing_modules_are_left_alone() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as caught, needs("bmc"):
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(caught.value, MissingPackageError)


def test_what_is_installed_is_not_missing() -> None:
    for extra in EXTRAS:
        assert missing(extra) == []
        require(extra)


# -- one list of extras --------------------------------------------------------------------------------------------------


def declared() -> dict[str, set[str]]:
    """The packages of each extra in pyproject.toml; an extra that names others has theirs too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]

    def packages(extra: str) -> Iterator[str]:
        for requirement in extras[extra]:
            if own := re.fullmatch(r"plait\[(.*)\]", requirement):
                for other in own[1].split(","):
                    yield from packages(other)
            elif ";" not in requirement:  # otherwise it is not available everywhere, and nothing needs it
                yield re.split(r"[\[<>=!~ ]", requirement)[0]

    return {extra: set(packages(extra)) for extra in extras}


def test_the_extras_are_those_of_the_project() -> None:
    extras = declared()
    everything = extras.pop("all")
    assert {name: set(extra.packages.values()) for name, extra in EXTRAS.items()} == extras
    assert everything == set.union(*extras.values())


def test_the_manual_lists_every_extra() -> None:
    page = (ROOT / "docs" / "reference" / "packages.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page, re.MULTILINE))
    assert listed.pop("all") == "all of these"
    own = {name: set(extra.packages.values()) for name, extra in EXTRAS.items()}
    own["serve"] -= own["gyro"]
    assert {name: set(packages.split(", ")) for name, packages in listed.items()} == own


def optional_imports(node: ast.AST, inside: str | None = None) -> Iterator[tuple[int, str, str | None]]:
    """Imports of optional packages: line, package, and the extra of the `with needs(...)` around it."""
    match node:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            modules = [module]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.With(items=[ast.withitem(ast.Call(ast.Name("needs"), [ast.Constant(str(extra))]))]):
            inside, modules = extra, []
        case _:
            modules = []
    for module in modules:
        if (package := module.partition(".")[0]) in OPTIONAL:
            yield getattr(node, "lineno", 0), package, inside
    for child in ast.iter_child_nodes(node):
        yield from optional_imports(child, inside)


@pytest.mark.slow
def test_optional_packages_are_imported_inside_needs() -> None:
    found = 0
    for file in sorted((ROOT / "src").rglob("*.py")):
        for line, package, extra in optional_imports(ast.parse(file.read_text(encoding="utf-8"))):
            found += 1
            assert extra is not None, f"{file}, line {line}: import {package} without `with needs(...)`"
            assert package in EXTRAS[extra].packages, f"{file}, line {line}: {package} is not in the extra {extra}"
    assert found > 10
