"""A Distal file as a Python module, whose source the analyses of handlers can read."""

from __future__ import annotations

import keyword
import linecache
import re
import sys
from pathlib import Path
from types import ModuleType

from plait.kernel.errors import UsageError
from plait.kernel.places import translated
from plait.rounds.distal.positions import Positions
from plait.rounds.distal.translation import translate


def text_of(path: Path) -> str:
    """The text of a Distal file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="give a .distal file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from None


def source_of(path: Path) -> tuple[str, list[int]]:
    """The Python source of a Distal file, and for each of its lines the line of the Distal file."""
    return translate(text_of(path), str(path), _name(path))


def module_of(path: Path) -> ModuleType:
    """The module of a Distal file; the same module as long as the text is the same."""
    text = text_of(path)
    source, lines = translate(text, str(path), _name(path))
    name = f"plait_distal_{_name(path)}"
    while (known := sys.modules.get(name)) is not None:
        if known.__dict__.get("__plait_source__") == source and known.__file__ == str(path):
            return known
        name += "_"
    file = f"<{path.name} as {name}>"
    translated(file, str(path), lines, Positions(text, str(path), _name(path)))
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = ModuleType(name)
    module.__dict__.update(__plait_source__=source, __file__=str(path))
    sys.modules[name] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module


def _name(path: Path) -> str:
    """The name of the model function: the name of the file as a Python name."""
    name = re.sub(r"\W", "_", path.stem)
    return (
        f"model_{name}"
        if not name or name[0].isdigit() or keyword.iskeyword(name) or name in ("Node", "init")
        else name
    )
