"""Bounded model checking of concurrent programs with shared variables, with projections (Saissi 2019, ch. 4).

In: a program as text or as Python functions. Out: a Verdict for runs up to a depth, or for all runs. Open `api.py`
first: it searches with increasing depth. `language/` makes a `Program`. `analysis/` finds the parts that matter for a
property. `encoding/` turns runs into formulas for a solver. `execution/` executes the program.

```python
from plait.bmc import check, parse_program

program = parse_program(open("counter.plait").read())
print(check(program))
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.bmc.load import load, parse_program

if TYPE_CHECKING:
    from plait.bmc.api import check
    from plait.bmc.language.python import assume, atomic, build, choose, havoc, lock, skip, thread, unlock
    from plait.bmc.program.definition import Program

__all__ = [
    "Program",
    "assume",
    "atomic",
    "build",
    "check",
    "choose",
    "havoc",
    "load",
    "lock",
    "parse_program",
    "skip",
    "thread",
    "unlock",
]

_PLACES = {
    "plait.bmc.api": "check",
    "plait.bmc.language.python": "assume atomic build choose havoc lock skip thread unlock",
    "plait.bmc.program.definition": "Program",
}
"""The modules of public names that are imported when they are first used: `plait bmc` loads only what it needs."""
_LAZY = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module 'plait.bmc' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
