"""Importing a file of the user: always from its source."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

ADDED: set[str] = set()
"""The folders of users in `sys.path`. Processes that do not run their code leave these out: a file there may have the
name of a module of Python."""


class _SourceLoader(SourceFileLoader):
    """Reads no compiled file: Python takes one of the same second and size for current, though the source was edited."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def search_first(folder: Path) -> None:
    """Let Python find the modules of a folder, as it does for a file that it runs."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        ADDED.add(str(folder))


def import_file(name: str, file: Path, *, package: bool = False, **attributes: object) -> ModuleType:
    """Run a file as the module of this name, in which the attributes are set. If it raises, there is no such module."""
    locations = [str(file.parent)] if package else None
    spec = spec_from_file_location(
        name, file, loader=_SourceLoader(name, str(file)), submodule_search_locations=locations
    )
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    vars(module).update(attributes)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise
    return module
