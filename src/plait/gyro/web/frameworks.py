"""Finds a web application and its framework: `shop:app`, `shop:create_app()`, or a file or module that has `app`."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from plait.gyro.web.requests import Framework
from plait.kernel.errors import UsageError
from plait.kernel.imports import import_file, search_first

_NAMES = ("app", "application", "create_app", "make_app")


def load_application(target: str) -> tuple[Framework, ModuleType]:
    """Import the application; return it and its module."""
    where, _, name = target.partition(":")
    path = Path(where)
    try:
        module = _import(path.resolve()) if path.exists() else _named(where)
        found = _find(module, target, name)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{target} cannot be imported: {type(error).__name__}: {error}", hint="correct the code, or the name"
        ) from error
    return framework_of(found, target), module


def _import(path: Path) -> ModuleType:
    """Import a file or a package. A module of a package has its dotted name."""
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        folder, names = folder.parent, [folder.name, *names]
    search_first(folder)
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    file = path if path.suffix == ".py" else path / "__init__.py"
    return import_file(path.stem, file, package=path.is_dir())


def _named(name: str) -> ModuleType:
    search_first(Path.cwd())
    return importlib.import_module(name)


def _find(module: Any, target: str, name: str) -> Any:
    called = name.endswith("()")
    names = [name.removesuffix("()")] if name else [n for n in _NAMES if hasattr(module, n)]
    if not names or not hasattr(module, names[0]):
        raise UsageError(
            f"{target}: {module.__name__} has no {name or 'app'}",
            hint="name the application: MODULE:app or MODULE:create_app()",
        )
    found = getattr(module, names[0])
    return found() if called or (not name and names[0] in _NAMES[2:]) else found


def framework_of(application: Any, target: str = "the application") -> Framework:
    """The adapter of an application."""
    kinds = {f"{c.__module__}.{c.__name__}" for c in type(application).__mro__}
    if "flask.app.Flask" in kinds:
        from plait.gyro.web.flask_framework import FlaskFramework

        return FlaskFramework(application)
    if "starlette.applications.Starlette" in kinds:
        from plait.gyro.web.starlette_framework import StarletteFramework

        return StarletteFramework(application)
    if "django.core.handlers.base.BaseHandler" in kinds:
        from plait.gyro.web.django_framework import DjangoFramework

        return DjangoFramework(application)
    raise UsageError(
        f"{target} is an object of type {type(application).__name__}, not a web application",
        hint="give an application of Flask, FastAPI, Starlette or Django",
    )
