"""A run in formats that need the model: ITF, a pytest test, JSON. The page makes the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from plait.kernel.trace import Trace
from plait.report.itf import trace_bytes
from plait.report.wording import step_details

_TEST = '''\
"""A run of {target}, exported by plait explore.

{steps}
"""

from pathlib import Path

from plait.check.explain.replay import replay
from plait.model.loading.loader import load
from plait.report.itf import load_trace

TRACE = r"""
{trace}"""


def test_{name}(tmp_path: Path) -> None:
    """The model has this run, with the same effects and states."""
    file = tmp_path / "run.itf.json"
    file.write_text(TRACE, encoding="utf-8")
    trace = load_trace(file)
    system = load({target!r}, trace.parameters, parse=False)
    assert len(list(replay(system, trace))) == {count}
'''


class Exported(msgspec.Struct, frozen=True):
    """A file to save."""

    name: str
    type: str
    content: str


def exported(trace: Trace, kind: str) -> Exported:
    """A run as a file."""
    stem = re.sub(r"\W+", "_", trace.target).strip("_") or "run"
    if kind == "json":
        return Exported(f"{stem}.json", "application/json", msgspec.json.encode(trace).decode())
    itf = trace_bytes(trace, Path("run.itf.json")).decode()
    if kind == "itf":
        return Exported(f"{stem}.itf.json", "application/json", itf)
    compact = msgspec.json.format(itf.encode(), indent=-1).decode()
    details = step_details(trace)
    steps = "\n".join(_step(number, trace, details[number]) for number in range(len(trace.events))) or "No step."
    made = _TEST.format(target=trace.target, steps=steps, trace=compact, name=stem, count=len(trace.events))
    return Exported(f"test_{stem}.py", "text/x-python", made)


def _step(number: int, trace: Trace, details: Sequence[tuple[str, str]]) -> str:
    event = trace.events[number]
    effects = "; ".join(f"{verb} {said}" for verb, said in details if verb != "changes")
    said = f"{number + 1}. {event.lane}  {event.label}{f': {effects}' if effects else ''}"
    return said.replace("\\", "/").replace('"""', "'''")
