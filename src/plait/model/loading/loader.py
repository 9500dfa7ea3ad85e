"""Loads a System from a target: a name of the zoo, a file, or `package.module:function`.

    load("paxos", {"acceptors": "3"})
    load("models/token.py:ring", {})
    load("my.models:token", {})

Files are Python, or of a language for which `reads` registers a reader (the command line registers Distal). The target
is a System, or a function that returns one. The parameters of a function are checked against its annotations. The
loaded System stores its target and parameters, so that a saved trace can load its model again.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import sys
import sysconfig
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from plait.kernel.errors import Argument, ModelError, PlaitError, Text, UsageError
from plait.kernel.imports import import_file, search_first
from plait.model.loading.convert import NotConvertibleError, convert, convertible, example, spell
from plait.model.loading.readers import READERS
from plait.model.system import System

ZOO = "plait.protocols"


def named_file(target: str) -> Path:
    """The file that a target names, if it names one: `models/token.py` of `models/token.py:ring`."""
    return Path(target if "." in target.rpartition(":")[2] else target.rpartition(":")[0])


def reader_module(target: str) -> str | None:
    """The module that reads the file of this target, if the file is not Python. Importing it makes the target known."""
    reader = READERS.get(named_file(target).suffix)
    return None if reader is None else reader.__module__


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a model function."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def type(self) -> str:
        """Its type as text."""
        return spell(self.annotation)


@dataclasses.dataclass(frozen=True)
class ModelFunction:
    """A function that returns a System, and the target that names it."""

    target: str
    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", self.target)

    @property
    def doc(self) -> str:
        """The first line of its documentation."""
        return (inspect.getdoc(self.function) or "").split("\n")[0]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name. A parameter without annotation has the type of its default."""
        hints = _hints(self.function)
        found = {}
        for name, p in inspect.signature(self.function).parameters.items():
            if p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                continue
            annotation = hints.get(name, p.annotation)
            if annotation is inspect.Parameter.empty or isinstance(annotation, str):
                simple = isinstance(p.default, bool | int | float | str)
                annotation = type(p.default) if simple else Any
            found[name] = Parameter(name, annotation, p.default)
        return found

    def build(self, given: Mapping[str, Any], *, parse: bool = True) -> System:
        """Call the function with these parameters. With `parse`, strings are text from a command line."""
        values = self._bind(given, parse)
        try:
            system = self.function(**values)
        except PlaitError:
            raise
        except (Exception, SystemExit) as error:
            arguments = ", ".join(f"{n}={v!r}" for n, v in values.items())
            raise ModelError(
                f"{self.name}({arguments}) raised {_describe(error)}{_place(error)}",
                hint="correct the function, or give other parameters: it must return a System",
            ) from error
        if not isinstance(system, System):
            raise UsageError(
                f"{self.target} returned {_kind(system)}, not a System",
                hint="end the function with: return System([…])",
            )
        known = self.parameters
        system.parameters = {n: v for n, v in values.items() if n in given or convertible(known[n].annotation)}
        return _named(system, self.target, self.name)

    def _bind(self, given: Mapping[str, Any], parse: bool) -> dict[str, Any]:
        known = self.parameters
        for name in given:
            if name not in known:
                raise UsageError(
                    f"{self.name} has no parameter {name!r}",
                    hint=_did_you_mean(name, known)
                    + (f"its parameters are: {', '.join(known)}" if known else "it takes no parameters"),
                )
        values = {}
        for name, p in known.items():
            if name not in given:
                if p.required:
                    raise UsageError(
                        f"{self.name} needs the parameter {name!r} ({p.type})",
                        hint=("give ", Argument(name, example(p.annotation) or "…", parameter=True)),
                    )
                values[name] = p.default
                continue
            try:
                values[name] = convert(given[name], p.annotation, parse=parse)
            except NotConvertibleError as expected:
                hint: Text = ("for example ", Argument(name, example(p.annotation), parameter=True))
                if not convertible(p.annotation):
                    hint = f"build the System in Python: a {p.type} cannot be written as text"
                raise UsageError(
                    f"{self.name}: {name}={given[name]!r} does not fit: expected {expected}", hint=hint
                ) from None
        return values


