"""The laws of the house (DESIGN section 2), read from the source: who imports whom, docstrings, sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plait"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 600

ALLOWED = {
    "kernel": set(),
    "model": {"kernel"},
    "check": {"kernel", "model"},
    "rounds": {"kernel", "model", "check"},
    "bmc": {"kernel"},
    "epa": {"kernel"},
    "gyro": {"kernel"},
    "report": {"kernel"},
    "bench": {"kernel", "model", "check", "rounds", "bmc", "epa", "gyro", "report", "protocols", "plait"},
    "protocols": {"kernel", "model", "plait"},
}
"""Who may import whom, besides itself. The command line and the explorer stand in front, and may import every room."""
FRONTS = {"cli", "web"}


def room_of(module: str) -> str:
    """The room of a dotted name; the package itself, whose names are the model's, counts as 'plait'."""
    return module.split(".")[1] if "." in module else "plait"


def imports(tree: ast.AST, package: str, *, lazy: bool = False) -> Iterator[tuple[str, int, bool]]:
    """Plait's modules that a module imports: name, line, and whether inside of a function."""
    for node in ast.iter_child_nodes(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(
                    [*package.split(".")[: len(package.split(".")) - node.level + 1], *filter(None, [base])]
                )
            names = [base]
            if base == "plait":
                # `from plait import report` is a room, `from plait import System` is a name.
                names = [f"plait.{a.name}" if (PACKAGE / a.name).is_dir() else "plait" for a in node.names]
        for name in names:
            if name.split(".")[0] == "plait":
                yield name, getattr(node, "lineno", 0), lazy
        yield from imports(node, package, lazy=lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)


@pytest.mark.parametrize("file", MODULES, ids=dotted)
def test_rooms_do_not_import_each_other(file: Path) -> None:
    name = dotted(file)
    parts = name.split(".")
    if len(parts) == 2:
        return  # plait/__init__.py shows the rooms' names to the user
    room = parts[1]
    if room in FRONTS:
        return
    package = name if parts[-1] == "__init__" else ".".join(parts[:-1])
    for target, line, lazy in imports(ast.parse(file.read_text(encoding="utf-8")), package):
        other = room_of(target)
        if other in (room, "_native"):
            continue
        if room == "kernel" and other == "report" and lazy:
            continue  # str(verdict) and Jupyter's display ask the report when they are called
        assert other in ALLOWED[room], f"{name}, line {line}: {room} imports {target}"


def test_the_law_is_enforced() -> None:
    source = "from plait.model.system import System\ndef f():\n    from ..check import api\n    import plait.web.app\n"
    found = [(room_of(name), line, lazy) for name, line, lazy in imports(ast.parse(source), "plait.report")]
    assert found == [("model", 1, False), ("check", 3, True), ("web", 4, True)]


def test_every_room_is_known() -> None:
    rooms = {d.name for d in PACKAGE.iterdir() if d.is_dir() and (d / "__init__.py").exists()}
    assert rooms <= ALLOWED.keys() | FRONTS


def test_only_check_and_epa_talk_to_the_native_engine() -> None:
    for file in MODULES:
        room = dotted(file).split(".")[1]
        if room in ("check", "epa", *FRONTS):
            continue
        for target, line, _ in imports(ast.parse(file.read_text(encoding="utf-8")), dotted(file)):
            assert target != "plait._native", f"{file}, line {line}"


def test_only_one_file_of_epa_knows_z3() -> None:
    for file in (PACKAGE / "epa").rglob("*.py"):
        assert ("import z3" in file.read_text(encoding="utf-8")) == (file.name == "solver.py"), file


@pytest.mark.parametrize("file", [*MODULES, ROOT / "src" / "_plait_pytest.py"], ids=lambda f: f.name)
def test_every_module_says_what_it_is_for(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))), f"{file} has no docstring"


@pytest.mark.parametrize(
    "file", [*MODULES, *sorted((ROOT / "rust" / "src").rglob("*.rs"))], ids=lambda f: str(f.relative_to(ROOT))
)
def test_files_stay_short(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) < LONGEST


def test_the_plugin_imports_plait_only_when_used() -> None:
    tree = ast.parse((ROOT / "src" / "_plait_pytest.py").read_text(encoding="utf-8"))
    checking = [node for node in tree.body if isinstance(node, ast.If)]  # if TYPE_CHECKING
    at_import = [node for node in tree.body if node not in checking]
    found = [name for node in at_import for name, _, lazy in imports(ast.Module([node], []), "") if not lazy]
    assert found == []
