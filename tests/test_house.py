"""The laws of the house, read from the source: who imports whom, sizes, and what a folder says about itself.

A law has a sentence in docs/internals/architecture.md ("Rooms") and a test here. A new room gets its place in `STACK`.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plait"
RUST = ROOT / "rust" / "src"
MODULES = sorted(PACKAGE.rglob("*.py"))
PLUGIN = ROOT / "src" / "_plait_pytest.py"

STACK = (
    {"kernel"},
    {"report"},
    {"model"},
    {"ir"},
    {"check", "bmc", "epa", "gyro", "protocols"},
    {"rounds", "conform"},
    {"bench", "explore"},
    {"cli"},
)
"""The rooms, from the bottom up. A room imports rooms of lower rows, never one of its own row or of a higher one."""
ROW = {room: number for number, row in enumerate(STACK) for room in row} | {"plait": 2}
"""The row of each room. The package itself shows the names of the model."""
NATIVE = {"check", "conform", "bmc", "epa"}
"""The rooms that talk to the native engine."""
LONGEST = 600
"""Lines of a file."""
MOST = 16
"""Files of a folder: about a dozen, and its paragraph."""
CROWDED = {
    "src/plait/protocols": "one protocol per file",
    "src/plait/cli": "one command per file",
}
"""Folders with more files, and why."""
UNCLEAR = {
    *("acts", "offers", "facts", "found", "large", "lens", "content", "kinds"),
    *("follow", "covered", "second", "dead", "back", "deed", "utils", "helpers", "misc"),
}
"""Names that say nothing about what a file defines."""


class Import(NamedTuple):
    """An import of a module of Plait."""

    module: str
    """`plait` alone is the package, whose public names belong to the rooms that they come from."""
    name: str | None
    line: int
    lazy: bool
    """Whether it is inside a function, or for type checkers only."""

    @property
    def room(self) -> str:
        """The room that is imported; `plait` for the package itself, `_native` for the engine."""
        if self.module != "plait":
            return self.module.split(".")[1]
        if self.name is None:
            return "plait"
        return PUBLIC.get(self.name, self.name if (PACKAGE / self.name).is_dir() else "plait")


def imports(tree: ast.AST, package: str, *, lazy: bool = False) -> Iterator[Import]:
    """The imports of Plait's modules in a syntax tree."""
    for node in ast.iter_child_nodes(tree):
        found: list[tuple[str, str | None]] = []
        if isinstance(node, ast.Import):
            found = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found = [(base, alias.name) for alias in node.names]
        for module, name in found:
            if module.split(".")[0] == "plait":
                yield Import(module, name, getattr(node, "lineno", 0), lazy)
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inner |= isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        yield from imports(node, package, lazy=lazy or inner)


def dotted(file: Path) -> str:
    """The name of a module."""
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@functools.cache
def imports_of(file: Path) -> list[Import]:
    """The imports of a file."""
    name = dotted(file)
    package = name.removesuffix(".__init__") if file.name == "__init__.py" else name.rpartition(".")[0]
    return list(imports(tree(file), package))


PUBLIC: dict[str, str] = {}
"""The public names of the package, each with its room."""
PUBLIC |= {i.name: i.room for i in imports_of(PACKAGE / "__init__.py") if i.name is not None and i.module != "plait"}


def forbidden(room: str, imported: Import) -> bool:
    """Whether a module of a room may not have this import."""
    if imported.room == room:
        return False
    if imported.room == "_native":
        return room not in NATIVE
    return ROW.get(imported.room, len(STACK)) >= ROW[room]


# -- the stack -------------------------------------------------------------------------------------------------------


def test_every_room_has_its_place() -> None:
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert {*rooms, "plait"} == ROW.keys()
    assert {file.name for file in PACKAGE.glob("*.py")} == {"__init__.py"}, "a module belongs to a room"


def test_a_room_imports_rooms_below_it() -> None:
    for file in [f for f in MODULES if f.parent != PACKAGE]:
        room = dotted(file).split(".")[1]
        for found in imports_of(file):
            assert not forbidden(room, found), f"{dotted(file)}, line {found.line}: {room} imports {found.module}"


def test_the_package_shows_the_model_and_loads_the_rest_when_it_is_used() -> None:
    found = imports_of(PACKAGE / "__init__.py")
    assert {i.room for i in found if not i.lazy} == {"kernel"}
    assert {i.room for i in found if i.lazy} == {"check", "explore", "kernel", "model", "report"}


