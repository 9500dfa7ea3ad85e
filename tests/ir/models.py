"""The zoo and the examples, with all their variants."""

from __future__ import annotations

import inspect
import itertools
import typing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ZOO = sorted(f.stem for f in (ROOT / "src" / "plait" / "protocols").glob("*.py") if not f.stem.startswith("_"))
EXAMPLES = sorted(f.stem for f in (ROOT / "examples").glob("*.py"))
MORE: dict[str, list[dict[str, Any]]] = {
    "raft_membership": [{"terms": 3, "faulty": "early"}],
    "ben_or": [{"f": 0, "phases": None, "specification": "live"}],
    "conveyor_belt": [{"reissues": 1, "crashes": 1, "faulty": f} for f in ("none", "fencing", "stale", "peek")],
    "raft": [{"servers": 5, "specification": "live", "fairness": "timeouts"}],
}
"""Parameters whose values are not a bool or one of some words."""


def variants(model: Any, name: str) -> list[dict[str, Any]]:
    """All combinations of the parameters of a model that are a bool or a word."""
    hints = typing.get_type_hints(model)
    options: dict[str, tuple[Any, ...]] = {}
    for parameter in inspect.signature(model).parameters:
        hint = hints[parameter]
        if hint is bool:
            options[parameter] = (True, False)
        elif typing.get_origin(hint) is typing.Literal:
            options[parameter] = typing.get_args(hint)
    return [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())] + MORE.get(
        name, []
    )
