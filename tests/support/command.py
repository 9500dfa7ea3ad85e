"""The command `plait`, run as a reader of the documentation runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE

ELLIPSIS = "…"
"""In a listing: any number of lines."""


def plait(arguments: list[str], folder: Path, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a reader would."""
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-m", "plait.cli.main", *arguments],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
