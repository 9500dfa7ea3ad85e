"""Files of servers are for their owner only, whatever the umask is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plait.gyro.belt.client import Client
from plait.gyro.belt.service.private import private_file, private_folder
from plait.gyro.belt.supervisor import free_ports, unready
from tests.support.patience import PATIENCE, until

STORE = Path(__file__).parents[3] / "examples" / "gyro" / "store.py"


def open_to_others(folder: Path) -> list[Path]:
    return [each for each in [folder, *folder.rglob("*")] if each.stat().st_mode & 0o077]


@pytest.mark.slow
def test_everything_in_the_folder_is_private(tmp_path: Path) -> None:
    """The umask would let everyone read and write. Files from an earlier version become private, too."""
    (port,) = free_ports(1)
    folder = tmp_path / "a" / "b"
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "plait.cli.main", "gyro", "serve", str(STORE), "--servers", "1"]
    command += ["--port", str(port), "--folder", str(folder)]
    for again in (False, True):
        if again:
            for each in (
                folder / "server-0",
                folder / "server-0" / "app.db",
                folder / "log.db",
                folder / "settings.json",
            ):
                each.chmod(0o777)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, umask=0)
        try:
            until(lambda: unready(url) is None, "the server is ready")
            client = Client(url)
            client.call("create", cart=again)
            client.close()
            names = {each.name for each in folder.rglob("*")}
            assert names >= {"app.db", "app.db-wal", "app.db-shm", "log.db", "log.db-wal", "settings.json", "secret"}
            assert open_to_others(tmp_path / "a") == []
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)


def test_files_beside_a_database_become_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_folder(tmp_path / "x")
        (folder / "app.db-wal").write_bytes(b"")
        private_file(folder / "app.db")
    finally:
        os.umask(before)
    assert len(list(folder.iterdir())) == 2
    assert open_to_others(folder) == []
