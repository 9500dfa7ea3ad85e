"""`plait completion`: prints completion scripts for shells."""

from __future__ import annotations

from typing import Literal

from plait.cli.output import emit


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print the completion script for a shell.

    Parameters
    ----------
    shell
        The shell: bash, zsh or fish.
    """
    from plait.cli.main import app

    emit(app.generate_completion(prog_name="plait", shell=shell))
    return 0
