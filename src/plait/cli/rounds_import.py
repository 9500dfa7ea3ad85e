"""`plait rounds import`: a Distal or P text as a Plait model. `plait rounds format`: the layout of a Distal text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.options import Flag
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


def format_distal(file: Path, /, *, output: Output = None, check: Flag = False) -> int:
    """Lay out a Distal text (the help text is in `plait.cli.main`).

    Parameters
    ----------
    file
        A Distal text, FILE.distal.
    output
        Write the text to this file; by default FILE is rewritten.
    check
        Write nothing. Say whether the text has this layout already.
    """
    from plait.rounds.distal.layout import formatted
    from plait.rounds.distal.module import text_of

    writable(output, "--output")
    before = text_of(file)
    after = formatted(before, str(file))
    if check:
        note(f"{file}: {'its layout is as wanted' if before == after else 'plait rounds format would change it'}")
        return 0 if before == after else 1
    if output is not None or before != after:
        (output or file).write_text(after, encoding="utf-8")
    note(f"{output or file}: {'nothing to change' if before == after else 'formatted'}")
    return 0
