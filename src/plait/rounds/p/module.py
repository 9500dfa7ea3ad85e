"""A P file as a Python module, whose source the analyses of handlers can read."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path
from types import ModuleType

from plait.kernel.errors import UsageError
from plait.kernel.places import translated
from plait.rounds.p.translation import translate


def source_of(path: Path) -> tuple[str, list[int]]:
    """The Python source of a P file, and for each of its lines the line of the P file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="give a .p file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from None
    return translate(text, str(path))


def module_of(path: Path) -> ModuleType:
    """The module of a P file; the same module as long as the text is the same."""
    source, lines = source_of(path)
    name = "plait_p_" + re.sub(r"\W", "_", path.stem)
    while (known := sys.modules.get(name)) is not None:
        if known.__dict__.get("__plait_source__") == source and known.__file__ == str(path):
            return known
        name += "_"
    file = f"{path.name} as {name}"  # not in angle brackets: methods of such files run natively
    translated(file, str(path), lines)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = ModuleType(name)
    module.__dict__.update(__plait_source__=source, __file__=str(path))
    sys.modules[name] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module
