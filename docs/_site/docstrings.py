"""A hook of the site: every public name has a docstring, and stands in the reference. Otherwise the build fails."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

import plait

REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "api.md"
FOREIGN = {"field"}
"""Names that plait passes on from the standard library, where they are documented."""


def on_pre_build(config: Any) -> None:
    """Stop the build with a list of what is missing."""
    missing = [*undocumented(), *unlisted(REFERENCE.read_text(encoding="utf-8"))]
    if missing:
        raise PluginError("the reference of the API is incomplete:\n  " + "\n  ".join(missing))


def undocumented() -> list[str]:
    """Public names of plait, and public members of its public classes, without a docstring."""
    found = []
    for name in sorted(set(plait.__all__) - FOREIGN):
        value = public(name)
        if not documented(value):
            found.append(f"plait.{name} has no docstring")
        if inspect.isclass(value):
            found += [f"plait.{name}.{member} has no docstring" for member in undocumented_members(value)]
    return found


def undocumented_members(cls: type) -> list[str]:
    """Public methods and properties that the class itself defines and does not explain."""
    return [
        name
        for name, member in vars(cls).items()
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod))
        and not (getattr(member, "__doc__", None) or "").strip()
    ]


def documented(value: Any) -> bool:
    """Whether somebody wrote a docstring: dataclasses have one anyway, their signature."""
    doc = (inspect.getdoc(value) or "").strip()
    return bool(doc) and not (dataclasses.is_dataclass(value) and doc.startswith(f"{getattr(value, '__name__', '')}("))


def unlisted(text: str) -> list[str]:
    """Public names that the page of the reference does not show."""
    shown = [imported(path) for path in re.findall(r"^::: (plait[\w.]*)$", text, re.MULTILINE)]
    return [
        f"plait.{name} is not in docs/reference/api.md"
        for name in sorted(set(plait.__all__) - FOREIGN)
        if not any(public(name) is value for value in shown)
    ]


def public(name: str) -> Any:
    """A public name of plait. If modules of `plait.check` were imported, `plait.check` is the room, not the function."""
    value = getattr(plait, name)
    return imported("plait.check.api.check") if inspect.ismodule(value) else value


def imported(path: str) -> Any:
    """The value of a dotted name, such as `plait.model.temporal.Globally`."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
