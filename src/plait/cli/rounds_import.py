"""`plait rounds import`: a Distal or P text as a Plait model in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.output import emit, note, writable

Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def import_distal(file: Path, /, *, output: Output = None) -> int:
    """Translate a Distal or P text (the help text is in `plait.cli.main`).

    Parameters
    ----------
    file
        A Distal text, FILE.distal, or a P text, FILE.p.
    output
        Write the Python model to this file; by default to stdout.
    """
    writable(output, "--output")
    if file.suffix == ".p":
        from plait.rounds.p.module import source_of as source_of_p

        source, _ = source_of_p(file)
    else:
        from plait.rounds.distal.module import source_of

        source, _ = source_of(file)
    if output is None:
        emit(source)
    else:
        output.write_text(source, encoding="utf-8")
        note(f"model: {output}  (plait check {output})")
    return 0