def load(target: str, parameters: Mapping[str, Any] | None = None, *, parse: bool = True) -> System:
    """The System that a target names, with these parameters.

    With `parse=False`, strings stay strings. Use this for parameters from a trace or from Python.
    """
    found = find(target)
    if isinstance(found, ModelFunction):
        return found.build(parameters or {}, parse=parse)
    if parameters:
        raise UsageError(
            f"{target} is a System, not a function: it has no parameter {next(iter(parameters))!r}",
            hint="write a function with parameters that returns the System",
        )
    return found


def find(target: str) -> ModelFunction | System:
    """The object that a target names: a function that returns a System, or a System."""
    place, colon, name = target.rpartition(":")
    if not colon:
        place, name = target, ""
    if not place or (colon and not name):
        raise UsageError(
            f"{target!r} is not the name of a model",
            hint="give a zoo name (plait zoo lists them), a Python file, or package.module:function",
        )
    if Path(place).suffix in (".py", *READERS) or "/" in place or Path(place).is_file():
        return _from_module(_file_module(_shipped(place) or Path(place)), name, place)
    if not colon and "." not in place:
        return _from_zoo(place)
    search_first(Path.cwd())
    return _from_module(_import(place, target), name, place)


def zoo() -> dict[str, str]:
    """The names of the protocols of the zoo, each with the first line of its documentation.

    A protocol of the zoo is a module with a function of the same name. The modules are read, not imported.
    """
    import ast

    found = {}
    for folder in _zoo_folders():
        for file in sorted(folder.glob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            if any(isinstance(node, ast.FunctionDef) and node.name == file.stem for node in tree.body):
                found[file.stem.replace("_", "-")] = (ast.get_docstring(tree) or "").split("\n")[0]
    return found


def _zoo_folders() -> list[Path]:
    package = importlib.util.find_spec(ZOO)
    return [Path(folder) for folder in (package.submodule_search_locations if package else None) or ()]


def _shipped(place: str) -> Path | None:
    """The file of the zoo with this name, if it is not Python and the current folder has no such file."""
    if "/" in place or Path(place).suffix not in READERS or Path(place).exists():
        return None
    return next((f / place for f in _zoo_folders() if (f / place).is_file()), None)


def _from_zoo(name: str) -> ModelFunction | System:
    stem = name.replace("-", "_")
    known = zoo()
    if stem.replace("_", "-") not in known:
        file = Path(f"{name}.py")
        raise UsageError(
            f"there is no protocol {name!r} in the zoo",
            hint=(f"to check the file, write {file}; " if file.is_file() else _did_you_mean(name, known))
            + f"the zoo has: {', '.join(known)}",
        )
    module = _import(f"{ZOO}.{stem}", name)
    return ModelFunction(name, getattr(module, stem))


def _from_module(module: types.ModuleType, name: str, place: str) -> ModelFunction | System:
    """The object with this name; without a name, the only model of the module."""
    if name:
        try:
            found = getattr(module, name)
        except AttributeError:
            names = list(_candidates(module))
            raise UsageError(
                f"{place} has no {name!r}",
                hint=_did_you_mean(name, names) + f"its models are: {', '.join(names) or 'none'}",
            ) from None
    else:
        models = _candidates(module)
        if len(models) != 1:
            raise UsageError(
                f"{place} has {len(models) or 'no'} models" + (f": {', '.join(models)}" if models else ""),
                hint=f"name one of them: {place}:{next(iter(models))}"
                if models
                else "define a System, or a function annotated -> System, at the top level of the file",
            )
        ((name, found),) = models.items()
    target = f"{place}:{name}"
    if isinstance(found, System):
        return _named(found, target, name)
    if not callable(found) or isinstance(found, type):
        raise UsageError(
            f"{target} is {_kind(found)}, not a model", hint="name a System, or a function that returns one"
        )
    return ModelFunction(target, found)


def _candidates(module: types.ModuleType) -> dict[str, Any]:
    """The public Systems of a module, and its functions with the annotation `-> System`."""
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("_") or any(value is other for other in found.values()):
            continue
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        if isinstance(value, System) or (own and returns_system(value)):
            found[name] = value
    return found


def returns_system(function: Callable[..., Any]) -> bool:
    """Whether a function has the annotation `-> System`."""
    result = _hints(function).get("return")
    if isinstance(result, str):
        return result.rpartition(".")[2] == "System"
    return isinstance(result, type) and issubclass(result, System)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, evaluated if possible."""
    try:
        return typing.get_type_hints(function)
    except Exception:  # a name that exists for type checkers only
        return dict(getattr(function, "__annotations__", {}))


def _file_module(path: Path) -> types.ModuleType:
    """Import a file. If it belongs to a package, import it as a module of the package."""
    if not path.exists():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob(f"*{path.suffix}")], 1)
        hint = f"did you mean {path.parent / near[0]}?" if near else "check the path: it is relative to this folder"
        raise UsageError(f"there is no file {path}", hint=hint)
    if path.is_file() and path.suffix in READERS:
        return READERS[path.suffix](path)
    if path.is_dir() or path.suffix != ".py":
        raise UsageError(
            f"{path} is {'a folder' if path.is_dir() else 'not a Python file'}",
            hint=" or ".join(f"{'give a ' if s == '.py' else 'a '}{s} file" for s in (".py", *READERS)),
        )
    full = path.resolve()
    root, parts = full.parent, [full.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if len(parts) > 1 and all(part.isidentifier() for part in parts):
        if parts[-1] == "__init__":
            parts.pop()
        search_first(root)
        module = _import(".".join(parts), str(path))
        if module.__file__ is not None and Path(module.__file__).resolve() == full:
            return module
    return _run_file(path, full)


def _run_file(path: Path, full: Path) -> types.ModuleType:
    """Import a file that belongs to no package. It can import the other files of its folder, as when Python runs it."""
    for module in list(sys.modules.values()):
        if getattr(module, "__plait_file__", None) == full:
            return module
    name = full.stem if full.stem.isidentifier() and full.stem not in sys.modules else f"_plait_{full.stem}"
    while name in sys.modules:
        name += "_"
    search_first(full.parent)
    try:
        return import_file(name, full, __plait_file__=full)
    except BaseException as error:
        raise _import_error(str(path), error) from error


def _import(name: str, target: str) -> types.ModuleType:
    """Import a module by its dotted name."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is not the name of a module", hint="write package.module:function")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(
                f"{target}: there is no module {error.name!r}",
                hint="give a zoo name (plait zoo lists them), a Python file, or package.module:function",
            ) from None
        raise _import_error(target, error) from error
    except BaseException as error:
        raise _import_error(target, error) from error


