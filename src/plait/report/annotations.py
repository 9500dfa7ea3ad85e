"""A verdict as annotations of source lines: SARIF for code scanning, and the workflow commands of GitHub Actions.

A violated property is an error, an inconclusive one a warning. The caller knows where properties are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from plait.kernel.trace import Trace
from plait.kernel.verdict import Verdict
from plait.report.wording import headline

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class SourceLine(NamedTuple):
    """A line of the user's source. Paths below the current folder are shown relative to it."""

    file: str
    line: int

    @property
    def path(self) -> str:
        """The file with forward slashes, as both formats want it."""
        path = Path(self.file)
        return (path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path).as_posix()


class Annotation(NamedTuple):
    """One message about a property."""

    level: str
    """"error" or "warning"."""
    property: str
    text: str
    place: SourceLine | None


def annotated(verdict: Verdict, places: Mapping[str, SourceLine], model: SourceLine | None) -> list[Annotation]:
    """One annotation for each property that does not hold.

    It is at the line of the property, or else of the last step of its run, or else of the model.
    """
    levels = {"violated": "error", "inconclusive": "warning"}
    found = []
    for result in verdict.properties:
        if result.status in levels:
            said = verdict.message if verdict.property == result.name else None
            note = f": {result.note}" if result.note else ""
            text = f"{said or f'{result.name} is {result.status}{note}'} ({verdict.model})"
            place = places.get(result.name) or _last_line(result.trace) or model
            found.append(Annotation(levels[result.status], result.name, text, place))
    if not found and verdict.status in levels:
        found.append(Annotation(levels[verdict.status], "verdict", " ".join(headline(verdict)), model))
    return found


def _last_line(trace: Trace | None) -> SourceLine | None:
    place = trace.events[-1].place if trace is not None and trace.events else msgspec.UNSET
    return None if place is msgspec.UNSET else SourceLine(place.file, place.line)


def github(found: list[Annotation]) -> str:
    """The annotations as workflow commands of GitHub Actions, one per line.

    >>> print(github([Annotation("error", "agreement", "agreement is violated", SourceLine("models/paxos.py", 12))]))
    ::error file=models/paxos.py,line=12,title=Plait%3A agreement::agreement is violated
    """
    lines = []
    for one in found:
        where = {} if one.place is None else {"file": one.place.path, "line": str(one.place.line)}
        values = {**where, "title": f"Plait: {one.property}"}
        said = ",".join(f"{name}={_escaped(value, ':', ',')}" for name, value in values.items())
        lines.append(f"::{one.level} {said}::{_escaped(one.text)}")
    return "\n".join(lines)


def _escaped(text: str, *more: str) -> str:
    for character in ("%", "\r", "\n", *more):
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def sarif(found: list[Annotation], version: str) -> dict[str, Any]:
    """The annotations as a SARIF log, version 2.1.0.

    >>> log = sarif([Annotation("error", "agreement", "agreement is violated", SourceLine("paxos.py", 12))], "0.1.0")
    >>> log["runs"][0]["results"][0]["ruleId"]
    'agreement'
    """
    results = []
    for one in found:
        result: dict[str, Any] = {"ruleId": one.property, "level": one.level, "message": {"text": one.text}}
        if one.place is not None:
            location = {"artifactLocation": {"uri": one.place.path}, "region": {"startLine": one.place.line}}
            result["locations"] = [{"physicalLocation": location}]
        results.append(result)
    rules = [{"id": name} for name in dict.fromkeys(one.property for one in found)]
    driver = {"name": "Plait", "version": version, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
