"""`--github` and `--sarif`: what does not hold, as annotations of the user's source."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from plait.cli.output import note

if TYPE_CHECKING:
    from plait.kernel.verdict import Verdict
    from plait.report.annotations import SourceLine


@dataclasses.dataclass(frozen=True)
class Annotations:
    """The annotations that the user asked for, and the lines of the properties."""

    places: Mapping[str, SourceLine]
    model: SourceLine | None
    """The line for what has no line of its own."""
    sarif: Path | None
    github: bool

    def write(self, verdict: Verdict) -> list[str]:
        """Write the file, and return the lines to print."""
        if self.sarif is None and not self.github:
            return []
        import msgspec

        import plait
        from plait.report.annotations import annotated, github, sarif

        found = annotated(verdict, self.places, self.model)
        lines = [github(found)] if self.github and found else []
        if self.sarif is not None:
            log = msgspec.json.format(msgspec.json.encode(sarif(found, plait.__version__)))
            try:
                self.sarif.write_bytes(log)
                lines.append(f"SARIF: {self.sarif}")
            except OSError as error:
                note(f"warning: --sarif: {self.sarif} cannot be written: {error.strerror}\nhint: choose another file")
        return lines