def test_no_product_imports_a_benchmark() -> None:
    for file in MODULES:
        room = dotted(file).split(".")[1]
        if room != "bench" and dotted(file) != "plait.cli.bench":
            assert all(i.room != "bench" for i in imports_of(file)), file


def test_the_laws_are_enforced() -> None:
    source = """
from plait.model.system import System
from plait import Process, check
def f():
    from ..check import api
    import plait.bench.papers
if TYPE_CHECKING:
    from plait._native import Engine
"""
    found = list(imports(ast.parse(source), "plait.report"))
    assert [(i.room, i.line, i.lazy) for i in found] == [
        ("model", 2, False),
        ("model", 3, False),
        ("check", 3, False),
        ("check", 5, True),
        ("bench", 6, True),
        ("_native", 8, True),
    ]
    assert all(forbidden("report", i) for i in found)
    assert [i.room for i in found if forbidden("check", i)] == ["bench"]
    assert [i.room for i in found if forbidden("bmc", i)] == ["check", "check", "bench"]
    assert [i.room for i in found if forbidden("cli", i)] == ["_native"]


# -- single files that know something ------------------------------------------------------------------------------------


def test_only_one_file_of_epa_knows_z3() -> None:
    for file in (PACKAGE / "epa").rglob("*.py"):
        assert ("import z3" in file.read_text(encoding="utf-8")) == (file.name == "solver.py"), file


def test_the_plugin_imports_plait_only_when_used() -> None:
    assert [i.module for i in imports(ast.parse(PLUGIN.read_text(encoding="utf-8")), "") if not i.lazy] == []


# -- files and folders -----------------------------------------------------------------------------------------------


def folders() -> list[Path]:
    """The folders of the source, Python's and Rust's."""
    return sorted({file.parent for file in [*MODULES, *RUST.rglob("*.rs")]})


def local(path: Path) -> str:
    """A path within the project."""
    return path.relative_to(ROOT).as_posix()


def paragraph(folder: Path) -> str:
    """What a folder says about itself: the docstring of its package, or the head of its Rust module."""
    if (init := folder / "__init__.py").exists():
        return ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
    head = next(p for p in (folder / "mod.rs", folder / "lib.rs", folder / "main.rs") if p.exists())
    lines = head.read_text(encoding="utf-8").splitlines()
    return "\n".join(line.removeprefix("//!") for line in lines if line.startswith("//!"))


def test_a_folder_begins_with_a_paragraph() -> None:
    """It says what comes in, what goes out, and which file to open first."""
    assert [local(folder) for folder in folders() if len(paragraph(folder).split()) < 20] == []


def in_folder(folder: Path, name: str) -> bool:
    """Whether a file or a folder of this name is there. Rust's modules are named without an ending."""
    return (folder / name).exists() or (folder / f"{name}.rs").exists()


def test_the_paragraph_names_the_file_to_open_first() -> None:
    for folder in folders():
        text = paragraph(folder)
        first = re.findall(r"\bopen\s+`([\w./]+)`", text, re.IGNORECASE)
        assert first, f"{local(folder)}: say which file to open first"
        named = first + re.findall(r"`(\w+(?:\.py|\.rs|/))`", text)
        assert [name for name in named if not in_folder(folder, name)] == [], f"these are not in {local(folder)}"


def test_a_folder_holds_about_a_dozen_files() -> None:
    def files(folder: Path) -> list[Path]:
        return [f for f in folder.iterdir() if f.suffix in (".py", ".rs") and f.name not in ("__init__.py", "mod.rs")]

    assert {local(folder) for folder in folders() if len(files(folder)) > MOST} == CROWDED.keys()


def test_a_file_has_the_name_of_what_it_defines() -> None:
    files = [*MODULES, *RUST.rglob("*.rs"), *(ROOT / "tests").rglob("*.py")]
    assert not [local(file) for file in files if file.stem.removeprefix("test_") in UNCLEAR]


def test_every_module_says_what_it_is_for() -> None:
    assert [local(file) for file in [*MODULES, PLUGIN] if not ast.get_docstring(tree(file))] == []


def test_files_stay_short() -> None:
    lengths = {local(f): f.read_text(encoding="utf-8").count("\n") for f in [*MODULES, *RUST.rglob("*.rs")]}
    assert {name: length for name, length in lengths.items() if length >= LONGEST} == {}