def _import_error(target: str, error: BaseException) -> BaseException:
    """The error for a module that does not import, without a traceback. An interruption is returned as it is."""
    if isinstance(error, PlaitError):
        return error.at(target, _place(error))
    if isinstance(error, Exception | SystemExit):
        hint = "correct the file; run it with python to see the whole traceback"
        if isinstance(error, ModuleNotFoundError) and error.name:
            hint = f"install {error.name.partition('.')[0]} in the environment that plait runs in, or correct the name"
        return UsageError(f"{target} does not import: {_describe(error)}{_place(error)}", hint=hint)
    return error


def _place(error: BaseException) -> str:
    """The deepest line of the user's code that raised."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    place, walk = "", error.__traceback__
    while walk is not None:
        if is_users(file := walk.tb_frame.f_code.co_filename):
            place = f" ({file}, line {walk.tb_lineno})"
        walk = walk.tb_next
    return place


def is_users(file: str) -> bool:
    """Whether a file belongs to the user (or to the zoo): not to Plait, the standard library or an installed package."""
    plait = Path(__file__).parents[2]
    others = [str(plait), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return file.startswith(str(plait / "protocols")) or not file.startswith(("<", *others))


def _describe(error: BaseException) -> str:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _named(system: System, target: str, name: str) -> System:
    system.target = target
    if system.name == "system":
        system.name = name
    return system


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name.replace("_", "-"), list(known), 1) or difflib.get_close_matches(
        name, list(known), 1
    )
    return f"did you mean {near[0]!r}? " if near else ""
