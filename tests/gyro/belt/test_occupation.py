"""A folder has one supervisor for each of its servers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plait.gyro.belt.service.occupation import occupied
from plait.kernel.errors import UsageError

HOLD = """
import sys, pathlib
from plait.gyro.belt.service.occupation import occupied
with occupied(pathlib.Path(sys.argv[1]), [0, 1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_servers_of_another_process_are_refused_until_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="another plait gyro serve uses"), occupied(tmp_path, [1, 2]):
            pass
        with pytest.raises(UsageError, match="another plait gyro serve uses"), occupied(tmp_path, [], alone=True):
            pass
        with occupied(tmp_path, [2]):
            pass
        other.kill()
    with occupied(tmp_path, [0, 1], alone=True):
        pass
